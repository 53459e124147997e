"""Why values are stored between kernels: the rule of the sweep (`fusion`) that ends a kernel there, as data and in
English."""
from __future__ import annotations

from ..core.expr import Expr, Var
from ..core.text import flat, form_of
from ..frozen import frozen
from .values import Indexed, Read, Reduce


@frozen
class Rule:
    """A rule without figures."""

    text: str


@frozen
class Limit:
    """A figure is above its limit: a row of the cost table."""

    what: str
    found: int
    most: int


@frozen
class Access:
    """A read at another index than the outer loops have. `axis`: the axis of what is read; `own`: the axis of the
    reader that is its index there, by position, the reduced ones last; None if the index is an expression."""

    axis: int
    index: Expr
    own: int | None
    how: str


Reason = Rule | Limit | Access


@frozen
class Boundary:
    """`source` is stored by one kernel and read by another one, that of `reader`."""

    source: str
    reader: str
    why: Reason


KEPT = Rule("[schedule] fusion keeps it")
APART = Rule("[schedule] fusion keeps them apart")
OUTPUT = Rule("an output is stored")
NO_MAP = Rule("only a map is computed by its readers, and it is none")
NEST = Rule("a nest is a kernel by itself")
REMAINDERS = Rule("a map that chooses elements by remainders of its index is computed once")
CONTRACTION = Rule("a contraction is not computed again, and shares a kernel with its epilogue only")
WINDOW = Rule("a sum of products over a window of unknown extent shares all of its loops or none")
READS_CONTRACTION = Rule("what finishes a contraction is computed once, with it")
SCATTER = Rule("a scatter is a kernel by itself")
SCAN = Rule("a scan shares a kernel with maps only")
OTHER_MEMBERS = Rule("the kernel of the epilogue has further members")
FIRST_READER = Rule("a value is computed once, in the kernel of the reader that runs first")
COMPARES = Rule("an operand of a contraction that compares elements or axes is computed before it")
SEVERAL_ARRAYS = Rule("an operand of a contraction that reads several arrays of full rank is computed before it")
BORDER = Rule("an operand of a contraction that has a border around shifted elements is computed before it")
PARTS = Rule("an operand of a contraction that is a part of complex numbers is computed before it")
SEVERAL_READERS = Rule("a map with several readers that reads several arrays of full rank is computed once")
OF_REDUCTION = Rule("an operand of a contraction that reads a reduction is computed before it")
ONE_VALUE = Rule("a value without axes has no outer loop to share")
DIAGONAL = Rule("two axes of the reader are the same axis of what it reads")
EXTENT_ONE = Rule("the only loops in common have one iteration")
NO_BLOCKS = Rule("a device with groups of threads has no kernels of blocks of rows, where they would be together")


def misread(read: Read, axis: int, reader: Indexed) -> Access:
    """How a value reads one axis of another one."""
    index = read.index[axis]
    names = [a.name for a in (*reader.axes, *(reader.over if isinstance(reader, Reduce) else ()))]
    if isinstance(index, Var) and index.name in names:
        own = names.index(index.name)
        how = "reduced" if own >= len(reader.axes) else "transposed" if own != axis else "not an outer loop"
        return Access(axis, index, own, how)
    if any(isinstance(n, Read) for n in index.unique()):
        return Access(axis, index, None, "gathered")
    return Access(axis, index, None, "shifted" if index.variables & set(names) else "one element")


def line_of(b: Boundary) -> str:
    """`v0 | v1: v1 reads axis 0 of v0 at its own axis 1 (transposed)`."""
    return f"{b.source} | {b.reader}: {told(b.why, b.source, b.reader)}"


def told(why: Reason, source: str, reader: str) -> str:
    """A reason in English."""
    match why:
        case Rule(text):
            return text
        case Limit(what, found, most):
            return f"{what} {found}, more than {most}"
        case Access(axis, _, int(own), how):
            return f"{reader} reads axis {axis} of {source} at its own axis {own} ({how})"
        case Access(axis, index, None, how):
            return f"{reader} reads axis {axis} of {source} at {flat(form_of(index))} ({how})"
    raise AssertionError(why)
