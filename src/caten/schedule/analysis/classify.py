"""Recognition of what a nest computes, by which loops occur in which accesses: contraction, reduction or map."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...core.expr import Expr, Op
from ...core.program import Buffer
from ...frozen import frozen
from ...loop.accesses import conjuncts, stride_in
from ...loop.statements import Aref, For, If, Incf, Local, LoopProgram, Setf, Stmt, statements_in
from ...mathematics.elementary.elementary_table import FORMS
from .loop_queries import mentions, trip_count

TILE_ROWS = 6                   # of a low register tile: where the innermost rows are fewer, the most are inside
VECTOR = 8                      # elements that a vector has at least, as a rule


@frozen
class Chain:
    """A perfect nest: its loops, outermost first, and the body of the innermost one."""

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple([loop.name for loop in self.loops])

    @property
    def is_leaf(self) -> bool:
        """Does the body have no loops?"""
        return all(_is_leaf(stmt) for stmt in self.body)


@frozen
class Contraction:
    """C[batch, rows, columns] += A[batch, rows, sums] · B[batch, sums, columns]. Each field lists loops in their
    present order, but the last of `rows` is the longest where it would not fill a register tile, and in `sums` those in
    which windows of B move come behind others, and constant ones last. C is contiguous in the last loop of
    `columns`."""

    out: Aref
    left: Aref
    right: Aref
    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    sums: tuple[str, ...]

    @property
    def transposed(self) -> Contraction:
        """Cᵀ = Bᵀ · Aᵀ. C need not be contiguous in its columns."""
        return Contraction(self.out, self.right, self.left, self.batch, self.columns, self.rows, self.sums)

    @property
    def moving(self) -> tuple[str, ...]:
        """The columns along which windows move: those in an index together with a loop of the sum."""
        shared = [i for i in self.right.index if mentions(i, self.sums)]
        return tuple([n for n in self.columns if any(mentions(i, (n,)) for i in shared)])


@frozen
class Reduction:
    """One element per iteration of the loops `kept` accumulates over the loops `summed`."""

    out: Aref
    kept: tuple[str, ...]
    summed: tuple[str, ...]


def outermost(stmts: tuple[Stmt, ...]) -> Iterator[For]:
    """The loops that are in no other loop of these statements."""
    for stmt in stmts:
        if isinstance(stmt, For):
            yield stmt
        elif isinstance(stmt, If):
            yield from outermost((*stmt.then, *stmt.otherwise))


def chain_of(loop: For) -> Chain:
    """The perfect nest that starts with `loop`."""
    loops, body = [loop], loop.body
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    return Chain(tuple(loops), body)


def _is_leaf(stmt: Stmt) -> bool:
    if isinstance(stmt, If):
        return all(_is_leaf(s) for s in (*stmt.then, *stmt.otherwise))
    return not isinstance(stmt, For)


def stores_in(stmts: tuple[Stmt, ...]) -> list[Setf | Incf]:
    """All stores to buffers that are not local to the statements."""
    own = {n.name for n in statements_in(stmts) if isinstance(n, Local)}
    return [n for n in statements_in(stmts)
            if isinstance(n, Setf | Incf) and isinstance(n.ref, Aref) and n.ref.buffer not in own]


def contraction(program: LoopProgram, chain: Chain) -> Contraction | None:
    """The nest as a contraction, whatever the order of its loops and axes; None if it is none."""
    conds, body = under(chain.body)
    match body:
        case (Incf(ref=Aref() as out, value=Op(fn="mul") as value, fn="add"),):
            pass
        case _:
            return None
    reads = operands(value, chain.names)
    if len(reads) != 2 or any(isinstance(n, Aref) and n.buffer == out.buffer for n in value.unique()):
        return None
    groups: dict[tuple[bool, ...], list[str]] = {}
    for name in chain.names:
        groups.setdefault(tuple([mentions(ref, (name,)) for ref in (out, *reads)]), []).append(name)
    kinds = ((True, True, True), (True, True, False), (True, False, True), (False, True, True))
    if not set(groups) <= set(kinds):
        return None
    batch, one, other, sums = [tuple(groups.get(kind, ())) for kind in kinds]
    contiguous = contiguous_loop(program, out, chain.names)
    if not sums or not one or not other or contiguous not in (*one, *other):
        return None
    left, right = reads
    if contiguous in one:
        left, right, one, other = right, left, other, one
    if not all(any(not mentions(cond, hidden) for hidden in (one, other)) for cond in conds):
        return None
    other = (*[n for n in other if n != contiguous], contiguous)
    counts = {loop.name: trip_count(loop) for loop in chain.loops}
    one = _longest_last(one, counts)
    constant = {name for name, count in counts.items() if count is not None}
    windows = {n for n in sums if any(mentions(i, (n,)) and mentions(i, other) for i in right.index)}
    sums = tuple(sorted(sums, key=lambda n: (n in constant, n in windows)))
    return Contraction(out, left, right, batch, one, other, sums)


def _longest_last(names: tuple[str, ...], counts: Mapping[str, int | None]) -> tuple[str, ...]:
    """Rows with a loop last that fills the height of a register tile, if one does: phases of windows with a step, which
    are two, are outside of the filters."""
    last = counts[names[-1]]
    if last is None or last >= TILE_ROWS:
        return names
    best = max(names, key=lambda n: (counts[n] is None, counts[n] or 0, names.index(n)))
    return (*[n for n in names if n != best], best)


def operands(product: Op, names: tuple[str, ...]) -> list[Aref]:
    """The two operands of a product: what it reads, or in each factor the element that varies with the loops of all
    that is read there, such as A in (A[i, p] · scale[p] + shift[p]) · B[p, j]. Others if there are no two."""
    reads = list({n: None for n in product.unique() if isinstance(n, Aref)})
    if len(reads) <= 2:
        return reads
    found: list[Aref] = []
    for factor in product.args:
        own = list({n: None for n in factor.unique() if isinstance(n, Aref)})
        varies = {name for name in names if mentions(tuple(own), (name,))}
        found += [n for n in own if all(mentions(n, (name,)) for name in varies)][:1]
    return found


def under(body: tuple[Stmt, ...]) -> tuple[tuple[Expr, ...], tuple[Stmt, ...]]:
    """The conditions around the innermost statements, and these statements."""
    conds: list[Expr] = []
    while len(body) == 1 and isinstance(body[0], If) and not body[0].otherwise:
        conds += conjuncts(body[0].cond)
        body = body[0].then
    return tuple(conds), body


def reduction(chain: Chain) -> Reduction | None:
    """The nest as a reduction; None if it is none."""
    stores = stores_in(chain.body)
    if len(stores) != 1 or not isinstance(stores[0], Incf) or not isinstance(stores[0].ref, Aref):
        return None
    out = stores[0].ref
    summed = tuple([n for n in chain.names if not mentions(out, (n,))])
    return Reduction(out, tuple([n for n in chain.names if n not in summed]), summed) if summed else None


def shares_operand(chain: Chain, total: Reduction) -> bool:
    """Does an operand not move with the innermost kept loop, as the vector of a matrix-vector product?"""
    refs = {n for s in chain.body for n in s.unique() if isinstance(n, Aref) and n.buffer != total.out.buffer}
    return any(mentions(ref, total.summed[-1:]) and not mentions(ref, total.kept[-1:]) for ref in refs if total.kept)


def stored(chain: Chain) -> list[Aref]:
    """The accesses that are stored to."""
    return [store.ref for store in stores_in(chain.body) if isinstance(store.ref, Aref)]


def is_gathered(program: LoopProgram, ref: Aref, name: str) -> bool:
    """Does an access move with a loop without being contiguous in it?"""
    return mentions(ref, (name,)) and contiguous_loop(program, ref, (name,)) is None


def is_indirect(ref: Aref, loop: str) -> bool:
    """Is an index of an access itself read from memory, at places that move with a loop?"""
    return any(isinstance(n, Aref) and mentions(n, (loop,)) for i in ref.index for n in i.unique())


def is_compute_bound(stmts: tuple[Stmt, ...]) -> bool:
    """Does every element take an elementary function (exp, sin)? If so, gathering its operands pays."""
    return any(isinstance(n, Op) and n.fn in FORMS for s in stmts for n in s.unique())


def reduces_contiguously(program: LoopProgram, chain: Chain, total: Reduction) -> bool:
    """Is a load contiguous in a summed loop, and none in a kept one? What the sum does not change, such as a scale of
    each row, does not count. If the sum has an unknown length, kept loops that fill no vector do not count: the taps of
    a window as large as an image."""
    reads = {n: None for s in chain.body for n in s.unique() if isinstance(n, Aref) and n is not total.out}
    counts = {loop.name: trip_count(loop) for loop in chain.loops}
    taps = {name for name in total.kept if (count := counts[name]) is not None and count < VECTOR}
    kept = tuple([name for name in total.kept if name not in taps or counts[total.summed[-1]] is not None])
    return (any(contiguous_loop(program, ref, total.summed) is not None for ref in reads)
            and all(contiguous_loop(program, ref, kept) is None for ref in reads if mentions(ref, total.summed)))


def fastest_axis(program: LoopProgram, ref: Aref) -> int | None:
    """The contiguous axis of an array; None for a scalar."""
    buffer: Buffer | None = program.buffers.get(ref.buffer)
    return buffer.contiguous_axis if buffer is not None else len(ref.index) - 1 if ref.index else None


def contiguous_loop(program: LoopProgram, ref: Aref, names: tuple[str, ...]) -> str | None:
    """The innermost loop in which an access is contiguous (stride 1 or -1); None if there is none."""
    axis = fastest_axis(program, ref)
    if axis is None:
        return None
    for name in reversed(names):
        strides = [stride_in(i, name) for i in ref.index]
        if abs(strides[axis] or 0) == 1 and all(s == 0 for n, s in enumerate(strides) if n != axis):
            return name
    return None
