"""stream: non-temporal stores, which bypass the caches."""
from __future__ import annotations

from typing import Any

from ...loop.effects import reads
from ...loop.statements import STREAM, Local, LoopProgram, Setf, Stmt, Vref
from ..analysis.loop_queries import accesses, enclosing, find, refusal, replaced
from ..step_results import NOTHING, Made


def stream(program: LoopProgram, loop: str, buffer: str) -> tuple[LoopProgram, Made]:
    """Make every vector store to BUFFER inside LOOP a non-temporal store. Use it for an output that is larger than the
    caches and not read again soon. The nest may not read BUFFER. Take this step after `vectorize`: scalar and masked
    stores stay as they are.

        (stream j v)
        (for j 0 (floordiv N 8) 1 serial                     (for j 0 (floordiv N 8) 1 serial
          (setf (vref v 8 ((* j 8))) (splat 8 x)))    ->       (setf (vref v 8 ((* j 8))) (splat 8 x) stream))
    """
    step = f"stream {loop} {buffer}"
    found = find(program, loop, step)
    if not accesses(found, buffer):
        raise refusal("E531", step, f"'{loop}' does not use it")
    if any(isinstance(n, Local) and n.name == buffer and n.space in ("register", "stack") for n in program.unique()):
        raise refusal("E531", step, f"{buffer} is a small array of the kernel's own, which stays in the caches")
    nest = (*enclosing(program, found), found)[0]
    if buffer in reads(nest):
        reader = next(n for n in nest.walk() if isinstance(n, Stmt) and buffer in reads(n) and not any(
            isinstance(part, Stmt) and buffer in reads(part) for part in n.children))
        raise refusal("E531", step, f"{buffer} is read in the nest of '{nest.name}', by {str(reader).splitlines()[0]}")
    streamed = _streamed(found, buffer)
    if streamed is found:
        raise refusal("E531", step,
                      f"'{loop}' stores no whole vector to {buffer} that is not streamed already; vectorize first")
    return replaced(program, found, streamed), NOTHING


def _streamed(stmt: Any, buffer: str) -> Any:
    if isinstance(stmt, Setf) and isinstance(stmt.ref, Vref) and stmt.ref.buffer == buffer and stmt.ref.mask is None:
        return stmt.replace(how=STREAM)
    return stmt.map(lambda child: _streamed(child, buffer) if isinstance(child, Stmt) else child)
