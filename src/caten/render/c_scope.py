"""The scope of a kernel in C: the C names of variables, the layouts of arrays, the lanes of vectors."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..core.dtypes import DTYPES, computed, is_packed
from ..core.expr import Bitcast, Cast, Expr, Op, Var
from ..core.node import substitute
from ..core.scalars import COMPARISONS
from ..frozen import frozen
from ..loop.accesses import equalities
from ..loop.statements import Shuffle
from ..mathematics.elementary.arithmetic import Scaled
from .c_identifiers import Names
from .code import Code
from .helper_functions import Helpers


@frozen
class View:
    """The layout of a buffer or local: shape, memory order and strides; for named registers the elements per
    variable."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    order: tuple[int, ...]
    strides: tuple[Expr, ...] = ()
    width: int = 0                         # named registers: elements in one variable (0: an array in memory)
    outside: bool = False                  # memory of the caller: a bool in it may be any byte
    shared: bool = False                   # may several threads write neighbouring elements?

    @property
    def packed(self) -> bool:
        """Do two elements share a byte?"""
        return self.outside and is_packed(self.dtype)


@dataclass
class Scope(ABC):
    """The visible names. `views` and `vectors` grow with each declaration; `used` collects the parameters that the text
    mentions. Subclasses add addresses, conditions and values; they call each other through the abstract methods."""

    helpers: Helpers
    names: Names
    views: dict[str, View] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()                                 # bool scalars of the caller
    indices: frozenset[str] = frozenset()                               # loop variables and sizes
    vectors: dict[str, tuple[int, int]] = field(default_factory=dict)  # vector names: lanes, and bits of a mask's lanes
    used: dict[str, None] = field(default_factory=dict)
    lanes_of: dict[Op, int] = field(default_factory=dict)
    parts: int = 0                                       # names of repeated parts so far, over all kernels

    def lanes(self, expr: Expr) -> int:
        """The number of lanes of an expression; 1 for a scalar."""
        match expr:
            case Var(name=name):
                return self.vectors.get(name, (1, 0))[0]
            case Op(args=args):
                known = self.lanes_of.get(expr)  # a name is declared before it is used: what is known once stays so
                if known is None:
                    known = self.lanes_of[expr] = max([self.lanes(a) for a in args])
                return known
            case Cast(arg=arg) | Bitcast(arg=arg) | Scaled(value=arg):
                return self.lanes(arg)
        return expr.lanes

    def mask_bits(self, expr: Expr) -> int:
        """The width of lanes that a condition on vectors comes in most naturally."""
        match expr:
            case Var(name=name) if name in self.vectors:
                return self.vectors[name][1]
            case Op(fn=fn, args=args) if fn in (*COMPARISONS, "isnan", "isinf") and args[0].dtype != "bool":
                return DTYPES[args[0].dtype].bits
            case Op(args=args):
                return max([self.mask_bits(a) for a in args if self.lanes(a) > 1])
            case Cast(arg=arg) if arg.dtype != "bool":
                return DTYPES[computed(arg.dtype)].bits
            case Cast(arg=arg) | Shuffle(arg=arg):
                return self.mask_bits(arg)
        return 8

    def mention(self, name: str) -> str:
        """The C name of a variable or buffer."""
        self.used[name] = None
        return self.names.of(name)

    @contextmanager
    def given(self, cond: Expr) -> Iterator[None]:
        """Within the block `cond` holds: a size that it fixes becomes a constant in the shapes of arrays."""
        known = dict(equalities(cond))
        before = dict(self.views)
        for name, view in before.items() if known else ():
            shape, strides = [tuple([substitute(e, known) for e in axes]) for axes in (view.shape, view.strides)]
            self.views[name] = replace(view, shape=shape, strides=strides)
        yield
        self.views.update(before)

    @abstractmethod
    def value(self, expr: Expr) -> Code:
        """The C text of a value; a condition on vectors becomes a mask of its natural width."""

    @abstractmethod
    def condition(self, expr: Expr, bits: int, lanes: int) -> Code:
        """The C text of a condition; on vectors a mask with lanes of `bits` bits."""
