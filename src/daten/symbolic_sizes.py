"""Sizes that vary between the calls of a function that `jit` traces once: `Var`, and arithmetic with such sizes."""
from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from caten.core.expr import Const, Expr, Op, index
from caten.core.expr import Var as Name
from caten.core.size_formula import evaluate
from caten.core.text import show
from caten.loop.affine import canonical, expression, linear

if TYPE_CHECKING:
    from caten.loop.context import Context

MOST = (1 << 31) - 1


@dataclass(frozen=True)
class Var:
    """A size that varies from `low` to `high`, both included, as the extent of axes of arguments:
    `jit(f, dynamic_shapes={"x": {0: Var("n", 1, 4096)}})`. Axes with the same Var have the same extent. ValueError if
    `name` is not an identifier or the range is not within 0 to 2^31 - 1, TypeError if a bound is no integer."""

    name: str
    low: int = 0
    high: int = MOST

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ValueError(f"Var: {self.name!r} is no name")
        for bound in ("low", "high"):
            try:
                object.__setattr__(self, bound, operator.index(getattr(self, bound)))
            except TypeError:
                raise TypeError(f"Var: the bounds of the size {self.name} are integers, not "
                                f"{getattr(self, bound)!r}") from None
        if not 0 <= self.low <= self.high <= MOST:
            raise ValueError(f"Var: the size {self.name} cannot be from {self.low} to {self.high}")


@dataclass(frozen=True)
class Variables:
    """The sizes that vary in a trace, and what they are in the call that is traced."""

    variables: Mapping[str, Var]
    values: Mapping[str, int]
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        from caten.loop.context import Context  # slow to import, and most programs have no such sizes
        object.__setattr__(self, "context", Context({v.name: (v.low, v.high) for v in self.variables.values()}))

    def size(self, formula: Expr) -> int | SymbolicSize:
        """The value of a formula: a number if it is one for all values of the sizes."""
        e = canonical(formula)
        return int(evaluate(e, {})) if isinstance(e, Const) else SymbolicSize(e, self)

    def unite(self, a: Expr, b: Expr) -> None:
        """Two extents have to be equal: ValueError if they are not for all values of the sizes."""
        if not self.equal(a, b):
            raise ValueError(f"jit: {text_of(canonical(a))} and {text_of(canonical(b))} have to be equal here, and are "
                             f"not for {self.ranges(a, b)}")

    def fix(self, *formulas: Expr) -> None:
        """These have to be numbers: ValueError if they vary."""
        for e in formulas:
            if not isinstance(canonical(e), Const):
                raise ValueError(f"jit: {text_of(canonical(e))} has to be one number here, and varies with "
                                 f"{self.ranges(e)}")

    def equal(self, a: Expr, b: Expr) -> bool:
        """Are two formulas equal for all values of the sizes?"""
        return linear(a) == linear(b) or self.context.proves(Op("eq", (a, b)))

    def ranges(self, *formulas: Expr) -> str:
        """The sizes in formulas, and what they may be."""
        names = sorted(frozenset().union(*[e.variables for e in formulas]))
        return ", ".join([f"{n} from {self.variables[n].low} to {self.variables[n].high}" for n in names])


class Symbolic(ABC):
    """A number that differs from call to call: what can be asked of sizes and of what is computed from them."""

    __slots__ = ()

    @abstractmethod
    def value(self, values: Mapping[str, int] | None = None) -> Any:
        """What it is for some values of the sizes, or in the call that is traced."""

    @abstractmethod
    def _ask(self, what: str) -> NoReturn:
        """ValueError: it is needed as a value of Python."""

    @abstractmethod
    def _compared(self, sign: str, other: Any) -> Any:
        """Is it so for all values of the sizes? ValueError where it depends on them."""

    def _combined(self, sign: str, a: Any, b: Any) -> Any:
        """a sign b, as a number with a fraction."""
        if not all(isinstance(v, int | float | Symbolic) for v in (a, b)):
            return NotImplemented
        function = REAL[sign]
        of_sizes = sign == "/" and all(isinstance(v, int | SymbolicSize) for v in (a, b))
        return SymbolicFloat(lambda values: function(value_of_all(a, values), value_of_all(b, values)),
                             f"({a!r} {sign} {b!r})", self._ask, (a, b) if of_sizes else None)

    def __add__(self, other: Any) -> Any: return self._combined("+", self, other)
    def __radd__(self, other: Any) -> Any: return self._combined("+", other, self)
    def __sub__(self, other: Any) -> Any: return self._combined("-", self, other)
    def __rsub__(self, other: Any) -> Any: return self._combined("-", other, self)
    def __mul__(self, other: Any) -> Any: return self._combined("*", self, other)
    def __rmul__(self, other: Any) -> Any: return self._combined("*", other, self)
    def __truediv__(self, other: Any) -> Any: return self._combined("/", self, other)
    def __rtruediv__(self, other: Any) -> Any: return self._combined("/", other, self)
    def __pow__(self, other: Any) -> Any: return self._combined("**", self, other)
    def __rpow__(self, other: Any) -> Any: return self._combined("**", other, self)
    def __neg__(self) -> Any: return self._combined("-", 0, self)
    def __lt__(self, other: Any) -> Any: return self._compared("<", other)
    def __le__(self, other: Any) -> Any: return self._compared("<=", other)
    def __gt__(self, other: Any) -> Any: return self._compared(">", other)
    def __ge__(self, other: Any) -> Any: return self._compared(">=", other)
    def __eq__(self, other: Any) -> Any: return self._compared("==", other)

    def __ne__(self, other: Any) -> Any:
        equal = self._compared("==", other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        return not self._compared("==", 0)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """np.sqrt(n) is a number too; beside an array it is the array's."""
        if method != "__call__" or named or not all(isinstance(v, int | float | Symbolic) for v in inputs):
            self._ask(f"{self!r} beside an array, in np.{ufunc.__name__},")
        return SymbolicFloat(lambda values: ufunc(*[value_of_all(v, values) for v in inputs]),
                             f"{ufunc.__name__}({', '.join(map(repr, inputs))})", self._ask)

    def __index__(self) -> int: self._ask(repr(self))
    def __int__(self) -> int: self._ask(repr(self))
    def __float__(self) -> float: self._ask(repr(self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """An array of Python's objects, with which NumPy computes as Python does: np.prod(x.shape) is a size."""
        if dtype not in (None, object):
            self._ask(repr(self))
        import numpy as np  # jit needs it anyway
        made = np.empty((), object)
        made[()] = self
        return made


class SymbolicFloat(Symbolic):
    """What is computed from sizes that vary and has a fraction: n / 2, n ** 0.5, np.sqrt(n). It can be computed with,
    and be a number beside a tensor."""

    __slots__ = ("ask", "evaluate", "quotient", "text")

    def __init__(self, evaluate: Callable[[Mapping[str, int] | None], Any], text: str,
                 ask: Callable[[str], NoReturn], quotient: tuple[Any, Any] | None = None) -> None:
        self.evaluate, self.text, self.ask, self.quotient = evaluate, text, ask, quotient

    def value(self, values: Mapping[str, int] | None = None) -> float:
        """What it is for some values of the sizes, or in the call that is traced."""
        return float(self.evaluate(values))

    def __repr__(self) -> str:
        return self.text

    def __floor__(self) -> Any:
        """math.floor(n / 2) is a size."""
        a, b = self.quotient or self._ask(f"floor({self!r})")
        return a // b

    def __ceil__(self) -> Any:
        a, b = self.quotient or self._ask(f"ceil({self!r})")
        return -(-a // b)

    def _ask(self, what: str) -> NoReturn:
        self.ask(what)

    def _compared(self, sign: str, other: Any) -> Any:
        self._ask(f"{self!r} {sign} {other!r}")


REAL: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul,
                                              "/": operator.truediv, "**": operator.pow}


class SymbolicSize(Symbolic):
    """An extent that differs from call to call. It can be added, subtracted, multiplied and divided, be an extent, the
    bound of a slice and a number beside a tensor, and be compared where its bounds decide; ValueError where Python or
    NumPy asks for its value."""

    __slots__ = ("formula", "variables")

    def __init__(self, formula: Expr, variables: Variables) -> None:
        self.formula, self.variables = formula, variables

    def value(self, values: Mapping[str, int] | None = None) -> int:
        """What it is for some values of the sizes, or in the call that is traced."""
        return int(evaluate(self.formula, self.variables.values if values is None else values))

    def __repr__(self) -> str:
        return text_of(self.formula)

    def __hash__(self) -> int:
        return hash(self.formula)

    def _combined(self, sign: str, a: Any, b: Any) -> Any:
        if sign not in INTEGERS or not all(isinstance(v, int | SymbolicSize) for v in (a, b)):
            return super()._combined(sign, a, b)
        return self.variables.size(Op(INTEGERS[sign], (formula_of(a), formula_of(b))))

    def __floor__(self) -> Any: return self
    def __ceil__(self) -> Any: return self
    def __floordiv__(self, other: Any) -> Any: return self._divided(self, other)
    def __rfloordiv__(self, other: Any) -> Any: return self._divided(other, self)
    def __mod__(self, other: Any) -> Any: return self - self // other * other
    def __rmod__(self, other: Any) -> Any: return other - other // self * self

    def _divided(self, a: Any, b: Any) -> Any:
        """The quotient, rounded down; exact where it is for all values of the sizes."""
        if not all(isinstance(v, int | SymbolicSize) for v in (a, b)):
            return NotImplemented
        above, below = formula_of(a), formula_of(b)
        exact = linear(above).quotient(linear(below))
        if exact is not None and self.variables.context.proves(Op("ne", (below, index(0)))):
            return self.variables.size(expression(exact))
        return self.variables.size(Op("floordiv", (above, below)))

    def _compared(self, sign: str, other: Any) -> Any:
        if not isinstance(other, int | SymbolicSize):
            return NotImplemented
        condition = Op(COMPARISONS[sign], (self.formula, formula_of(other)))
        if self.variables.context.proves(condition):
            return True
        if self.variables.context.refutes(condition):
            return False
        self._ask(f"{self!r} {sign} {other!r}")

    def _ask(self, what: str) -> NoReturn:
        raise ValueError(f"jit: {what} is asked for as a value of Python, and differs from call to call: "
                         f"{self.variables.ranges(self.formula)}. Give it to an operator of tensors instead, or leave "
                         f"its axis out of dynamic_shapes: then there is a trace for each value")


INTEGERS = {"+": "add", "-": "sub", "*": "mul"}
COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq"}
SIGNS = {**{op: sign for sign, op in INTEGERS.items()}, "floordiv": "//", "mod": "%"}


def text_of(formula: Expr, inside: bool = False) -> str:
    """A formula as Python writes it."""
    match formula:
        case Op(("add" | "sub" | "mul" | "floordiv" | "mod") as op, (a, b)):
            text = f"{text_of(a, True)} {SIGNS[op]} {text_of(b, True)}"
            return f"({text})" if inside else text
        case Const():
            return str(formula.value)
    return formula.name if isinstance(formula, Name) else show(formula, 1 << 30)



def formula_of(size: Any) -> Expr:
    """A size as a formula."""
    return size.formula if isinstance(size, SymbolicSize) else index(int(size))


def value_of_all(given: Any, values: Mapping[str, int] | None = None) -> Any:
    """A size, or sizes in a tuple, as numbers: for values of those that vary, or in the call that is traced. Anything
    else as it is."""
    if isinstance(given, tuple | list):
        return tuple([value_of_all(v, values) for v in given])
    return given.value(values) if isinstance(given, Symbolic) else given


def has_symbolic(*values: Any) -> bool:
    """Is one of these, or in one of these tuples, a size that varies?"""
    return any(isinstance(v, Symbolic) or (isinstance(v, tuple | list) and has_symbolic(*v)) for v in values)
