"""Plans of sums over windows that share no operand with other results: depthwise convolutions and their gradients."""
from __future__ import annotations

from math import prod

from ...core.expr import Expr, Op
from ...frozen import frozen
from ...loop.accesses import stride_in
from ...loop.statements import Aref, Incf, LoopProgram
from ..analysis.classify import Chain, Reduction, contiguous_loop, operands, reduction, under
from ..analysis.loop_queries import mentions
from .parameters import Parameter
from .plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version, axes_of

LINES = Parameter("windows.lines", (4, 8, 16, 32), 16, what="lines of an image that are copied at once")
VECTORS = Parameter("windows.vectors", (1, 2, 4, 8), 4, what="vectors of a line that are copied at once")

MOST_TAPS = 64                  # of a window, with which sums are unrolled
FEW_TAPS = 9                    # of a window that is read in less time than it takes to copy an image
SPARE = 2                       # registers for what is read
ROWS, MORE_ROWS = 4, 8          # lines of results in registers; more where there are many registers, and no step
MANY_REGISTERS = 32


@frozen
class WindowSum:
    """A sum of products of an image and another array over windows, as planners see it. `out`: the results; `image`:
    the array that windows move over; `other`: the weights, or in the gradient of these that of the results. `moves`:
    the loops over the lines and columns of the image, the contiguous one last, each with that over the taps along it.
    `step`: of the windows along a line. `outside`: the other loops over results; `sums`: the other summed ones."""

    out: Aref
    image: str
    other: str
    lanes: int
    moves: tuple[tuple[Axis, Axis], ...]
    step: int | None
    outside: tuple[Axis, ...]
    sums: tuple[Axis, ...]


@frozen
class PaddedLines(Plan):
    """The lines of an image are copied with zeros around them, `lines` × `width` results at once: windows are then read
    as vectors without conditions. `rows` lines of results are in registers."""

    lanes: int
    rows: int
    lines: int
    width: int


@frozen
class TapsOfLines(Plan):
    """The gradient of weights without channels or filters that share an operand, with lanes along the lines of images,
    along which it is summed: a vector of partial sums for each tap of a line of the window, or of all lines if
    `all_taps`. The lines of the image and of the gradient are copied with zeros around them, `lines` × `width` at once;
    `rows` lines are added together, so that they share vectors of the image."""

    lanes: int
    all_taps: bool
    rows: int
    lines: int
    width: int


def padded_lines(w: WindowSum, context: PlanContext) -> Version:
    """For windows of constant size with weights, along lines of results that are contiguous."""
    many = w.step == 1 and context.machine.registers >= MANY_REGISTERS
    rows, lines = (MORE_ROWS if many else ROWS, context.value(LINES)) if len(w.moves) > 1 else (1, 1)
    return Version(PaddedLines(w.lanes, rows, lines, _width(w, context)))


def taps_of_lines(w: WindowSum, context: PlanContext) -> Version:
    """For gradients of weights of a constant number of taps."""
    taps, free = [tap.count or 1 for _, tap in w.moves], context.machine.registers - SPARE
    if taps[-1] > free:
        raise NotApplicable("the taps of a window row do not fit the registers")
    rows, lines = (ROWS, 2 * context.value(LINES)) if len(w.moves) > 1 else (1, 1)
    return Version(TapsOfLines(w.lanes, prod(taps) <= free, rows, lines, _width(w, context)))


def match_window_sum(program: LoopProgram, chain: Chain, context: PlanContext) -> WindowSum:
    """A perfect nest as a sum over windows."""
    conds, total, operands = _sum_of_products(chain)
    reads, moves = _windows(total, operands, total.kept, total.summed)
    w = _window_sum(chain, total, reads, moves, contiguous_loop(program, total.out, total.kept), context)
    if not conds or (w.step == 1 and prod([tap.count or 1 for _, tap in w.moves]) <= FEW_TAPS):
        raise NotApplicable("windows are read where they are: they have no padding, or few taps and no step")
    return w


def match_window_gradient(program: LoopProgram, chain: Chain, context: PlanContext) -> WindowSum:
    """A perfect nest as the gradient of the weights of a sum over windows."""
    _, total, operands = _sum_of_products(chain)
    reads, moves = _windows(total, operands, total.summed, total.kept)
    return _window_sum(chain, total, reads, moves, contiguous_loop(program, reads[1], total.summed), context)


WINDOW_SUMS = NestKind("windows", "Sums of products over windows of an image, each with weights of its own.",
                       match_window_sum, (padded_lines,))
WINDOW_GRADIENTS = NestKind("gradients of windows", "Gradients of the weights of such sums.", match_window_gradient,
                            (taps_of_lines,))


# -- their parts -------------------------------------------------------------------------------------------------------
def _width(w: WindowSum, context: PlanContext) -> int:
    """The columns that are copied at once, in elements: fewer vectors for short lines."""
    column, vectors = w.moves[-1][0], context.value(VECTORS)
    while column.count is not None and vectors > 1 and vectors * w.lanes >= 2 * column.count:
        vectors //= 2
    return vectors * w.lanes


def _sum_of_products(chain: Chain) -> tuple[tuple[Expr, ...], Reduction, list[tuple[Aref, Aref]]]:
    """The conditions of a sum of products, the sum, and its two operands in both orders."""
    total = reduction(chain)
    conds, body = under(chain.body)
    if total is None or len(body) != 1 or not isinstance(body[0], Incf) or body[0].fn != "add":
        raise NotApplicable("it is not a sum")
    value = body[0].value
    reads = operands(value, chain.names) if isinstance(value, Op) and value.fn == "mul" else []
    if len(reads) != 2:
        raise NotApplicable("it is not a sum of products")
    return conds, total, [(reads[0], reads[1]), (reads[1], reads[0])]


def _windows(total: Reduction, operands: list[tuple[Aref, Aref]], along: tuple[str, ...], inside: tuple[str, ...],
             ) -> tuple[tuple[Aref, Aref], list[tuple[str, str]]]:
    """The image and the other operand, and the loops along which windows move, each with that over taps inside them.
    Of the two, the other operand is the same for all iterations of the one that is over results."""
    for image, other in operands:
        moves = [(n, tap) for n in along for tap in inside
                 if any(mentions(i, (n,)) and mentions(i, (tap,)) for i in image.index)
                 and not mentions(other, {n, tap} & {*total.kept})]
        if moves:
            return (image, other), moves
    raise NotApplicable("no window moves over an image")


def _window_sum(chain: Chain, total: Reduction, reads: tuple[Aref, Aref], moves: list[tuple[str, str]], row: str | None,
                context: PlanContext) -> WindowSum:
    axes = {axis.name: axis for axis in axes_of(chain)}
    moves = sorted(moves, key=lambda move: move[0] == row)
    lines, taps = [n for n, _ in moves], [tap for _, tap in moves]
    if len(moves) > 2 or len({*lines}) < len(lines) or len({*taps}) < len(taps) or lines[-1] != row:
        raise NotApplicable("windows do not move along one or two axes of the image, or its lines are not contiguous")
    counts = [axes[tap].count for tap in taps]
    if not all(counts) or prod([n or 1 for n in counts]) > MOST_TAPS:
        raise NotApplicable("the windows have no constant size, or are large")
    return WindowSum(total.out, reads[0].buffer, reads[1].buffer, context.vector_lanes(chain.body),
                     tuple([(axes[n], axes[tap]) for n, tap in moves]),
                     next(stride_in(i, lines[-1]) for i in reads[0].index if mentions(i, lines[-1:])),
                     tuple([axes[n] for n in total.kept if n not in (*lines, *taps)]),
                     tuple([axes[n] for n in total.summed if n not in (*lines, *taps)]))
