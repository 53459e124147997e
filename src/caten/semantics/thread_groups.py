"""Thread groups in the interpreter: each thread runs up to the next barrier, then the next thread has its turn.

Each thread has its own variables and private arrays; shared arrays are common. The caller chooses the order of the
threads: if a barrier is missing, two orders give different results.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from ..errors import error
from ..loop.gpu_verifier import has_barrier
from ..loop.statements import Barrier, For, If, Let, Local, Stmt
from .closures import Action, Closures

Steps = Callable[[], Iterator[None]]


def group(code: Closures, block: For, compiled: Callable[[tuple[Stmt, ...]], Action], backwards: bool) -> Action:
    """The threads of a nest of block loops from `block` on, from barrier to barrier. `compiled` compiles barrier-free
    code."""
    loops = [block]
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], For) and inner.mark == "block":
        loops.append(inner)
    env = code.env
    counters = [(code.slot(loop.name), code.value(loop.lo), code.value(loop.hi)) for loop in loops]
    program = _steps(code, loops[-1].body, compiled)
    own = sorted({code.slot(n.name) for n in block.walk() if isinstance(n, For | Let | Local)})

    def thread(at: tuple[int, ...]) -> Iterator[None]:
        for (slot, _, _), i in zip(counters, at, strict=True):
            env[slot] = i
        kept = [env[slot] for slot in own]
        turns = program()
        while True:
            for slot, value in zip(own, kept, strict=True):
                env[slot] = value
            if next(turns, turns) is turns:
                return
            kept = [env[slot] for slot in own]
            yield

    def run() -> None:
        places: list[tuple[int, ...]] = [()]
        for _, lo, hi in counters:
            places = [(*at, i) for at in places for i in range(lo(), hi())]
        threads = [thread(at) for at in (reversed(places) if backwards else places)]
        while threads:
            waiting = [t for t in threads if next(t, t) is not t]
            if waiting and len(waiting) < len(threads):
                count = f"{len(waiting)} of {len(threads)} threads"
                raise error("E485", f"{count} wait at a barrier that the others do not reach")
            threads = waiting
    return run


def _steps(code: Closures, stmts: tuple[Stmt, ...], compiled: Callable[[tuple[Stmt, ...]], Action]) -> Steps:
    """Statements as a generator function that yields at every barrier."""
    parts = [_step(code, stmt, compiled) for stmt in stmts]

    def run() -> Iterator[None]:
        for part in parts:
            yield from part()
    return run


def _step(code: Closures, stmt: Stmt, compiled: Callable[[tuple[Stmt, ...]], Action]) -> Steps:
    match stmt:
        case Barrier():
            def wait() -> Iterator[None]:
                yield
            return wait
        case For() if has_barrier(stmt):
            slot, env, body = code.slot(stmt.name), code.env, _steps(code, stmt.body, compiled)
            lo, hi, by = code.value(stmt.lo), code.value(stmt.hi), code.value(stmt.step)

            def iterate() -> Iterator[None]:
                for i in range(lo(), hi(), by()):
                    env[slot] = i
                    yield from body()
            return iterate
        case If(cond, then, otherwise) if has_barrier(stmt):
            test, yes, no = code.value(cond), _steps(code, then, compiled), _steps(code, otherwise, compiled)

            def choose() -> Iterator[None]:
                yield from yes() if test() else no()
            return choose
    act = compiled((stmt,))

    def run() -> Iterator[None]:
        act()
        return
        yield
    return run
