"""Plans of contractions: products of matrices, of batches of them, and convolutions.

The general one packs panels of both operands, so that the innermost loops read them in a row, and keeps a tile of the result in registers (Goto and
van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008). The others are for calls in which that does not pay: an operand that fits a
cache is used where it lies; where the columns are few, the lanes of vectors lie along the sum, for a tile of the result would leave most of them
empty; where an operand is used once, it is swept through as it lies. Of convolutions the windows are packed (im2col; Chellapilla et al., High
Performance Convolutional Neural Networks for Document Processing, 2006).
"""
from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from ...core.dtypes import DTYPES, is_float
from ...core.program import Machine
from ...frozen import frozen
from ...loop.statements import LoopProgram
from ..analysis.classify import Chain, contiguous_loop, contraction
from ..analysis.nests import mentions
from .parameters import Parameter
from .plan import Axis, Family, Given, NotApplicable, Plan, Version, axes_of, both, running
from .sums import across

ROWS = Parameter("gemm.rows", (2, 3, 4, 5, 6, 8, 10, 12, 14), what="rows of the tile in registers")
VECTORS = Parameter("gemm.vectors", (1, 2, 3, 4), 2, what="vectors of a row of that tile")
DEPTH = Parameter("gemm.depth", (64, 128, 256, 512, 1024), 256, what="products that are summed between two visits of a tile")
QUARTERS = Parameter("gemm.quarters", (1, 2, 3), 2, what="quarters of the last cache of a core that the packed left operand fills")
PANELS = Parameter("gemm.panels", (8, 16, 32, 64, 128), 32, what="tiles along the columns of the right operand that are packed at once")
AHEAD = Parameter("gemm.ahead", (1, 2, 4, 8, 16), 4, what="rows that are asked for while one is packed")
ORDER = Parameter("gemm.order", (0, 1), 0, what="tiles go along the columns of the result (0) or down its rows (1) first")
UNROLL = Parameter("gemm.unroll", (1, 2, 4), 1, what="products of a tile that are written out")
STEPS = Parameter("gemm.steps", (1, 8, 32), 8, what="iterations up to which an inner sum is written out")
WIDTH = Parameter("convolution.width", (4, 8, 16), 8, what="places of a line in a tile; the lines are what is left of the tile")
SHARE = Parameter("convolution.share", (1, 2, 4), 2, what="how many times less is summed at once than in a plain product")
DOTS = Parameter("dots.columns", (4, 12, 24, 40, 64), 40, what="columns up to which products are summed along vectors")
DOT_ROWS = Parameter("dots.rows", (2, 4, 6, 8), what="rows of a tile of such sums")
FEW_ROWS = Parameter("narrow.rows", (1, 2, 3, 5, 9), 3, what="rows from which on packing the right operand pays")

PIECE = 2048                    # bytes of results that one thread of several sweeps; one alone takes as many as the first cache holds
LONG = 192                      # sums from which on few columns are summed along vectors
FEWER, MEDIUM = 16, 48          # and so few columns from sums of so many on
FEWEST = 3                      # columns, of which most of any vector of the result would be empty
DOT_COLUMNS = (4, 2)            # of a tile of sums along vectors
SHORT_ROWS = 16                 # up to which sums along vectors pay where the right operand lies along the sum, however many columns it has
TURNED_ROWS = 24                # fewer do not pay for turning the right operand
BETWEEN = 3                     # rows of a tile for what is left of the taller ones: a vector of sums alone would be waited for
SIDE_BY_SIDE = 2                # vectors of a row of a tile
ALONE = 4                       # vectors of a single row: fewer sums would wait for each other
SWEPT = 512                     # columns from which on results of one product each are swept through row by row, whatever their number
ONCE = 24                       # rows up to which the right operand is read so few times that it may lie in the last cache of a core
TURNED_SUMS = 48                # from which on it pays that the right operand need not be turned
FEW_PRODUCTS = 4                # of a batch, from which on each thread has its own
SMALL_ROWS = 32                 # of a product whose right operand fits the cache: work for one thread
NARROW = 4                      # tiles of a plain product that a line of a picture has at most
USUAL = 3                       # places of a window in a direction where the number is not known


@frozen
class Product:
    """C[batch, rows, columns] += A[batch, rows, sums] · B[batch, sums, columns]. `dtype`: of C; `lanes`: of vectors of all that is read;
    `left_along`, `right_along`: the loops along which the elements of A and B are neighbours. `slides`: B is read along windows; `lines`: in
    two directions."""

    dtype: str
    lanes: int
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    sums: tuple[Axis, ...]
    left_along: str | None = None
    right_along: str | None = None
    slides: bool = False
    lines: bool = False

    @property
    def is_single(self) -> bool:
        """Is it one product of two matrices?"""
        return not self.batch and len(self.rows) == len(self.columns) == len(self.sums) == 1


# -- what is planned ------------------------------------------------------------------------------------------------------------------------------
@frozen
class Packed(Plan):
    """Tiles of `rows` × `columns` in registers, `depth` products at a time, from packed panels of `panel` rows and `panels` columns (0: of all that
    a call has). `order`: tiles go along the rows of the result first; `steps`: the innermost loop of the sum is written out;
    `packs_along`: the left operand is packed along the sum, where its elements are neighbours; `shared`: threads share each product of a
    batch."""

    rows: int
    columns: int
    lanes: int
    depth: int
    panel: int
    panels: int
    ahead: int
    order: bool = False
    unroll: int = 1
    steps: bool = False
    packs_along: bool = False
    shared: bool = False


@frozen
class Windows(Plan):
    """Packed tiles of which the columns are places of a picture: `lines` × `width` of them. `known`: is the length of a window's row
    known before the call? `steps`: the innermost loop of a window is written out."""

    rows: int
    lines: int
    width: int
    lanes: int
    depth: int
    panel: int
    ahead: int
    known: bool = False
    steps: bool = False


@frozen
class Tiles(Plan):
    """Tiles of the result in registers, from the operands where they lie. What tiles of one height leave of the rows is cut into those of the next,
    at last single rows; so are the columns, of which `masked` at a time are left (0: single ones). `alone`: the widths for single rows. `along`:
    what the lanes of a vector are, `columns` or the `sum`. `turned`: the right operand is laid along these first; `transposed`: it is the
    product of the transposed operands that is tiled."""

    heights: tuple[int, ...]
    widths: tuple[int, ...]
    lanes: int
    along: str
    alone: tuple[int, ...] = ()
    masked: int = 0
    turned: bool = False
    transposed: bool = False


# -- planners -------------------------------------------------------------------------------------------------------------------------------------
def few_columns(p: Product, given: Given) -> Version:
    """For few columns, or one: every element of the result a dot product, whose lanes lie along the sum and are added up at its end. Both operands
    are read along the sum: the right one, where it does not lie like that, is turned first, which is little."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or not columns.size or not summed.size:
        raise NotApplicable("it is not one product, or the ends of the columns and of the sum are no sizes")
    if p.left_along != summed.name:
        raise NotApplicable("the left operand does not lie along the sum")
    few = given(DOTS)
    reach: Any = ("or", ("and", _at_most(columns, min(few, FEWER)), _at_least(summed, MEDIUM)),
                  ("and", _at_most(columns, few), _at_least(summed, LONG)))
    lies = p.right_along == summed.name
    if rows.size:
        reach = (("or", ("and", _at_most(rows, SHORT_ROWS), _at_least(summed, MEDIUM)), reach) if lies else
                 ("and", _at_least(rows, TURNED_ROWS), reach))
    fewest = ("or", _at_most(columns, 1), ("and", _at_most(columns, FEWEST), _at_least(summed, p.lanes)))     # shorter sums fill no vector
    cond = running((rows, summed), ("or", fewest, reach))
    height = given(DOT_ROWS, 6 if given.machine.registers >= 32 else 2)
    return Version(Tiles((height,), DOT_COLUMNS, p.lanes, "sum", DOT_COLUMNS, turned=not lies), cond, "c")


def transposed(p: Product, given: Given) -> Version:
    """For few columns, where the left operand lies along the rows: these are the lanes, and what is stored lies apart."""
    rows, columns, summed = _small(p, given)
    if p.batch or not given.masks_are_cheap or p.left_along != rows.name:
        raise NotApplicable("the left operand does not lie along the rows, or vectors have no masks")
    height = _height(given.machine)
    cond: Any = _at_most(columns, height)
    if p.right_along != columns.name:
        cond = ("or", cond, ("and", ("and", _at_most(columns, ONCE), _at_least(summed, TURNED_SUMS)),
                             _area_at_most(summed, rows, _held(given.machine, p.dtype))))
    return Version(_tiles(p, (height, BETWEEN), transposed=True), running((columns, summed), cond), "t")


def fits(p: Product, given: Given) -> Version:
    """For products whose right operand fits the first cache, or nearly, and for few rows of one that fits the last."""
    rows, columns, summed = _small(p, given)
    lies = p.right_along == columns.name
    if p.batch or not given.masks_are_cheap:
        raise NotApplicable("vectors have no masks, or it is not one product")
    cond: Any = _area_at_most(summed, columns, _near(given.machine, p.dtype))
    if lies:
        cond = ("or", cond, ("and", _at_most(rows, ONCE), _area_at_most(summed, columns, _held(given.machine, p.dtype))))
        cond = ("and", ("or", _at_least(summed, 2), ("<", columns.size, str(SWEPT))), cond)
    return Version(_tiles(p, (_height(given.machine), BETWEEN), turned=not lies), running((rows, summed), cond), "e")


def whole_tiles(p: Product, given: Given) -> Version:
    """For those that fit and that tiles divide, where vectors have no masks, and of batches."""
    rows, columns, summed = _small(p, given)
    if (given.masks_are_cheap and not p.batch) or p.right_along != columns.name:
        raise NotApplicable("other plans need no whole tiles, or the right operand does not lie along the columns")
    plan, height = _tiles(p, (_height(given.machine),)), _height(given.machine)     # sizes are multiples of powers of two more often
    whole = ("and", ("=", ("mod", columns.size, str(plan.widths[0])), "0"), ("=", ("mod", rows.size, str(height)), "0"))
    return Version(replace(plan, alone=(), masked=0), ("and", _area_at_most(summed, columns, _near(given.machine, p.dtype)), whole), "d")


def batch_that_fits(p: Product, given: Given) -> Version:
    """For batches of products that fit."""
    rows, columns, summed = _small(p, given)
    count = _batch_size(p)
    if count is None or not given.masks_are_cheap or p.right_along != columns.name:
        raise NotApplicable("no sizes say how many products there are, vectors have no masks, or the right operand does not lie along the columns")
    cond: Any = _area_at_most(summed, columns, _near(given.machine, p.dtype))
    if given.machine.threads:                                             # which share each of few products, where that pays
        cond = ("and", cond, ("or", ("<=", str(FEW_PRODUCTS), count), _at_most(rows, SMALL_ROWS)))
    return Version(_tiles(p, (_height(given.machine),)), running((rows, summed), cond), "e")


def few_rows(p: Product, given: Given) -> Version:
    """For few rows, and where there is nothing to sum: then the result is all that counts, and it is swept through as it lies."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or p.right_along != columns.name or not rows.size:
        raise NotApplicable("it is not one product whose right operand lies along the columns, or the end of the rows is no size")
    cond: Any = ("<", rows.size, str(given(FEW_ROWS)))
    if summed.size:
        cond = ("or", cond, ("<", summed.size, "2"))
    return Version(across(given, p.dtype, p.lanes, PIECE if given.machine.threads else given.machine.cache_bytes[0]), cond, "r")


def single_places(p: Product, given: Given) -> Version:
    """For windows of one place: as much is summed over channels alone as in a plain product."""
    sizes = [axis.size for axis in p.sums[1:] if axis.count is None]
    if not p.slides or not sizes or not all(sizes) or len(sizes) < len(p.sums[1:]):
        raise NotApplicable("there are no windows of which only the call knows the size")
    inner = replace(p, sums=p.sums[:1], slides=False, lines=True)
    return Version(_windows(inner, given), both(*[("=", size, "1") for size in sizes]), "p")


def pictures(p: Product, given: Given) -> Version:
    """For products whose columns are the places of small pictures: tiles of several lines, like those of a convolution."""
    if p.slides or len(p.columns) < 2 or len(p.sums) > 1:
        raise NotApplicable("the columns are no lines of pictures, or there is more than one sum")
    *_, line, column = p.columns
    width, columns = given(WIDTH), given(VECTORS) * given.lanes([p.dtype])
    if not line.size or not column.size:
        raise NotApplicable(f"the ends of '{line.name}' and '{column.name}' are no sizes")
    if columns <= width:
        raise NotApplicable("a tile is no wider than one line of it would be")
    small = ("and", ("<", column.size, str(NARROW * columns)), _at_least(line, columns // width))
    return Version(_windows(replace(p, lines=True), given), small, "l")


def few_products(p: Product, given: Given) -> Version:
    """For batches of so few products that threads had better share each of them."""
    count = _batch_size(p)
    if p.slides or not given.shares or count is None:
        raise NotApplicable("no threads share a batch of which sizes say how many products it has")
    return Version(replace(_packed(p, given), shared=True), ("<", count, str(FEW_PRODUCTS)), "f")


def windows(p: Product, given: Given) -> Version:
    """Where the right operand is read along windows, beyond the edges of which nothing is added: the windows under a tile are packed one beside the
    other, with zeros beyond the edges."""
    if not p.slides:
        raise NotApplicable("no operand is read along windows")
    return Version(_windows(p, given))


def packed(p: Product, given: Given) -> Version:
    """For all products."""
    return Version(_packed(p, given))


# -- their parts ----------------------------------------------------------------------------------------------------------------------------------
def register_rows(machine: Machine) -> int:
    """Of a tile whose accumulators fill the registers, less two vectors of the right operand and one repeated element of the left. 16 registers: 6
    rows of 2 vectors, 12 accumulators. 32 registers: 8 rows, 16 accumulators, which hide the latency of the two multiply-adds that start in a cycle;
    more rows are more streams to read, and more waste where the result has few."""
    return 2 if machine.registers < 16 else 6 if machine.registers < 32 else 8


def _panel(given: Given, dtype: str, rows: int, depth: int) -> int:
    """Rows of the left operand that fill their share of the last cache of a core."""
    panel = given.machine.cache_bytes[-1] * given(QUARTERS) // 4 // (depth * DTYPES[dtype].bytes)
    return max(1, panel // rows) * rows


def _depth(depth: int, inner: int) -> int:
    """Products of the loop around constant ones of so many iterations together: a power of two."""
    return 1 << max(0, (depth // inner - 1).bit_length())


def _packed(p: Product, given: Given) -> Packed:
    lanes, rows, depth = given.lanes([p.dtype]), given(ROWS, register_rows(given.machine)), given(DEPTH)
    columns, inner, beside = given(VECTORS) * lanes, p.sums[1:], len(p.columns) > 1
    return Packed(rows, columns, lanes, _depth(depth, _count(inner)), _panel(given, p.dtype, rows, depth),
                  0 if beside else given(PANELS) * columns, given(AHEAD), not beside and bool(given(ORDER)), given(UNROLL),
                  _written_out(inner, given), not inner and p.left_along == p.sums[0].name)


def _windows(p: Product, given: Given) -> Windows:
    lanes, rows, depth, width = given.lanes([p.dtype]), given(ROWS, register_rows(given.machine)), given(DEPTH), given(WIDTH)
    columns, window = given(VECTORS) * lanes, p.sums[1:]
    unknown = sum([axis.count is None for axis in window])
    summed = max(1, _depth(depth, _count(window) * USUAL ** unknown) // given(SHARE))
    several = len(p.columns) > 1 and columns > width and p.lines
    return Windows(rows, columns // width if several else 1, width if several else columns, lanes, summed, _panel(given, p.dtype, rows, depth),
                   given(AHEAD), bool(window) and window[-1].count is not None, _written_out(window, given))


def _written_out(inner: tuple[Axis, ...], given: Given) -> bool:
    """Is the innermost of constant loops of the sum written out?"""
    return bool(inner) and inner[-1].count in range(2, given(STEPS) + 1)


def _tiles(p: Product, heights: tuple[int, ...], turned: bool = False, transposed: bool = False) -> Tiles:
    return Tiles(heights, (SIDE_BY_SIDE * p.lanes,), p.lanes, "columns", (ALONE * p.lanes,), p.lanes, turned, transposed)


def _small(p: Product, given: Given) -> tuple[Axis, Axis, Axis]:
    """The axes of a product, or of a batch of them, that may fit a cache."""
    axes = p.rows[-1], p.columns[-1], p.sums[-1]
    if len(p.rows) + len(p.columns) + len(p.sums) > 3 or not all(axis.size for axis in axes):
        raise NotApplicable("it has more axes than a product of matrices, or their ends are no sizes")
    if not is_float(p.dtype) or not given.machine.has_fma:
        raise NotApplicable("there are no multiply-adds")
    return axes


def _height(machine: Machine) -> int:
    """Rows of a tile where operands are not packed."""
    return 1 << register_rows(machine).bit_length() - 1


def _near(machine: Machine, dtype: str) -> int:
    """Elements of an operand that fits the first cache, or nearly."""
    return 2 * machine.cache_bytes[0] // DTYPES[dtype].bytes


def _held(machine: Machine, dtype: str) -> int:
    """Elements of an operand that fits half of the last cache of a core."""
    return machine.cache_bytes[-1] // 2 // DTYPES[dtype].bytes


def _batch_size(p: Product) -> Any:
    """How many products there are, as a condition has it; None where there is one, or where no sizes say it."""
    if not p.batch or not all(axis.size for axis in p.batch):
        return None
    count: Any = p.batch[0].size
    for axis in p.batch[1:]:
        count = ("*", count, axis.size)
    return count


def _count(axes: tuple[Axis, ...]) -> int:
    """How many iterations constant loops have together."""
    return prod([axis.count for axis in axes if axis.count is not None])


def _at_most(axis: Axis, count: int) -> Any:
    return ("<=", axis.size, str(count))


def _at_least(axis: Axis, count: int) -> Any:
    return ("<=", str(count), axis.size)


def _area_at_most(one: Axis, other: Axis, count: int) -> Any:
    return ("<=", ("*", one.size, other.size), str(count))


def product(program: LoopProgram, chain: Chain, given: Given) -> Product:
    """A perfect nest as a product."""
    c = contraction(program, chain)
    if c is None:
        raise NotApplicable("it is no product")
    axes = {loop.name: axis for loop, axis in zip(chain.loops, axes_of(chain), strict=True)}
    batch, rows, columns, sums = [tuple([axes[n] for n in names]) for names in (c.batch, c.rows, c.columns, c.sums)]
    moved = [i for i in c.right.index if mentions(i, c.sums)]
    return Product(c.out.dtype, given.vectors_of(chain.body), batch, rows, columns, sums, contiguous_loop(program, c.left, (*c.rows, *c.sums)),
                   contiguous_loop(program, c.right, (*c.columns, *c.sums)), any(mentions(i, c.columns) for i in moved),
                   len(c.columns) > 1 and any(mentions(i, c.columns[-2:-1]) for i in moved))


PRODUCTS = Family("products", "Sums of products of two arrays: matrices, batches of them, convolutions.", product,
                  (few_columns, transposed, fits, whole_tiles, batch_that_fits, few_rows, single_places, pictures, few_products, windows, packed))
