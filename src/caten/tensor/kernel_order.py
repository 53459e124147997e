"""The order of the kernels of a program: each after those that it reads, and results early, to free what they read."""
from __future__ import annotations

from collections.abc import Sequence

from .kernels import Group, NestKernel, names_of, reads_of_kernel
from .values import TensorProgram


def in_order(program: TensorProgram, found: Sequence[tuple[int, Group | NestKernel]]) -> list[Group | NestKernel]:
    """Each kernel after those that it reads; among these, the one that was written first."""
    order_of = {name: n for n, d in enumerate(program.definitions) for name in d.names}
    made_by = {name: k for _, k in found for name in names_of(k)}
    order: list[Group | NestKernel] = []
    done: set[int] = set()
    stack = [(k, False) for _, k in sorted(found, key=lambda each: -each[0])]
    while stack:
        k, is_ready = stack.pop()
        if id(k) in done:
            continue
        if is_ready:
            done.add(id(k))
            order.append(k)
            continue
        stack.append((k, True))
        needed = {id(made_by[n]): made_by[n] for n in reads_of_kernel(k) if n in made_by and made_by[n] is not k}
        earlier = sorted(needed.values(), key=lambda e: -order_of[names_of(e)[-1]])
        stack += [(e, False) for e in earlier if id(e) not in done]
    return _results_early(program, order)


def _results_early(program: TensorProgram, kernels: Sequence[Group | NestKernel]) -> list[Group | NestKernel]:
    """The kernels with those early that make nothing but a result of the program, or a part of one that takes the
    place of what it is made of: the memory of what they read is free then. Where a kernel reads what the parameter
    held before, its result is not early."""
    made_by = {name: n for n, k in enumerate(kernels) for name in names_of(k)}
    readers: dict[str, list[int]] = {}
    for n, k in enumerate(kernels):
        for name in reads_of_kernel(k):
            readers.setdefault(name, []).append(n)
    results_of_program = set(program.results)
    late = {o.value for o in program.outputs if o.name in readers}
    part_of: dict[int, int] = {}                       # a kernel -> the one of the only result that needs it
    place = list(range(len(kernels)))
    for n, k in reversed(list(enumerate(kernels))):
        stored = k.names if isinstance(k, NestKernel) else k.stored
        users = {m for name in stored for m in readers.get(name, ())}
        results = {part_of.get(m, -1) for m in users} if users else {n}
        if len(results) == 1 and -1 not in results and late.isdisjoint(stored) and not (
                users and any(name in results_of_program for name in stored)):
            part_of[n] = results.pop()
    for n in sorted(part_of):
        read = [name for name in reads_of_kernel(kernels[n]) if name in made_by]
        made = [place[made_by[name]] for name in read]
        freed = [max([place[m] for m in readers[name] if m != n], default=0) for name in read]
        if read:
            place[n] = min(n, max(*made, 0 if part_of[n] == n else min(freed)))
    return [kernels[n] for n in sorted(range(len(kernels)), key=lambda n: (place[n], n))]
