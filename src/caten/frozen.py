"""Small immutable classes: `@frozen` is `@dataclass(frozen=True)` at a tenth of the time it takes to declare one.

A frozen dataclass writes and compiles six methods of its own, which for the hundreds of this compiler was a third of
the time that importing it takes. Here all methods are shared functions. `dataclasses.replace`, `fields` and `asdict`
work as on any dataclass."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


class _Signature:
    """What `inspect.signature` and `help` show of a class: made where one asks, for it takes long."""

    def __get__(self, instance: object, owner: Any) -> Any:
        from inspect import Parameter, Signature

        def parameter(f: Any) -> Parameter:
            default = f.default if f.default is not MISSING else (
                Parameter.empty if f.default_factory is MISSING else f.default_factory)
            return Parameter(f.name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=f.type)
        return Signature([parameter(f) for f in fields(owner)])


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The class with these fields: equal and hashed by their values (without those of `field(compare=False)`), and with
    a repr. A field is set once, by `__init__`; FrozenInstanceError where it is assigned or deleted afterwards."""
    cls.__doc__ = cls.__doc__ or cls.__name__              # dataclass would look for the signature, which takes long
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    compared, shown = [f.name for f in fields(made) if f.compare], [f.name for f in fields(made) if f.repr]
    names = tuple([f.name for f in fields(made)])
    count = len(names)
    defaults = {f.name: f.default for f in fields(made) if f.default is not MISSING}
    factories = {f.name: f.default_factory for f in fields(made) if f.default_factory is not MISSING}
    values: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda self: ()

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        own = self.__dict__
        if not kwargs and len(args) == count:
            own.update(zip(names, args, strict=True))
            return
        if len(args) > count or (kwargs and not kwargs.keys() <= frozenset(names[len(args):])):
            raise TypeError(f"{cls.__name__} takes the fields {', '.join(names)}, each once")
        own.update(zip(names, args, strict=False))
        for name in names[len(args):]:
            if name in kwargs:
                own[name] = kwargs[name]
            elif name in defaults:
                own[name] = defaults[name]
            elif name in factories:
                own[name] = factories[name]()
            else:
                raise TypeError(f"{cls.__name__} lacks the field {name}")

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

    made.__signature__ = _Signature()
    for method in (__init__, __eq__, __hash__, __repr__, __setattr__, __delattr__):
        if method.__name__ not in vars(cls):
            setattr(cls, method.__name__, method)
    return cls
