"""An operator of a generic spec. It is compiled for the types, ranks and attributes of the arguments of its calls."""
from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ..argument_checks import described
from ..errors import CatenError, error
from ..frontend.composite import Composite
from ..frontend.generic_signature import for_each_axis, is_value, misfit, of_call, tuples
from ..frontend.spec import composites_of
from ..frontend.spec_files import SpecText
from ..options import Instance, Options
from ..runtime.call import Operator, Operators
from .call_keys import as_array, dtype_of, has_plain_key, key, plain_key, static_key

OFTEN = 8                                 # calls that the instance tried first did not take
Make = Callable[[Sequence[SpecText], Options], Operator | Operators]


class GenericOperator:
    """One operator for all element types, ranks and attributes that a spec leaves open.

    Call it as an `Operator`, and pass attributes as keyword arguments. The first call with new types, ranks or
    attributes compiles the operator for them. Later calls use the kernel, also in another process. Raises the errors of
    a call of an `Operator`, and those of `caten.compile` when it compiles."""

    def __init__(self, composite: Composite, spec: SpecText, options: Options, make: Make) -> None:
        """`composite`: the operator of the spec, without an instance. `make`: compiles specs."""
        self.name, self.__doc__ = composite.name, composite.doc
        self.attributes: Mapping[str, Any] = dict(composite.attributes)
        self._composite, self._spec, self._options, self._make = composite, spec, options, make
        self._operators: dict[Hashable, Operator] = {}
        self._plain: dict[Hashable, Operator] = {}           # of calls with arrays and numbers by position
        self._by_call: dict[Hashable, Operator] = {}
        self._latest: Operator | None = None
        self._often = 0                                      # calls of the latest in a row that came here
        self._lock = threading.RLock()

    def __new__(cls, *_: Any) -> GenericOperator:
        """Every operator has a class of its own: Python looks up `__call__` there, and `_prefer` replaces it."""
        kind: Any = type(cls.__name__, (cls,), {})
        made: GenericOperator = super().__new__(kind)
        return made

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the operator. Pass the inputs in the order of the spec, outputs as for an `Operator`, attributes by
        name."""
        return self._call(*args, **named)

    def _call(self, *args: Any, **named: Any) -> Any:
        if not named:
            known = self._plain.get(plain_key(args))
            if known is not None:
                self._prefer(known)
                return known(*args)
        try:
            operator = self._chosen(args, named)
        except CatenError as problem:
            raise problem.shortened() from None
        if not named and has_plain_key(args):
            self._plain[plain_key(args)] = operator
            self._prefer(operator, OFTEN if self._latest is None else 1)
        return operator(*args, **{name: value for name, value in named.items() if name not in self.attributes})

    def _prefer(self, operator: Operator, calls: int = 1) -> None:
        """Let calls try an instance first that was called often, since the one tried before did not take the call. What
        an instance takes as it is, is its call, whatever other instances there are."""
        self._often = self._often + calls if operator is self._latest else calls
        self._latest = operator
        if self._often == OFTEN and self._takes_types_of_arrays(operator):
            kind: Any = type(self)
            kind.__call__ = operator.attached(self._call) or self._call

    def _takes_types_of_arrays(self, operator: Operator) -> bool:
        """Does every input without axes have its type from one with axes, or from the spec? Otherwise a number of
        Python may ask for another instance than this one, which would take it."""
        ranks = {argument.name: len(argument.shape) for argument in operator.arguments}
        words = {t.word for t in self._composite.generic if t.name in self._composite.inputs and ranks[t.name]}
        return all(ranks[t.name] or t.variable is None or t.word in words
                   for t in self._composite.generic if t.name in self._composite.inputs)

    def operator(self, *args: Any, **named: Any) -> Operator:
        """The compiled operator for a call with these arguments: to be inspected, or bound."""
        try:
            return self._chosen(args, named)
        except CatenError as problem:
            raise problem.shortened() from None

    @property
    def signature(self) -> str:
        """The signature as it is written."""
        own = {t.name: t.text for t in self._composite.tensors}
        own |= {t.name: f"{t.name}{{{t.word}}}[{' '.join(t.shape)}]" for t in self._composite.generic}
        taken, made = [[own[name] for name in names] for names in (
            self._composite.inputs, [n for n in self._composite.outputs if n not in self._composite.inputs])]
        taken += [f"{name}={value!r}" for name, value in self.attributes.items()]
        return f"{self.name}({', '.join(taken)}) -> {', '.join(made or self._composite.outputs)}"

    @property
    def instances(self) -> tuple[Operator, ...]:
        """The operators that were compiled so far."""
        return tuple(self._operators.values())

    def __repr__(self) -> str:
        return f"<caten operator {self.signature}>"

    def __reduce__(self) -> Any:
        return _unpickled, (self.name, self._spec, self._options, self._make)

    def _chosen(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Operator:
        call = tuple([key(a) for a in args]), tuple([(name, (static_key if name in self.attributes else key)(value))
                                                     for name, value in named.items()])
        with suppress(KeyError, TypeError):                  # TypeError: what is neither array nor number
            return self._by_call[call]
        given = {name: tuples(value)
                 for name, value in named.items() if name in self.attributes}
        for name, value in given.items():
            if not is_value(value):
                raise error("E675", f"{self.name}: the attribute '{name}' is {described(value)}",
                            hint="it may be a number, True, False, None, a text, or a tuple of them")
        arrays = dict(self._arrays(args, named))
        try:
            instance = of_call(self._composite.generic, arrays, given, self.attributes.items())
        except CatenError as problem:
            raise error("E675", f"{self.name}: {problem.diagnostics[0].message}") from None
        exact = instance.arrays, static_key(instance.attributes)
        with self._lock:
            if exact not in self._operators:
                try:
                    self._operators[exact] = self._compiled(instance, given)
                except CatenError as problem:
                    if (said := misfit(problem, self.attributes.items(), given)) is not None:
                        raise error("E675", f"{self.name}: {said}") from None
                    raise CatenError(*[replace(d, message=f"{self.name}: {d.message}") if d.code == "E675" else d
                                       for d in problem.diagnostics]) from None
        with suppress(TypeError):
            self._by_call[call] = self._operators[exact]
        return self._operators[exact]

    def _compiled(self, instance: Instance, given: Mapping[str, Any]) -> Operator:
        try:
            made = self._make([self._spec], replace(self._options, instances=(instance,)))
        except CatenError as problem:
            if (filled := for_each_axis(problem, self.attributes.items(), given)) is None:
                raise
            return self._compiled(replace(instance, attributes=tuple(sorted(filled.items()))), filled)
        assert isinstance(made, Operator)
        return made

    def _arrays(self, args: tuple[Any, ...],
                named: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
        """The element types and shapes of the inputs that are arrays, or numbers of numpy."""
        for name, value in {**dict(zip(self._composite.inputs, args, strict=False)), **named}.items():
            if name not in self._composite.inputs:
                continue
            array = value if isinstance(value, np.generic) else as_array(value)
            if array is None:                                # a number of Python takes the type of the arrays
                if isinstance(value, bool | int | float | complex):
                    yield name, (f"{type(value).__name__}?", ())
                continue
            dtype = dtype_of(array)
            if dtype is None:
                raise error("E673", f"{self.name}: '{name}' has elements of type {array.dtype}, which no kernel takes")
            yield name, (dtype, array.shape)


def _unpickled(name: str, spec: SpecText, options: Options, make: Make) -> GenericOperator:
    found = {c.name: c for c in composites_of(spec, options)[0]}
    return GenericOperator(found[name], spec, options, make)
