"""The replay of a layout of scratch memory: are two arrays that share bytes never needed at the same time?

It knows nothing of how a layout is made. It takes the offsets at some sizes, and the statements in their order.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.dtypes import DTYPES
from ..core.node import Node
from ..core.program import Buffer, Require, Scalar, Target
from ..core.size_formula import evaluate
from ..loop.statements import For, If, Local, LoopProgram
from .scratch_memory import THREADS, Layout, Slot
from .scratch_memory import layout as layout_of

DRAWN = (1, 5, 257, 3_000_001)                           # sizes: each of these for all, and all of these in turn


def faults(program: LoopProgram, layout: Layout | None = None) -> Iterator[str]:
    """Pairs of arrays with bytes in common that are needed at the same time, and arrays beyond the end. `layout`:
    another one than the program's own."""
    layout = layout_of(program) if layout is None else layout
    names = [*program.sizes, *[s.name for s in program.all(Scalar)]]
    needed = _needed(program, set(layout.slots))
    drawn = [dict.fromkeys(names, size) for size in DRAWN]
    for first in range(len(DRAWN) if len(names) > 1 else 0):
        drawn.append({name: DRAWN[(n + first) % len(DRAWN)] for n, name in enumerate(names)})
    for sizes in drawn:
        known = {**sizes, THREADS.name: 3}
        if not _is_possible(program, layout, known):
            continue
        end = evaluate(layout.total, known)
        own = evaluate(layout.shared, known) + evaluate(layout.share, known)
        yield from [f"{name} ends behind the share of its thread, at {sizes}" for name, slot in layout.slots.items()
                    if evaluate(slot.step, known) and _bytes(slot, known)[1] > own]
        ranges = sorted([(*_bytes(slot, known), name) for name, slot in layout.slots.items()])
        yield from [f"{name} ends behind the scratch memory, at {sizes}" for _, last, name in ranges if last > end]
        for n, (_, last, name) in enumerate(ranges):
            for begin, until, other in ranges[n + 1:]:
                if begin >= last:
                    break
                if until > begin and needed[name] & needed[other]:
                    yield f"{name} and {other} share memory and are needed at the same time, at {sizes}"


def _is_possible(program: LoopProgram, layout: Layout, sizes: Mapping[str, int]) -> bool:
    """May a call have these sizes? A window that is longer than its axis would give an output a negative extent."""
    shapes = [*[b.shape for b in program.all(Buffer)], *[slot.local.shape for slot in layout.slots.values()]]
    extents = {e for shape in shapes for e in shape if e.variables <= sizes.keys()}
    conditions = [r.cond for r in program.all(Require) if r.cond.variables <= sizes.keys()]
    return all(evaluate(e, sizes) >= 0 for e in extents) and all(evaluate(c, sizes) for c in conditions)


def _bytes(slot: Slot, sizes: Mapping[str, int]) -> tuple[int, int]:
    """Where an array begins and ends: that of the first thread, if each has one."""
    begin, size = evaluate(slot.offset, sizes), DTYPES[slot.local.type].bytes
    for extent in slot.local.shape:
        size *= max(0, evaluate(extent, sizes)) if not extent.variables - sizes.keys() else 0
    return begin, begin + size


def _needed(program: LoopProgram, arrays: set[str]) -> dict[str, set[int]]:
    """When an array is needed, in statements that a call has run: an array of a statement in that one, an array of a
    kernel from the first one to the last of each run of the kernel, and others from the first one of all to the last.
    Threads of a group do not wait for each other between statements."""
    target = program.first(Target)
    inside = {n.name for k in program.kernels for s in k.body if isinstance(s, For | If) for n in s.unique()
              if isinstance(n, Local)}
    between = {c.name for c in program.all(Local)}
    used: dict[str, list[int]] = {name: [] for name in arrays}
    needed: dict[str, set[int]] = {name: set() for name in arrays}
    steps: dict[Node, list[set[str]]] = {}
    now = 0
    for kernel, actual, _ in program.runs:
        begin = now
        if kernel not in steps:
            each: Sequence[Sequence[Node]] = [[s] for s in kernel.body]
            together = [kernel.body] if target is not None and target.machine.groups else each
            steps[kernel] = [{getattr(n, part) for s in step for n in s.unique()
                              for part in ("buffer", "name", "source") if hasattr(n, part)} for step in together]
        for named in steps[kernel]:
            for name in {actual.get(n, n) for n in named} & arrays:
                used[name].append(now)
            now += 1
        for name in arrays - between - inside:
            times = [time for time in used[name] if time >= begin]
            needed[name] |= set(range(min(times, default=0), max(times, default=-1) + 1))
    for name in arrays & between:
        needed[name] = set(range(min(used[name], default=0), max(used[name], default=-1) + 1))
    return needed | {name: set(used[name]) for name in arrays & inside - between}
