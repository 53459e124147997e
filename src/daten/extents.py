"""The extents of a graph as formulas: a program is compiled once for all extents that can vary.

Each extent of an array that is there begins as a size of its own, those of parameters and 1 as numbers. Where an
operator needs two sizes to be equal, they become one; where one has to be a number, it is this number, and the program
is for it alone. That is so for an axis that a reshape splits into extents that are no sizes: into heads of an
attention, say. It is so for the windows of convolutions, too: with the 3 × 3 of their weights as numbers, they are
several times as fast. Extents that happen to be equal stay apart, but for those of arrays of one shape.

In the first program of a graph the extents of images over which windows move are numbers, too: most networks see images
of one size, and of the versions of a convolution for small and large, wide and narrow ones, only one is left to plan
and to compile. Where images of other extents come, a second program is for all of them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from caten.core.expr import TRUE, Const, Expr, Var, index
from caten.core.node import substitute
from caten.core.size_formula import evaluate
from caten.frontend.arrays.handles import product_of
from caten.frozen import frozen
from caten.loop.affine import canonical, expression, linear, of_atom

from .graph import Call, Constant, Ref, Shape
from .templates import Barrier, ByHand, Reshape, Template, in_solvable_order

Extents = tuple[Expr, ...]
WIDEST_WINDOW = 16                                          # whose extent is a number in the program
MOST_WAYS = 64                                              # to see the extents of a reshape as sizes


@dataclass
class CallSizes:
    """The sizes of an operator, as formulas, and what has to be equal beside."""

    sizes: dict[Expr, Expr] = field(default_factory=dict)
    equal: list[tuple[Expr, Expr, str]] = field(default_factory=list)

    def of(self, shape: Extents) -> Extents:
        """The extents of one of its arrays."""
        return tuple([canonical(substitute(e, self.sizes)) if self.sizes else e for e in shape])


def operator_sizes(template: Template, inputs: Sequence[Ref], extents: Sequence[Extents],
                   unite: Callable[[Expr, Expr], None], fix: Callable[..., None]) -> CallSizes:
    """The sizes of an operator whose inputs have these extents. `unite`: is given what has to be equal; `fix`: formulas
    in which all sizes have to be numbers."""
    found = CallSizes()
    sizes = found.sizes
    formulas: list[tuple[str, Expr, Expr]] = []
    for name, given, shape in zip(template.inputs, extents, template.input_shapes, strict=True):
        for own, extent in zip(shape, given, strict=True):
            if not isinstance(own, Var):
                formulas.append((name, extent, own))
            elif sizes.setdefault(own, extent) is not extent:
                unite(sizes[own], extent)
                found.equal.append((sizes[own], extent, name))
    numbers: dict[str, int] | None = None
    for name, extent, own in in_solvable_order(formulas, [v.name for v in sizes if isinstance(v, Var)]):
        for unknown in own.variables - {v.name for v in sizes if isinstance(v, Var)}:
            numbers = numbers or template.sizes([(r.dtype, r.shape) for r in inputs])
            _solve(unknown, substitute(own, sizes), extent, sizes, numbers, fix)
        formula = canonical(substitute(own, sizes))
        unite(formula, extent)
        found.equal.append((formula, extent, name))
    return found


def _solve(unknown: str, own: Expr, extent: Expr, sizes: dict[Expr, Expr], numbers: dict[str, int],
           fix: Callable[..., None]) -> None:
    """A size of an operator from an extent: N from 2 · N = extent."""
    var = Var(unknown, "i64")
    form = linear(own)
    factor = form.coefficient(var)
    found = (linear(extent) - (form - factor.times(of_atom(var)))).quotient(factor)
    if found is None:
        fix(extent, expression(factor))
    sizes[var] = index(numbers[unknown]) if found is None else expression(found)


@frozen
class Meanings:
    """What the extents of a graph are in a function that is traced once for many sizes: the formulas of those of its
    arrays and of the results of its reshapes (by the call), and whether two are equal for all values."""

    of_leaves: Sequence[Extents]
    of_reshapes: Mapping[int, Extents]
    equal: Callable[[Expr, Expr], bool]


class GraphExtents:
    """The extents of all arrays and results of a graph. `of_leaves`: those of its arrays; `numbers`: the sizes that
    have to be these numbers; `pairs`: sizes that happen to be equal; `splits`: for each reshape the formulas of its
    extents; `suffix`: of names of sizes; `meanings`: extents that happen to be equal are not taken for equal where
    these are not; `fixes_images`: extents over which windows move are numbers."""

    def __init__(self, leaves: Sequence[Ref], calls: Sequence[Call], suffix: str = "",
                 meanings: Meanings | None = None, fixes_images: bool = False) -> None:
        self._suffix, self._meanings, self._fixes_images = suffix, meanings, fixes_images
        self._meaning: dict[Expr, Expr] = {}
        self._value: dict[str, int] = {}
        self._bound: dict[Expr, Expr] = {}                  # a size -> what it is equal to
        self.pairs: list[tuple[str, str]] = []
        self._arrays = {id(r.array): n for n, r in enumerate(leaves)}
        means = [[None] * len(r.shape) for r in leaves] if meanings is None else meanings.of_leaves
        first = [tuple([self._size(*each) for each in zip(r.shape, r.numbers, meant, strict=True)])
                 for r, meant in zip(leaves, means, strict=True)]
        self._unite_like_shapes(leaves, first)
        self._changed = True
        while self._changed:
            self._changed = False
            self.of_leaves = [tuple([self._resolved(e) for e in shape]) for shape in first]
            self.results: dict[tuple[int, int], Extents] = {}
            self.of_calls: dict[int, CallSizes] = {}
            self.splits: list[Extents] = []
            for call in calls:
                self._add(call)
        self.numbers = {v.name: self._value[v.name] for v, e in self._bound.items()
                        if isinstance(v, Var) and isinstance(self._resolved(v), Const) and e is not v}

    def of(self, r: Ref) -> Extents:
        """The extents of an array or a result."""
        if isinstance(r.node, Constant):
            return ()
        return self.of_leaves[self._arrays[id(r.array)]] if r.array is not None else self.results[id(r.node), r.index]

    @property
    def sizes(self) -> list[Var]:
        """The sizes that are left."""
        return list(dict.fromkeys([e for shape in self.of_leaves for e in shape if isinstance(e, Var)]))

    def _size(self, extent: int, stays: bool, meaning: Expr | None) -> Expr:
        if extent == 1:
            return index(1)
        var = Var(f"size{len(self._value)}{self._suffix}", "i64")
        if meaning is not None:
            self._meaning[var] = meaning
        self._value[var.name] = extent
        if stays:
            self._bound[var] = index(extent)
        return var

    def _unite_like_shapes(self, leaves: Sequence[Ref], extents: Sequence[Extents]) -> None:
        """Arrays of one shape have the same sizes: what is done with each is then one kernel."""
        known: dict[tuple[str, Shape, tuple[bool, ...], Extents], Extents] = {}
        for r, own in zip(leaves, extents, strict=True):
            meant = tuple([canonical(self._meaning[e]) for e in own if e in self._meaning])
            like = known.setdefault((r.dtype, r.shape, r.numbers, meant), own) if not r.stays else own
            for a, b in zip(like, own, strict=True):
                if a is not b and isinstance(a, Var) and isinstance(b, Var):
                    self.pairs.append((a.name, b.name))
                    self._bind(a, b)

    def _add(self, call: Call) -> None:
        if isinstance(call.template, Reshape):
            source, shape = call.inputs[0], call.shapes[0]
            old, new = self.of(source), list[Expr]()
            meant = None if self._meanings is None else self._meanings.of_reshapes[id(call)]
            groups = list(groups_of(source.shape, shape))
            if meant is not None and not all(self._means(product_of(old[ours]), product_of(meant[theirs]))
                                             for ours, theirs in groups):       # equal in the traced call alone
                groups = [(slice(None), slice(None))]
            for ours, theirs in groups:
                new += self._reshaped(old[ours], shape[theirs], None if meant is None else meant[theirs])
            self.results[id(call), 0] = tuple(new)
            self.splits.append(tuple(new))
            return
        if isinstance(call.template, ByHand | Barrier):
            self.results |= {(id(call), n): self.of(r) for n, r in enumerate(call.inputs[:len(call.shapes)])}
            return
        self._add_operator(call, call.template)

    def _add_operator(self, call: Call, template: Template) -> None:
        found = operator_sizes(template, call.inputs, [self.of(r) for r in call.inputs], self._unite, self._fix)
        self.of_calls[id(call)] = found
        for names in template.windows:
            extents = [found.sizes[v] for v in [Var(name, "i64") for name in names] if v in found.sizes]
            narrowest = min(extents, key=self._value_of, default=None)
            if narrowest is not None and len(extents) == len(names) and self._is_narrow(narrowest):
                self._fix(narrowest)
        if self._fixes_images:
            places = [found.sizes[v] for name in sorted(template.images) if (v := Var(name, "i64")) in found.sizes]
            self._fix(*[e for e in places if self._is_same_in_next_call(e)])
        for n, shape in enumerate(template.output_shapes):
            self.results[id(call), n] = found.of(shape)

    def _is_narrow(self, e: Expr) -> bool:
        """Is the extent of a window the same in the next call, as far as is known, and so small that a program for it
        alone is worth it?"""
        return self._is_same_in_next_call(e) and self._value_of(e) <= WIDEST_WINDOW

    def _is_same_in_next_call(self, e: Expr) -> bool:
        """Is an extent none that is said to vary?"""
        return all(isinstance(self._meaning.get(Var(name, "i64"), TRUE), Const) for name in e.variables)

    def _value_of(self, e: Expr) -> int:
        return int(evaluate(e, self._value))

    def _unite(self, a: Expr, b: Expr) -> None:
        """Two extents are equal."""
        a, b = self._resolved(a), self._resolved(b)
        if a is b or canonical(a) is canonical(b):
            return
        if isinstance(a, Const) or isinstance(b, Const):
            self._fix(a, b)
        elif isinstance(a, Var) and isinstance(b, Var):
            self._bind(a, b)
        elif not isinstance(a, Var) and not isinstance(b, Var):
            self._pair(a, b)

    def _bind(self, a: Var, b: Var) -> None:
        """Two sizes are one."""
        first, second = sorted((a, b), key=lambda v: number_of(v.name))
        self._bound[second] = first
        self._changed = True

    def _pair(self, a: Expr, b: Expr) -> None:
        """Two formulas are equal, such as m · n and p · q: the program is for sizes that are equal one by one, if these
        are."""
        ours, theirs = sorted(a.variables - b.variables), sorted(b.variables - a.variables)
        pairs = list[tuple[str, str]]()
        for name in ours:
            like = next((n for n in theirs if self._value[n] == self._value[name]
                         and self._means(Var(name, "i64"), self._meaning.get(Var(n, "i64")))), None)
            if like is None:
                return
            theirs.remove(like)
            pairs.append((name, like))
        if not theirs:
            self.pairs += pairs
            for name, like in pairs:
                self._bind(Var(name, "i64"), Var(like, "i64"))

    def _fix(self, *formulas: Expr) -> None:
        """The sizes in these formulas are numbers."""
        for e in formulas:
            for name in e.variables:
                var = Var(name, "i64")
                root = self._resolved(var)
                if isinstance(root, Var):
                    self._bound[root] = index(self._value[root.name])
                    self._changed = True

    def _resolved(self, e: Expr) -> Expr:
        while isinstance(e, Var) and e in self._bound:
            e = self._bound[e]
        if isinstance(e, Const | Var) or not self._bound:
            return e
        mapping = {v: self._resolved(v) for v in [Var(n, "i64") for n in e.variables] if v in self._bound}
        return canonical(substitute(e, mapping)) if mapping else e

    def _means(self, e: Expr, meaning: Expr | None) -> bool:
        """Is a formula of sizes this one, for all values of the sizes that vary?"""
        return meaning is None or self._meanings is None or self._meanings.equal(substitute(e, self._meaning), meaning)

    def _reshaped(self, old: Sequence[Expr], shape: Sequence[int], meant: Extents | None) -> Sequence[Expr]:
        """The extents of a reshaped group of axes: sizes where they are equal by their formulas, numbers elsewhere."""
        if len(shape) == 1:
            return [canonical(product_of(old))]
        total = linear(product_of(old))
        names = sorted({name for e in old for name in e.variables})
        known = list(dict.fromkeys([index(1), *old, *[Var(name, "i64") for name in names]]))
        values = [self._value_of(e) for e in known]
        ways = [[e for e, v in zip(known, values, strict=True) if v == wanted and self._means(e, meaning)]
                + [index(wanted) if meaning is None else self._meant(meaning)]
                for wanted, meaning in zip(shape, meant or [None] * len(shape), strict=True)]
        for chosen in product(*ways) if prod(map(len, ways)) <= MOST_WAYS else ():
            if linear(product_of(chosen)) == total:
                return chosen
        numbers = [] if meant is None else [v for v, means in self._meaning.items() if isinstance(means, Const)
                                            and isinstance(v, Var) and v.name in names]
        self._fix(*(numbers or old))
        return [index(e) for e in shape]

    def _meant(self, meaning: Expr) -> Expr:
        """A formula of the sizes that vary, over the sizes of the graph."""
        own = {means: self._resolved(v) for v, means in reversed(self._meaning.items()) if isinstance(means, Var)}
        return canonical(substitute(meaning, own))

    def recipe(self) -> Recipe:
        """For which extents the program is."""
        splits = [tuple([None if isinstance(e, Const) and e.value == 1 else e for e in shape]) for shape in self.splits]
        return Recipe(dict(self.numbers), self.pairs, splits)


@frozen
class Recipe:
    """For which extents of a graph with one key a program is: those of `numbers`, where the two of each of `pairs` are
    equal, and where its reshapes have extents of the formulas `splits`."""

    numbers: dict[str, int]
    pairs: list[tuple[str, str]]
    splits: list[tuple[Expr | None, ...]]

    def fits(self, leaves: Sequence[Ref], calls: Sequence[Call]) -> bool:
        """Is the program for these arrays?"""
        extents = [e for r in leaves for e in r.shape if e != 1]
        if any(extents[number_of(name)] != n for name, n in self.numbers.items()):
            return False
        if any(extents[number_of(a)] != extents[number_of(b)] for a, b in self.pairs):
            return False
        if not self.splits:
            return True
        values = {name: extents[number_of(name)] for shape in self.splits for e in shape if e is not None
                  for name in e.variables}
        shapes = [c.shapes[0] for c in calls if isinstance(c.template, Reshape)]
        return all(e is None or evaluate(e, values) == n for formulas, shape in zip(self.splits, shapes, strict=True)
                   for e, n in zip(formulas, shape, strict=True))


def number_of(size: str) -> int:
    """Of which extent a size is, of all in the order of the arrays without those of 1."""
    return int(size[4:].rstrip("_"))


def groups_of(old: Shape, new: Shape) -> Iterator[tuple[slice, slice]]:
    """Consecutive axes of two shapes of as many elements whose products are equal, as few as possible."""
    if 0 in old:
        yield slice(0, len(old)), slice(0, len(new))
        return
    i = j = 0
    while i < len(old) or j < len(new):
        start, left, right = (i, j), 1, 1
        while i == start[0] < len(old) or j == start[1] < len(new) or left != right:
            if j == len(new) or (i < len(old) and (i == start[0] or left < right)):
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        yield slice(start[0], i), slice(start[1], j)
