"""Plans of sums over windows that share no operand with other results: depthwise convolutions and their gradients."""
from __future__ import annotations

from math import prod

from ...core.expr import Op
from ...frozen import frozen
from ...loop.accesses import stride_in
from ...loop.statements import Aref, Incf, LoopProgram
from ..analysis.classify import Chain, contiguous_loop, operands, reduction, under
from ..analysis.loop_queries import mentions
from .parameters import Parameter
from .plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version, axes_of

LINES = Parameter("windows.lines", (4, 8, 16, 32), 16, what="lines of an image that are copied at once")
VECTORS = Parameter("windows.vectors", (1, 2, 4, 8), 4, what="vectors of a line that are copied at once")

MOST_TAPS = 64                  # of a window, with which sums are unrolled
FEW_TAPS = 9                    # of a window that is read in less time than it takes to copy an image
ROWS = 4                        # lines of results in registers


@frozen
class WindowSum:
    """A sum of products of an image and weights over windows with padding, as planners see it. `out`: the results;
    `image`: the array that windows move over. `moves`: the loops over the lines and columns of results, the contiguous
    one last, each with that over the taps along it. `outside`: the other loops over results; `sums`: the other summed
    ones."""

    out: Aref
    image: str
    lanes: int
    moves: tuple[tuple[Axis, Axis], ...]
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


def padded_lines(w: WindowSum, context: PlanContext) -> Version:
    """For windows of constant size with weights, along lines of results that are contiguous."""
    column = w.moves[-1][0]
    vectors = context.value(VECTORS)
    while column.count is not None and vectors > 1 and vectors * w.lanes >= 2 * column.count:
        vectors //= 2
    rows, lines = (ROWS, context.value(LINES)) if len(w.moves) > 1 else (1, 1)
    return Version(PaddedLines(w.lanes, rows, lines, vectors * w.lanes))


def match_window_sum(program: LoopProgram, chain: Chain, context: PlanContext) -> WindowSum:
    """A perfect nest as a sum over windows."""
    lanes, total = context.vector_lanes(chain.body), reduction(chain)
    conds, body = under(chain.body)
    if total is None or len(body) != 1 or not isinstance(body[0], Incf) or body[0].fn != "add":
        raise NotApplicable("it is not a sum")
    value = body[0].value
    reads = operands(value, chain.names) if isinstance(value, Op) and value.fn == "mul" else []
    if len(reads) != 2:
        raise NotApplicable("it is not a sum of products")
    axes = {axis.name: axis for axis in axes_of(chain)}
    for image, weights in (reads, reads[::-1]):
        moves = [(n, tap) for n in total.kept for tap in total.summed
                 if any(mentions(i, (n,)) and mentions(i, (tap,)) for i in image.index) and not mentions(weights, (n,))]
        if moves:
            break
    else:
        raise NotApplicable("no window moves over an image")
    row = contiguous_loop(program, total.out, total.kept)
    moves.sort(key=lambda move: move[0] == row)
    lines, taps = [n for n, _ in moves], [tap for _, tap in moves]
    if len(moves) > 2 or len({*lines}) < len(lines) or len({*taps}) < len(taps) or lines[-1] != row:
        raise NotApplicable("windows do not move along one or two axes of the image, or its lines are not contiguous")
    stride = next(stride_in(i, row) for i in image.index if mentions(i, (row,)))
    counts = [axes[tap].count for tap in taps]
    if not all(counts) or prod([n or 1 for n in counts]) > MOST_TAPS:
        raise NotApplicable("the windows have no constant size, or are large")
    if not conds or (stride == 1 and prod([n or 1 for n in counts]) <= FEW_TAPS):
        raise NotApplicable("windows are read where they are: they have no padding, or few taps and no step")
    return WindowSum(total.out, image.buffer, lanes, tuple([(axes[n], axes[tap]) for n, tap in moves]),
                     tuple([axes[n] for n in total.kept if n not in lines]),
                     tuple([axes[n] for n in total.summed if n not in taps]))


WINDOW_SUMS = NestKind("windows", "Sums of products over windows of an image, each with weights of its own.",
                       match_window_sum, (padded_lines,))
