"""prefetch: software prefetching of what a later iteration will use."""
from __future__ import annotations

from ...core.expr import Expr, Var
from ...core.node import substitute
from ...loop.affine import canonical
from ...loop.statements import WRITE, Aref, For, If, Let, LoopProgram, Prefetch, Stmt, Vref
from ..analysis.loop_queries import find, locals_in, mentions, reads_memory, refusal, replaced
from ..normalize import tidied
from ..step_results import NOTHING, Made

MAX_DISTANCE = 1024           # so that an address, computed in 64 bits, cannot wrap around: no memory has 2^53 bytes


def prefetch(program: LoopProgram, loop: str, buffer: str, distance: int, how: str = "") -> tuple[LoopProgram, Made]:
    """Insert a prefetch instruction before each use of BUFFER in LOOP, for the address that the same use will have
    COUNT iterations later. With `write`, the cache line is fetched for writing.

    Use it where memory is read or written with a stride that the hardware prefetcher does not follow (rows of a matrix,
    several streams at once). Choose COUNT so that COUNT iterations take about as long as memory takes to answer. Take
    this step last: `stage` and others need a buffer to be used in one way only, and the prefetch is a second use. For a
    vector, the prefetch names its last element; where LOOP has vector accesses to BUFFER, scalar ones get no prefetch.
    An address beyond the end of the array is harmless.

        (prefetch p B 8)
        (for p 0 K 1 serial                          (for p 0 K 1 serial
          (incf (aref A p) (aref B p j)))    ->        (prefetch (aref B (+ p 8) j))
                                                       (incf (aref A p) (aref B p j)))

    Refused: a COUNT outside 1 … 1024; a buffer in registers; an index that does not depend on LOOP, reads memory, or
    uses a `let` of its body.
    """
    step = f"prefetch {loop} {buffer}"
    found = find(program, loop, step)
    if not 1 <= distance <= MAX_DISTANCE:
        raise refusal("E530", step, f"a distance is from 1 to {MAX_DISTANCE} iterations, not {distance}")
    if any(n.name == buffer and n.space == "register" for n in locals_in(program)):
        raise refusal("E530", step, f"{buffer} is in registers, which have no address")
    ahead = _Ahead(found, buffer, distance, how, step)
    body = ahead.block(found.body)
    if body == found.body:
        raise refusal("E530", step, f"no use of {buffer} in '{loop}' moves with it")
    return replaced(program, found, *tidied((found.replace(body=body),))), NOTHING


class _Ahead:
    """Inserts prefetches before statements."""

    def __init__(self, loop: For, buffer: str, distance: int, how: str, step: str) -> None:
        self.loop, self.buffer, self.how, self.step = loop, buffer, how, step
        var = Var(loop.name, "i64")
        if reads_memory(loop.step):
            raise refusal("E530", step, f"the step of '{loop.name}' reads memory")
        self.later: dict[Expr, Expr] = {var: canonical(var + loop.step * distance)}
        vectors = any(isinstance(n, Vref) and n.buffer == buffer for n in loop.unique())
        # the scalar tail of a vectorised row is not worth a prefetch
        self.kinds = (Vref,) if vectors else (Aref, Vref)
        self.lets = [n.name for n in loop.unique() if isinstance(n, Let)]

    def block(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Insert a prefetch before every statement that uses the buffer itself, once for each access in a list."""
        out: list[Stmt] = []
        asked: dict[Aref | Vref, None] = {}
        for stmt in stmts:
            for ref in self.uses(stmt):
                if ref not in asked:
                    asked[ref] = None
                    out.append(Prefetch(self.shifted(ref), WRITE if self.how else ""))
            match stmt:
                case For(body=body):
                    out.append(stmt.replace(body=self.block(body)))
                case If(then=then, otherwise=otherwise):
                    out.append(stmt.replace(then=self.block(then), otherwise=self.block(otherwise)))
                case _:
                    out.append(stmt)
        return tuple(out)

    def uses(self, stmt: Stmt) -> list[Aref | Vref]:
        """The accesses of a statement to the buffer that depend on the loop, without those of nested statements."""
        if isinstance(stmt, Prefetch):
            return []
        own = [child for child in stmt.children if not isinstance(child, Stmt)]
        places = dict.fromkeys(n for child in own for n in child.unique() if isinstance(n, self.kinds)
                               and n.buffer == self.buffer)
        return [place for place in places if self.moves(place)]

    def moves(self, place: Aref | Vref) -> bool:
        """Does its index depend on the loop? E530 if a later iteration's index is not known in this one."""
        if any(reads_memory(i) for i in place.index):
            raise refusal("E530", self.step, f"the index of {place} reads memory")
        if mentions(place.index, self.lets):
            raise refusal("E530", self.step,
                          f"the index of {place} uses a name that is defined inside '{self.loop.name}'")
        return mentions(place.index, (self.loop.name,))

    def shifted(self, place: Aref | Vref) -> Aref | Vref:
        index = tuple([substitute(i, self.later) for i in place.index])
        return place.replace(index=index) if isinstance(place, Aref) else place.replace(index=index, mask=None)
