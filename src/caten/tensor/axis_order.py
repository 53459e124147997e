"""The order of the axes of a reduction or map: that in which the maps that read it have them.

    (define v0 (reduce f32 ((i N) (j M)) ((p K)) add true (read X j p i)))
    (define v1 (compute f32 ((i M) (j N)) (exp (read v0 j i))))
->  (define v0 (reduce f32 ((i M) (j N)) ((p K)) add true (read X i p j)))
    (define v1 (compute f32 ((i M) (j N)) (exp (read v0 i j))))

A scalar that is accumulated has no order of axes, only the loops around it; an array between two nests has the order in
which it happens to be declared. What no map reads, or maps read in several orders, has the order of an operand of the
contractions that read it: rows and then sums, or sums and then columns. What is no such operand, or several, has the
order in which its own formula reads arrays; or, if no contraction wants that, the one with the same last axis that they
want. An output, what is copied to one, and what a nest reads stay as they are.
"""
from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ..core.expr import Const, Expr, Op, Var
from ..core.node import substitute
from ..core.program import InOrder
from .index_maps import is_identity, with_reads
from .values import Axis, Compute, Define, Named, Read, Reduce, TensorProgram, reads_of, whole_operands_of


def with_ordered_axes(program: TensorProgram, fixed: frozenset[str]) -> TensorProgram:
    """The program with the axes of its reductions and maps in the order of their readers; but for those of `fixed`."""
    definitions = program.definitions
    results = {o.value for o in program.outputs}
    opaque = fixed | results | {name for d in definitions for name in whole_operands_of(d.value)} | {
        d.value.expr.buffer for d in definitions if d.name in results and isinstance(d.value, Compute)
        and isinstance(d.value.expr, Read) and is_identity(d.value.expr, d.value)}
    own = _orders_of_reads([d for d in definitions if d.names and d.name not in opaque])
    found: dict[str, set[tuple[int, ...]]] = {}
    operands: dict[str, set[tuple[int, ...]]] = {}
    orders: dict[str, tuple[int, ...]] = {}
    for d in reversed(definitions):                          # readers first: their own axes have their order
        if isinstance(d.value, Reduce | Compute) and d.name not in opaque:
            by_operands = operands.get(d.name, set()) - {()}
            alike = {w for w in by_operands if w[-1] == own[d.name][-1]} if own[d.name] not in by_operands else set()
            wanted = [w for w in (found.get(d.name, set()) - {()}, by_operands, alike) if len(w) == 1]
            order = next(iter(wanted[0])) if wanted else own[d.name]
            if order != tuple(range(len(d.value.axes))):
                orders[d.name] = order
        if isinstance(d.value, Compute | Reduce):
            axes = tuple([d.value.axes[n] for n in orders.get(d.name, range(len(d.value.axes)))])
            reads = reads_of(d.value)
            if isinstance(d.value, Compute):
                for r in reads:
                    found.setdefault(r.buffer, set()).add(_order(r, axes))
                continue
            batch = {a.name for a in axes if all(a.name in _variables(*r.index) for r in reads)}
            for r in reads:
                if r.buffer in own:
                    operands.setdefault(r.buffer, set()).add(
                        _order_of_operand(r, axes, batch, d.value.over, own[r.buffer]))
    if not orders:
        return program

    def reordered(read: Read) -> Read:
        order = orders.get(read.buffer)
        return read if order is None else read.replace(index=tuple([read.index[n] for n in order]))
    made = tuple([d.replace(value=with_reads(d.value if d.name not in orders else _permuted(d.value, orders[d.name]),
                                             reordered)) if d.names else d for d in definitions])
    named = tuple([n if n.value not in orders else n.replace(axes=(
        *[n.axes[k] for k in orders[n.value]], *n.axes[len(orders[n.value]):])) for n in program.all(Named)])
    return program.replace(clauses=(*program.without(Define, Named).clauses, *named, *made))


def with_ordered_sums(program: TensorProgram) -> TensorProgram:
    """The program with the reduced axes of each reduction in the order in which its reads have them: that in memory of
    the first array. Where floats are accumulated as written (`in-order`), the program itself."""
    orders: dict[str, tuple[int, ...]] = {}
    for d in program.definitions if program.first(InOrder) is None else ():
        if isinstance(d.value, Reduce) and len(d.value.over) > 1:
            found = dict.fromkeys(name for r in reads_of(d.value.expr) for i in r.index for name in _variables(i))
            at = {name: n for n, name in enumerate(found)}
            over = [at.get(a.name, len(at)) for a in d.value.over]
            if over != sorted(over):
                orders[d.name] = tuple(sorted(range(len(over)), key=over.__getitem__))
    if not orders:
        return program
    made = tuple([d.replace(value=_with_sums_in(d.value, orders[d.name])) if d.names and d.name in orders else d
                  for d in program.definitions])
    named = []
    for n in program.all(Named):
        order = orders.get(n.value, ())
        kept, over_names = n.axes[:len(n.axes) - len(order)], n.axes[len(n.axes) - len(order):]
        named.append(n.replace(axes=(*kept, *[over_names[k] for k in order])) if over_names else n)
    return program.replace(clauses=(*program.without(Define, Named).clauses, *named, *made))


def _with_sums_in(value: object, order: tuple[int, ...]) -> Reduce:
    """A reduction with its reduced axes in another order."""
    assert isinstance(value, Reduce)
    over = tuple([a.replace(extent=value.over[n].extent) for a, n in zip(value.over, order, strict=True)])
    new: dict[Expr, Expr] = {value.over[n].var: a.var for a, n in zip(over, order, strict=True)}
    return value.replace(over=over, cond=substitute(value.cond, new), expr=substitute(value.expr, new))


def _orders_of_reads(definitions: Iterable[Define]) -> dict[str, tuple[int, ...]]:
    """Of the reductions and maps: their axes in the order in which their formulas read them. It is that in memory, in
    the array that most of them are indices of; of another of these values, in its order. Of several, it is that of the
    array with the most axes, or of the value whose order comes from one: a batch is before the rows of weights."""
    orders: dict[str, tuple[int, ...]] = {}
    ranks: dict[str, int] = {}                          # of the arrays that orders come from
    for d in definitions:
        if isinstance(d.value, Reduce | Compute):
            own = {a.name for a in d.value.axes}
            reads = sorted([(_in_order([name for n in orders.get(r.buffer, range(len(r.index)))
                                        for name in _variables(r.index[n]) if name in own]),
                             ranks.get(r.buffer, len(r.index))) for r in reads_of(d.value)],
                           key=lambda read: (len(read[0]), read[1]), reverse=True)
            ranks[d.name] = reads[0][1] if reads else 0
            found = dict.fromkeys(name for names, _ in reads for name in names)
            at = {name: n for n, name in enumerate(found)}
            places = [at.get(a.name, len(at)) for a in d.value.axes]
            if isinstance(d.value, Reduce) and _has_windows(d.value):
                places = list(range(len(places)))       # an image of each filter, not filters of a pixel
            orders[d.name] = tuple(sorted(range(len(places)), key=places.__getitem__))
    return orders


def _in_order(names: Sequence[str]) -> list[str]:
    """Names once each. An axis of which several parts are indices, `[(mod i 2) j (floordiv i 2)]`, is where its last
    part is: that is the nearest in memory."""
    return list(dict.fromkeys(reversed(names)))[::-1]


def _has_windows(value: Reduce) -> bool:
    """Does it read an array at sums of its own axes and of those that it sums over, as a convolution does?"""
    own, over = {a.name for a in value.axes}, {a.name for a in value.over}
    return any(not own.isdisjoint(names := _variables(i)) and not over.isdisjoint(names)
               for r in reads_of(value) for i in r.index)


def _variables(*exprs: Expr) -> list[str]:
    return [n.name for e in exprs for n in e.unique() if isinstance(n, Var)]


def _order(read: Read, axes: Sequence[Axis]) -> tuple[int, ...]:
    """The axes of what is read, in the order of the reader's axes; () if they are not axes of the reader."""
    own = {a.name: n for n, a in enumerate(axes)}
    at = [own.get(i.name, -1) if isinstance(i, Var) else -1 for i in read.index]
    return () if -1 in at or len(set(at)) < len(at) else tuple(sorted(range(len(at)), key=at.__getitem__))


def _order_of_operand(read: Read, axes: Sequence[Axis], batch: Container[str], over: Sequence[Axis],
                      own: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of an operand of a contraction: those of the batch, which all operands have, and of the rows, the sums,
    and those of the columns: the last axes of the contraction, if the operand has them. Sums are in the order `own`.
    An index may be a part of an axis (`(mod j 8)`), and parts have the order of the axis; or an index may be of several
    axes (`(+ (* 8 i) j)`), and counts as the last of them. (): it is no operand, but all that a sum of rows or columns
    reads, or the columns are a batch."""
    if not axes or axes[-1].name in batch:
        return ()
    place, sums = {a.name: n for n, a in enumerate(axes)}, {a.name for a in over}
    at: list[int | None] = []                                           # of each index; None: a sum
    parts = [(tuple(dict.fromkeys(_variables(i))), _step(i)) for i in read.index]
    present = set[int]()
    for n, (names, step) in enumerate(parts):
        places = sorted([place[name] for name in names if name in place])
        if (not places and not sums.intersection(names)) or (len(places) > 1 and len(places) < len(names)):
            return ()
        if not present.isdisjoint(places) and (step is None or any(
                set(names) & set(other) and (other != names or k in (None, step)) for other, k in parts[:n])):
            return ()
        at.append(places[-1] if places else None)
        present.update(places)
    if None not in at or len(present) == len(axes):
        return ()
    columns = next(n for n in reversed(range(len(axes) + 1)) if n - 1 not in present or axes[n - 1].name in batch)

    def rank(n: int) -> tuple[int, int, int]:
        p, (names, step) = at[n], parts[n]
        if p is not None:
            return 3 if p >= columns else 0 if axes[p].name in batch else 1, p, -(step or 0)
        same = [m for m, (other, k) in enumerate(parts) if other == names and None not in (k, step)]
        return 2, min([own.index(m) for m in (n, *same)]), -(step or 0)
    return tuple(sorted(range(len(at)), key=rank))


def _step(index: Expr) -> int | None:
    """How far a variable goes until this part of it changes: 32 for `(mod (floordiv j 32) 3)`; None: no such part."""
    match index:
        case Var():
            return 1
        case Op(fn="floordiv", args=(part, Const(value=int(count)))):
            return None if (step := _step(part)) is None else step * count
        case Op(fn="mod", args=(part, Const())):
            return _step(part)
    return None


def _permuted(value: object, order: tuple[int, ...]) -> Reduce | Compute:
    """A value with its axes in another order."""
    assert isinstance(value, Reduce | Compute)
    axes = tuple([a.replace(extent=value.axes[n].extent) for a, n in zip(value.axes, order, strict=True)])
    new: dict[Expr, Expr] = {value.axes[n].var: a.var for a, n in zip(axes, order, strict=True)}
    if isinstance(value, Compute):
        return value.replace(axes=axes, expr=substitute(value.expr, new))
    return value.replace(axes=axes, cond=substitute(value.cond, new), expr=substitute(value.expr, new))
