"""Reshape: the same elements in row-major order under another shape.

Both shapes are cut into groups of equal products, and each group is reshaped alone: (B·T, H·D) → (B, T, H, D) splits
two axes, whose indices stay affine: i·T + j and k·D + l. Products are polynomials over sizes, so this needs no numbers.
So does (H, W) → (⌊H / 7⌋, 7, ⌊W / 7⌋, 7), on condition that the divisions leave no rest.
Where axes are merged, an index is a quotient or a remainder of the flat index."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.expr import Expr, Op, Var
from ...loop.affine import Linear, canonical, constant, expression, linear
from .builder import Builder
from .handles import ZERO, Array, Indices, constant_of, is_one, product_of, spelled
from .size_facts import divided, floor_quotient


def reshape(b: Builder, x: Array, shape: Sequence[Any]) -> Array:
    """x in this shape; one extent may be -1: what is left."""
    wanted = _without_unknown(b, x, tuple(shape))
    lacking = linear(product_of(x.shape)) - linear(product_of(wanted))
    if lacking != constant(0):
        problem = f"{spelled(x.shape)} cannot be reshaped to {spelled(wanted)}: the numbers of elements differ"
        if (size := _only_at_most_1(lacking)) is not None:
            b.fail("E324", f"{problem} where {size} is greater than 1")
        for ours, theirs in grouped(x.shape, wanted):
            left, right = product_of(x.shape[ours]), product_of(wanted[theirs])
            if left is not right:
                b.require(Op("eq", (left, right)), "E324", problem)
    return b.view(x, wanted, lambda indices: indices_before(x.shape, wanted, indices))


def _only_at_most_1(form: Linear) -> str | None:
    """The name of the only size of a difference that is 0 for no greater value of it than 1: N - N·N."""
    match sorted(form.terms.items(), key=lambda term: len(term[0])):
        case [((Var(name), *few), a), ((_, *many), b)] if not form.constant and {*few, *many} == {Var(name, "i64")}:
            ratio, power = -a / b, len(many) - len(few)                  # N ** power, unless N is 0
            root = round(max(ratio, 0) ** (1 / power))
            return None if root > 1 and a + b * root ** power == 0 else name
    return None


def indices_before(old: Sequence[Expr], new: Sequence[Expr], indices: Indices) -> list[Expr]:
    """Where the element at these indices of the new shape was in the old one, of as many elements."""
    found: list[Expr] = []
    for ours, theirs in grouped(old, new):
        same = len(old[ours]) == len(new[theirs]) == 1                   # an axis of extent 1, too, stays one
        found += indices[theirs] if same else _within(old[ours], new[theirs], indices[theirs])
    return found


def ravel(b: Builder, x: Array) -> Array:
    """All elements along one axis."""
    return reshape(b, x, (product_of(x.shape),))


def _without_unknown(b: Builder, x: Array, shape: tuple[Any, ...]) -> tuple[Expr, ...]:
    """The shape with the extent in the place of -1."""
    unknown = [n for n, extent in enumerate(shape) if constant_of(extent) == -1]
    if len(unknown) > 1:
        b.fail("E324", "only one extent of a new shape can be -1")
    if any((constant_of(extent) or 0) < -1 for extent in shape):
        b.fail("E324", f"{spelled(shape)} is no shape: an extent is negative")
    if not unknown:
        return shape
    total, rest = _without_common(x.shape, [extent for n, extent in enumerate(shape) if n not in unknown])
    exact = linear(total).quotient(linear(rest))
    if exact is None:
        b.require(Op("eq", (canonical(Op("mod", (total, rest))), ZERO)), "E324",
                  f"{spelled(x.shape)} cannot be reshaped to {spelled(shape)}: the number of elements is no multiple")
    extent = floor_quotient(total, rest) if exact is None else expression(exact)
    return tuple([extent if n in unknown else each for n, each in enumerate(shape)])


def _without_common(extents: Sequence[Expr], others: Sequence[Expr]) -> tuple[Expr, Expr]:
    """The products of two lists of extents, but for those that are in both, which NumPy wants not to be 0. So are T and
    ⌊T / 7⌋ · 7: that the division leaves no rest is a condition of the groups."""
    left, rest = [canonical(extent) for extent in extents], [canonical(extent) for extent in others]
    for extent in tuple(rest):
        parts = [extent]
        if isinstance(extent, Op) and extent.fn == "floordiv" and extent.args[0] in left and extent.args[1] in rest:
            parts, extent = [extent, extent.args[1]], extent.args[0]
        if extent in left:
            left.remove(extent)
            for part in parts:
                rest.remove(part)
    return product_of(left), product_of(rest)


def grouped(old: Sequence[Expr], new: Sequence[Expr]) -> list[tuple[slice, slice]]:
    """Consecutive axes of both shapes whose products are equal, or are where a division leaves no rest, as short as
    possible. The last group may not be."""
    groups: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        start = i, j
        left, right = constant(1), constant(1)
        while True:
            if i < len(old) and (i == start[0] or j == len(new) or _may_grow(left, right, old[i])):
                left, i = left.times(linear(old[i])), i + 1
            elif j < len(new):
                right, j = right.times(linear(new[j])), j + 1
            same = left == right or _is_whole_part(right, left) or _is_whole_part(left, right)
            if same or (i == len(old) and j == len(new)):
                break
        if j == start[1] < len(new) and i == start[0] + 1 and is_one(new[j]):
            j += 1                                                       # both are 1
        groups.append((slice(start[0], i), slice(start[1], j)))
        if not same:                                 # that they are equal is a condition: (M, N) → (K, N)
            groups[-1:] = _without_equal_ends(old, new, *groups[-1])
    return groups


def _is_whole_part(product: Linear, of: Linear) -> bool:
    """Is it d · ⌊of / d⌋, which is equal where d leaves no rest?"""
    return any(product == linear(d).times(linear(atom)) for atom, d in _quotients(product, of))


def _quotients(product: Linear, of: Linear) -> list[tuple[Expr, Expr]]:
    """The factors ⌊of / d⌋ of a product, with d."""
    return [(atom, atom.args[1]) for atom in product.atoms()
            if isinstance(atom, Op) and atom.fn == "floordiv" and linear(atom.args[0]) == of]


def _without_equal_ends(old: Sequence[Expr], new: Sequence[Expr], ours: slice,
                        theirs: slice) -> list[tuple[slice, slice]]:
    """A group of axes whose products only a condition makes equal, and groups of the last axes, which are equal."""
    last: list[tuple[slice, slice]] = []
    i, j = ours.stop - 1, theirs.stop - 1
    while i > ours.start and j > theirs.start and canonical(old[i]) is canonical(new[j]):
        last.insert(0, (slice(i, i + 1), slice(j, j + 1)))
        i, j = i - 1, j - 1
    return [(slice(ours.start, i + 1), slice(theirs.start, j + 1)), *last]


def _may_grow(left: Linear, right: Linear, axis: Expr) -> bool:
    """Is it the old side that takes the next axis?"""
    return left != right and (right.quotient(left) is not None or bool(_quotients(left.times(linear(axis)), right)))


def _within(old: Sequence[Expr], new: Sequence[Expr], indices: Indices) -> list[Expr]:
    """The indices into old axes from those of new axes of the same product."""
    if not old:
        return []
    flat, size = constant(0), constant(1)
    suffixes = [(flat, size)]                            # sums over the last axes, and the bounds that they stay below
    for extent, index in zip(reversed(new), reversed(indices), strict=True):
        if not is_one(extent):
            flat = flat + linear(index).times(size)
            size = size.times(linear(extent))
            suffixes.append((flat, size))
    found: list[Expr] = []
    for n, extent in reversed(list(enumerate(old))):
        if n == 0:
            found.append(expression(flat))
            break
        if is_one(extent):
            found.append(ZERO)
            continue
        whole, rest = divided(flat, linear(extent))
        below = any(rest == part and bound == linear(extent) for part, bound in suffixes)
        remainder: Expr = expression(rest)
        if not below and (rest.terms or rest.constant):
            whole = whole + linear(Op("floordiv", (remainder, extent)))
            remainder = Op("mod", (remainder, extent))
        found.append(canonical(remainder))
        flat = whole
        suffixes = _divided(suffixes, linear(extent))
    return found[::-1]


def _divided(suffixes: list[tuple[Linear, Linear]], by: Linear) -> list[tuple[Linear, Linear]]:
    """The sums and bounds that remain after a division of the flat index."""
    kept: list[tuple[Linear, Linear]] = [(constant(0), constant(1))]
    for part, bound in suffixes:
        quotient = bound.quotient(by)
        if quotient is not None:
            kept.append((linear(floor_quotient(expression(part), expression(by))), quotient))
    return kept

