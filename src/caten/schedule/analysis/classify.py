"""What a loop nest computes, told by its structure: where each loop occurs in the places that are read and written."""
from __future__ import annotations

from collections.abc import Iterator

from ...core.elementary.table import FORMS
from ...core.expr import Const, Expr, Op
from ...core.program import Buffer
from ...frozen import frozen
from ...loop.accesses import conjuncts
from ...loop.affine import canonical
from ...loop.statements import Aref, For, If, Incf, Local, LoopProgram, Setf, Stmt
from .nests import mentions, stride_in


@frozen
class Chain:
    """Perfectly nested loops from the outermost, and the statements inside the last one."""

    loops: tuple[For, ...]
    body: tuple[Stmt, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple([loop.name for loop in self.loops])

    @property
    def is_leaf(self) -> bool:
        """Are there only stores (under conditions) inside?"""
        return all(_is_leaf(stmt) for stmt in self.body)


@frozen
class Contraction:
    """C[batch, rows, columns] += A[batch, rows, sums] · B[batch, sums, columns], each a list of loops in their present order, but those of constant
    length last in `sums`; the last of `columns` is contiguous in C."""

    out: Aref
    left: Aref
    right: Aref
    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    sums: tuple[str, ...]

    @property
    def turned(self) -> Contraction:
        """The same as the product of the transposed operands: its columns are the rows, which need not be contiguous in C."""
        return Contraction(self.out, self.right, self.left, self.batch, self.columns, self.rows, self.sums)


@frozen
class Reduction:
    """One place for every value of `kept` takes a value for every value of `summed`."""

    out: Aref
    kept: tuple[str, ...]
    summed: tuple[str, ...]


def outermost(stmts: tuple[Stmt, ...]) -> Iterator[For]:
    """The loops that no loop surrounds."""
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
    """The stores, those under conditions included, to what outlives the statements."""
    own = {n.name for s in stmts for n in s.walk() if isinstance(n, Local)}
    return [n for s in stmts for n in s.walk() if isinstance(n, Setf | Incf) and isinstance(n.ref, Aref) and n.ref.buffer not in own]


def contraction(program: LoopProgram, chain: Chain) -> Contraction | None:
    """The nest as a contraction, whatever the order of its loops and of the operands' axes."""
    conds, body = under(chain.body)
    match body:
        case (Incf(ref=Aref() as out, value=Op(fn="mul") as value, fn="add"),):
            pass
        case _:
            return None
    reads = list({n: None for n in value.unique() if isinstance(n, Aref)})
    if len(reads) != 2 or out.buffer in (reads[0].buffer, reads[1].buffer):
        return None
    groups: dict[tuple[bool, bool, bool], list[str]] = {}
    for name in chain.names:
        groups.setdefault((mentions(out, (name,)), mentions(reads[0], (name,)), mentions(reads[1], (name,))), []).append(name)
    if set(groups) - {(True, True, True), (True, True, False), (True, False, True), (False, True, True)}:
        return None
    batch, one, other, sums = [tuple(groups.get(k, ())) for k in ((True, True, True), (True, True, False), (True, False, True), (False, True, True))]
    contiguous = contiguous_loop(program, out, chain.names)
    if not sums or not one or not other or contiguous not in (*one, *other):
        return None
    left, right = reads
    if contiguous in one:
        left, right, one, other = right, left, other, one
    if not all(any(not mentions(cond, hidden) for hidden in (one, other)) for cond in conds):
        return None
    other = (*[n for n in other if n != contiguous], contiguous)
    return Contraction(out, left, right, batch, one, other, tuple(sorted(sums, key=lambda n: has_constant_extent(chain, n))))


def under(body: tuple[Stmt, ...]) -> tuple[tuple[Expr, ...], tuple[Stmt, ...]]:
    """The conditions around what is inside, and that."""
    conds: list[Expr] = []
    while len(body) == 1 and isinstance(body[0], If) and not body[0].otherwise:
        conds += conjuncts(body[0].cond)
        body = body[0].then
    return tuple(conds), body


def has_constant_extent(chain: Chain, name: str) -> bool:
    """Does the loop always run as often?"""
    loop = next(loop for loop in chain.loops if loop.name == name)
    return isinstance(canonical(loop.hi - loop.lo), Const)


def reduction(chain: Chain) -> Reduction | None:
    """The nest as a reduction of one value into a place."""
    stores = stores_in(chain.body)
    if len(stores) != 1 or not isinstance(stores[0], Incf) or not isinstance(stores[0].ref, Aref):
        return None
    out = stores[0].ref
    summed = tuple([n for n in chain.names if not mentions(out, (n,))])
    return Reduction(out, tuple([n for n in chain.names if n not in summed]), summed) if summed else None


def stored(chain: Chain) -> list[Aref]:
    """The places that are stored to."""
    return [store.ref for store in stores_in(chain.body) if isinstance(store.ref, Aref)]


def is_gathered(program: LoopProgram, ref: Aref, name: str) -> bool:
    """Does an access move with a loop, and not from neighbour to neighbour?"""
    return mentions(ref, (name,)) and contiguous_loop(program, ref, (name,)) is None


def computes_much(stmts: tuple[Stmt, ...]) -> bool:
    """Is there an elementary function of every element? It pays for gathering what it is computed from."""
    return any(isinstance(n, Op) and n.fn in FORMS for s in stmts for n in s.unique())


def along_memory(program: LoopProgram, chain: Chain, total: Reduction) -> bool:
    """Is memory read along a summed loop, and nowhere along a kept one?"""
    reads = {n: None for s in chain.body for n in s.unique() if isinstance(n, Aref) and n is not total.out}
    return (any(contiguous_loop(program, ref, total.summed) is not None for ref in reads)
            and all(contiguous_loop(program, ref, total.kept) is None for ref in reads))


def fastest_axis(program: LoopProgram, ref: Aref) -> int | None:
    """The axis along which an array's elements are neighbours; None for a single element."""
    buffer: Buffer | None = program.buffers.get(ref.buffer)
    if not ref.index:
        return None
    return buffer.axes_in_memory[-1] if buffer is not None and buffer.order else len(ref.index) - 1


def contiguous_loop(program: LoopProgram, ref: Aref, names: tuple[str, ...]) -> str | None:
    """The loop that steps through neighbouring elements of an access, if there is one: the innermost such."""
    axis = fastest_axis(program, ref)
    if axis is None:
        return None
    for name in reversed(names):
        strides = [stride_in(i, name) for i in ref.index]
        if abs(strides[axis] or 0) == 1 and all(s == 0 for n, s in enumerate(strides) if n != axis):
            return name
    return None
