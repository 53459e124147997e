"""Small immutable classes: `@frozen` is `@dataclass(frozen=True)` at a third of the time it takes to declare one.

A frozen dataclass writes and compiles six methods of its own, which for the hundred of this compiler was a third of the
time that importing it takes. Here only `__init__` is compiled; the other methods are shared functions.
`dataclasses.replace`, `fields` and `asdict` work as on any dataclass."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The class with these fields: equal and hashed by their values (without those of `field(compare=False)`), and with
    a repr. A field is set once, by `__init__`; FrozenInstanceError where it is assigned or deleted afterwards."""
    made: Any = dataclass(repr=False, eq=False)(cls)
    compared, shown = [f.name for f in fields(made) if f.compare], [f.name for f in fields(made) if f.repr]
    names = frozenset([f.name for f in fields(made)])
    values: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda self: ()

    def __eq__(self: Any, other: Any) -> Any:
        return (self is other or values(self) == values(other)) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash((cls, values(self)))

    def __setattr__(self: Any, name: str, value: Any) -> None:
        own = self.__dict__
        if name in own or name not in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        own[name] = value

    def __delattr__(self: Any, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self: Any) -> str:
        return f"{cls.__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"

    for method in (__eq__, __hash__, __repr__, __setattr__, __delattr__):
        if method.__name__ not in vars(cls):
            setattr(cls, method.__name__, method)
    return cls
