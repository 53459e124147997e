"""`@caten.op`: a Python function as an operator that is compiled for the arguments of its calls."""
from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, overload

import numpy as np

from ..api import compiled, options_of
from ..core.expr import Const, Op
from ..core.size_formula import evaluate, formula, names
from ..errors import CatenError
from ..frontend.spec_files import SpecText
from ..options import Options
from ..runtime.call import Operator
from .call_keys import has_plain_key, key, plain_key, static_key
from .function_reader import Function, fail, read_function
from .function_spec import spec_of


class LazyCall(NamedTuple):
    """A call that another library makes part of its graph: the spec, the name of the operator in it, and the parameters
    that are its inputs."""

    spec: SpecText
    name: str
    inputs: tuple[str, ...]


class OpFunction:
    """An operator that is written as a Python function.

    The first call with new types or ranks of arguments compiles the function for them. Later calls use the kernel, also
    in another process. Parameters without annotation get the types of the arguments. Axes that have equal extents in a
    call share one size of the kernel; a call in which other axes are equal is compiled again.

    Raises CatenError, with the line in the function, if the body uses something that is not supported; E67x if the
    function itself cannot be an operator (its parameters, annotations or source)."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, function)
        self.options = options
        self._function = function
        self._signature = inspect.signature(function)
        self._static = frozenset([p.name for p in self._signature.parameters.values() if p.kind is p.KEYWORD_ONLY])
        self._operators: dict[str, Operator] = {}            # by the text of the spec
        self._by_call: dict[Hashable, tuple[Callable[..., Any], tuple[str, ...]]] = {}
        self._plain: dict[Hashable, Callable[..., Any]] = {} # of calls with arrays and numbers by position
        self._lazy: dict[Hashable, LazyCall] = {}
        self._last: SpecText | None = None
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the operator and return what the function returns.

        Results are new arrays. If the function writes to the elements of a parameter, the caller's array is changed in
        place; if it also returns that parameter, the same array is returned. If the type of an argument has the method
        `__caten_function__(function, arguments)`, as lazy tensors have, its result is returned."""
        if not named:
            with suppress(KeyError):
                return self._plain[plain_key(args)](*args)
        given = self._bound(args, named)
        for value in given.values():
            if (takes := getattr(type(value), "__caten_function__", None)) is not None:
                return takes(self, given)
        call = self._key(given)
        try:
            operator, passed = self._by_call[call]
        except (KeyError, TypeError):                        # TypeError: what is neither array nor number
            try:
                made, passed = self._instance(given)
                operator, passed = self._by_call[call] = self._returning(made), passed
            except CatenError as problem:
                raise problem.shortened() from None
        if not named and len(args) == len(passed) and has_plain_key(args):
            self._plain[plain_key(args)] = operator
        return operator(*[given[name] for name in passed])

    def _returning(self, operator: Operator) -> Callable[..., Any]:
        """What returns the outputs of an operator that the function returns, without those of parameters that it only
        changes."""
        changed = [name for name in operator.outputs if name in self._read.places]
        others = 0 if self._read.returns_first(changed) else len(changed)
        if not others:
            return operator
        returned = None if self._read.returned is None else len(operator.outputs) - others

        def call(*args: Any) -> Any:
            results = operator(*args)
            return None if returned is None else results[others] if returned == 1 else results[others:]
        return call

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __reduce__(self) -> str:
        return str(self.__qualname__)                        # pickled by name, as functions are

    def __repr__(self) -> str:
        return f"<caten function {self.__name__}{self._signature}>"

    def _key(self, given: Mapping[str, Any]) -> tuple[Hashable, ...]:
        """What the kernel of a call depends on."""
        return tuple([static_key(value) if name in self._static else key(value) for name, value in given.items()])

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> Mapping[str, Any]:
        bound = self._signature.bind(*args, **named)         # TypeError as of any function
        bound.apply_defaults()
        return bound.arguments

    # specs

    @property
    def spec(self) -> str:
        """The spec of the function, in TOML: for the types of the last call, or before any call for its annotations.
        E673 if a parameter has no annotation and there was no call."""
        try:
            return (self._last or self._spec(self._defaults())).text
        except CatenError as problem:
            raise problem.shortened() from None

    def spec_of(self, *args: Any, **named: Any) -> str:
        """The spec in TOML for a call with these arguments."""
        try:
            return self._spec(self._bound(args, named)).text
        except CatenError as problem:
            raise problem.shortened() from None

    def operator(self, *args: Any, **named: Any) -> Operator:
        """The compiled operator for a call with these arguments: a `caten.Operator`, to inspect it or to `bind` it."""
        try:
            return self._instance(self._bound(args, named))[0]
        except CatenError as problem:
            raise problem.shortened() from None

    def lazy(self, given: Mapping[str, Any]) -> LazyCall:
        """What a type with the method `__caten_function__` applies itself: the spec for these arguments, arrays and
        numbers by parameter, of which only types and shapes are read. E673 for a parameter that the function changes:
        such arguments have no memory that it could write to."""
        call = self._key(given)
        try:
            if call not in self._lazy:
                read = self._read
                for name in read.changed:
                    fail("E673", f"'{name}' is changed in place, and a lazy array cannot be", read.places.get(name),
                         f"make a copy and return it: {name} = {name}.copy()")
                spec = self._spec(given)
                inputs = tuple([p.name for p in read.parameters if p.kind is not p.KEYWORD_ONLY])
                self._lazy[call] = LazyCall(spec, read.name, inputs)
            return self._lazy[call]
        except CatenError as problem:
            raise problem.shortened() from None

    @functools.cached_property
    def _read(self) -> Function:
        return read_function(self._function)

    def _defaults(self) -> dict[str, Any]:
        return {p.name: p.default for p in self._signature.parameters.values() if p.default is not p.empty}

    def _spec(self, given: Mapping[str, Any]) -> SpecText:
        return spec_of(self._read, given, self.options)

    def _instance(self, given: Mapping[str, Any]) -> tuple[Operator, tuple[str, ...]]:
        """The operator for these arguments, and the names of those that it is given."""
        with self._lock:
            spec = self._spec(given)
            if spec.text not in self._operators:
                made = compiled([spec], self.options)
                assert isinstance(made, Operator)
                self._operators[spec.text] = made
            self._last = spec
            passed = tuple([p.name for p in self._read.parameters if p.kind is not p.KEYWORD_ONLY])
            return self._of_sizes(self._operators[spec.text], spec, given), passed

    def _of_sizes(self, operator: Operator, spec: SpecText, given: Mapping[str, Any]) -> Operator:
        """The operator for the sizes of these arguments alone, where the function writes out the number of elements, as
        `x.reshape(8, 16)` does: with constant sizes its indices are no quotients that each element computes."""
        products = [formula(text) for text in operator.manifest["conditions"]]
        fixed = [c for c in products if isinstance(c, Op) and c.fn == "eq" and isinstance(c.args[1], Const)
                 and len(names(c.args[0])) > 1]
        sizes = {extent: n for a in operator.manifest["arguments"] if a["name"] in given and a["kind"] == "tensor"
                 for extent, n in zip(a["shape"], np.shape(given[a["name"]]), strict=True)}
        if not fixed or not all(names(c) and {*names(c)} <= sizes.keys() and evaluate(c, sizes) for c in products):
            return operator
        known = f"{spec.text}\0{sizes}"
        if known not in self._operators:
            binds = tuple([(name, n) for name, n in sizes.items() if isinstance(name, str) and name.isidentifier()])
            made = compiled([spec], replace(self.options, binds=(*self.options.binds, *binds)))
            assert isinstance(made, Operator)
            self._operators[known] = made
        return self._operators[known]


@overload
def op(function: Callable[..., Any], /) -> OpFunction: ...


@overload
def op(*, runtime: str = ..., config: Mapping[str, Any] | None = ..., opt: int = ..., bounds_check: bool = ...,
       reassociate: bool = ..., rewrite: bool = ..., cache: bool = ...,
       verify: bool = ...) -> Callable[[Callable[..., Any]], OpFunction]: ...


def op(function: Callable[..., Any] | None = None, /, *, runtime: str = "clang",
       config: Mapping[str, Any] | None = None, opt: int = 2, bounds_check: bool = True, reassociate: bool = True,
       rewrite: bool = True, cache: bool = True, verify: bool = False) -> Any:
    """Make an operator of a Python function: `@caten.op`, or `@caten.op(opt=3)` with options of `caten.compile`.

    The source of the function is compiled; Python never executes it. It may have loops over `range`, accesses to
    elements, and NumPy expressions. Annotate arrays as `A: caten.f32["M K"]`; without annotation they get the types of
    the arguments. Parameters after `*` are constants at compile time. Raises UsageError E668 for an option with a wrong
    value; see `OpFunction` for the errors of a call.
    """
    options = options_of("op", runtime=runtime, config=config, opt=opt, bounds_check=bounds_check,
                         reassociate=reassociate, rewrite=rewrite, cache=cache, verify=verify)
    if function is None:
        return lambda given: OpFunction(given, options)
    return OpFunction(function, options)
