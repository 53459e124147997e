"""Where values live: in the memory of an output, or in scratch memory.

An output that is an input too is written in place if every kernel that reads what the caller passed runs before the
kernel that writes the output, or reads in each iteration only the element that this iteration writes. Otherwise the
input is copied first.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..core.expr import Expr
from ..core.program import Buffer
from ..frozen import frozen
from ..loop.effects import reads
from .fusion_requests import kept_values
from .kernels import Group, Member, NestKernel, names_of, reads_of_kernel
from .values import Output, Read, Reduce, Scatter, TensorProgram, Value, reads_of, shapes_of, types_of


@frozen
class Plan:
    """`home`: value -> the array that holds it. `scratch`: the arrays that the kernels need, with type and shape.
    `copies`: before the kernel of this number, this array is copied to that one. `late`: outputs to be copied at the
    end, from one array to another. `old`: (kernel, parameter) -> the copy that it reads."""

    home: dict[str, str]
    scratch: dict[str, tuple[str, tuple[Expr, ...]]]
    copies: tuple[tuple[int, str, str], ...]
    late: tuple[tuple[str, str], ...]
    old: dict[tuple[int, str], str]


def plan_memory(program: TensorProgram, kernels: Sequence[Group | NestKernel], reuses: bool = False) -> Plan:
    """Give every stored value a place. `reuses`: a value that takes the place of another element by element shares its
    scratch memory."""
    return _Planning(program, kernels, reuses).plan()


class _Planning:
    def __init__(self, program: TensorProgram, kernels: Sequence[Group | NestKernel], reuses: bool) -> None:
        self.program, self.kernels, self.reuses = program, kernels, reuses
        self.values: dict[str, tuple[str, tuple[Expr, ...]]] = {}
        for d in program.definitions:
            self.values |= dict(zip(d.names, zip(types_of(d.value), shapes_of(d.value), strict=True), strict=True))
        self.made = {name: n for n, k in enumerate(kernels) for name in names_of(k)}
        self.reads = [frozenset(reads_of_kernel(k)) for k in kernels]
        self.stored = {name for k in kernels for name in (k.names if isinstance(k, NestKernel) else k.stored)}
        self.outputs = program.outputs
        self.kept = kept_values(program)
        self.home: dict[str, str] = {}
        self.copies: list[tuple[int, str, str]] = []
        self.old: dict[tuple[int, str], str] = {}
        self.late: list[tuple[str, str]] = []
        self.scratch: dict[str, tuple[str, tuple[Expr, ...]]] = {}

    def plan(self) -> Plan:
        buffers = self.program.buffers
        for output in self.outputs:
            self.output(output, buffers[output.name])
        for n, k in enumerate(self.kernels):
            for source, name in sources_of(k):
                if name not in self.home and self.may_share(source, name, n):
                    self.home[name] = self.home.get(source, source)
        for name in reversed([n for n in self.values if n in self.stored and n not in self.home]):
            if name not in self.home:
                self.home[name] = name
                self.scratch[name] = self.values[name]
                if self.reuses:
                    self.in_place(name, name)
        self.scratch = {name: self.scratch[name] for name in [*self.values, *self.scratch] if name in self.scratch}
        return Plan(self.home, self.scratch, tuple(self.copies), tuple(self.late), self.old)

    def output(self, output: Output, buffer: Buffer) -> None:
        """An output: in place, if its memory is free from the kernel that makes it on."""
        value, name = output.value, output.name
        if value in self.home or value not in self.made:
            self.late.append((value, name))
            return
        self.home[value] = name
        value = self.in_place(value, name)
        start = self.made[value]
        readers = [m for m in range(start, len(self.kernels)) if name in self.reads[m]]
        if any(m > start or not self.is_safe(m, value, name) for m in readers):
            copy = f"{name}_old"
            self.scratch[copy] = (buffer.type, buffer.axes)
            self.copies.append((start, name, copy))
            self.old |= {(m, name): copy for m in readers}

    def in_place(self, value: str, memory: str) -> str:
        """Give the values that `value` is made of in place the same memory; the first of them."""
        while (source := self.source_in_place(value, memory)) is not None:
            self.home[source] = memory
            value = source
        return value

    def source_in_place(self, value: str, memory: str) -> str | None:
        """A value that may be in the same memory before `value`: the kernel of `value` is the last reader, in place,
        and nothing reads what the caller passed in between."""
        n = self.made[value]
        kernel = self.kernels[n]
        candidates = [source for source, name in sources_of(kernel) if name == value]
        if not isinstance(kernel, NestKernel):
            candidates += [name for name in reads_of_kernel(kernel) if is_in_place(kernel, value, name)]
        for source in candidates:
            if source in self.home or not self.may_share(source, value, n):
                continue
            at = self.made[source]
            if not any(memory in self.reads[m] for m in range(at + 1, n + 1)) and (
                    memory not in self.reads[at] or self.is_safe(at, source, memory)):
                return source
        return None

    def is_safe(self, n: int, value: str, memory: str) -> bool:
        """May a kernel write a value to memory that it reads?"""
        kernel = self.kernels[n]
        if isinstance(kernel, NestKernel):
            return any(source == memory for source, name in sources_of(kernel) if name == value)
        return is_in_place(kernel, value, memory)

    def may_share(self, source: str, name: str, kernel: int) -> bool:
        """Is nothing from this kernel on, but the kernel itself, interested in what the memory of `source` held?"""
        if not source or source in self.program.buffers or source not in self.made or source in self.kept:
            return False
        later = [n for n, found in enumerate(self.reads) if source in found and n > kernel]
        return not later and all(o.value != source for o in self.outputs) and self.values[source] == self.values[name]


def sources_of(kernel: Group | NestKernel) -> list[tuple[str, str]]:
    """Which array holds the elements that a result of a kernel has at first, and the result. Not if the kernel needs
    these elements elsewhere, too: a nest that reads the array, or has two results which begin with it."""
    if isinstance(kernel, NestKernel):
        outs = kernel.nest.outs
        needed = {name for stmt in kernel.nest.stmts for name in reads(stmt)}
        begin = Counter([o.source for o in outs])
        return [(o.source, name) for o, name in zip(outs, kernel.names, strict=True)
                if o.source == o.name or (o.source not in needed and begin[o.source] == 1)]
    return [(m.value.source, m.name) for m in kernel.members if isinstance(m.value, Scatter)
            and all(r.buffer != m.value.source for r in reads_of(m.value))]


def is_in_place(kernel: Group | NestKernel, value: str, memory: str) -> bool:
    """Does each iteration of a kernel that writes `value` read, of the old contents, only the element that it writes,
    or do reductions that are complete before read the others? In blocks of rows, what comes before `value` is in its
    memory, and old contents may be read after it."""
    if isinstance(kernel, NestKernel) or kernel.blocked is not None:
        return False
    members = {m.name: m for m in kernel.members}
    target = members[value]
    if isinstance(target.value, Scatter):
        return (memory, value) in sources_of(kernel)
    needed = _needs(target, members)
    return all(_is_safe(m, target, r, needed) for m in kernel.members for r in reads_of(m.value) if r.buffer == memory)


def _is_safe(m: Member, target: Member, read: Read, needed: frozenset[str]) -> bool:
    if len(read.index) != len(target.value.axes):
        return False
    own = {a: n for n, a in enumerate(target.outer)}
    for axis, index in zip(target.value.axes, read.index, strict=True):
        if axis in own:
            if index is not m.outer[own[axis]].var:
                return False
        elif m is target and index is not axis.var:
            return False
    return m is target or (m.name in needed and (isinstance(m.value, Reduce) or _is_whole(m, read)))


def _is_whole(m: Member, read: Read) -> bool:
    return read.index == tuple([a.var for a in m.value.axes])


def _needs(target: Member, members: dict[str, Member]) -> frozenset[str]:
    """The members that a member reads, directly or through others."""
    found: set[str] = set()
    stack: list[Value] = [target.value]
    while stack:
        for r in reads_of(stack.pop()):
            if r.buffer in members and r.buffer not in found:
                found.add(r.buffer)
                stack.append(members[r.buffer].value)
    return frozenset(found)
