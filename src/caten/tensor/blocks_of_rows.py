"""Blocks of rows: contractions, and what lies between them, in one kernel.

    attention:    for each block of 64 rows:  S = Q K^T  |  max, exp, sum over each row of S  |  O = S V

The kernels between contractions and a later one that reads their results row by row are joined, so that the results are
needed for the rows of one block only, and stay in cache. What lies between may have other readers, and is stored for
these. Legal is what shares outer loops (`fusion`): each value reads the others at its own row. Each block reads the
other operands of all contractions again. That must cost less than the results that are not stored:
`Blocks.most_read_again`.

The form is that of FlashAttention (Dao et al. 2022) without its running results, which `cascade` adds.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.expr import Const, Expr, Var
from ..core.program import Bind, InOrder, Machine, Target
from ..frozen import frozen
from .boundaries import NO_BLOCKS, Boundary
from .cascade import cascade_of
from .fusion import axis_of_rows, boundaries_of, is_contraction, kernels_of
from .fusion_requests import refusal, requests_of
from .kernels import Group, Member, NestKernel, names_of, reads_of_kernel
from .keys import key_axes
from .request_checks import HINT
from .values import Axis, Compute, FusedKernel, Indexed, Read, Reduce, TensorProgram, reads_of

UNKNOWN = 1024          # what a size counts as that is not known
USUAL_DEPTH = 64        # and what it counts as if rows are summed up between the contractions: the depth of a head


@frozen
class Blocks:
    """The costs and sizes of blocks of rows. `rows`: in a block (None: as many as suit the register tiles of the
    machine). `columns`: of a block of the running form. `bytes`: of the rows of an intermediate result that stay in
    cache (None: half of the last private cache). `most_read_again`: the greatest mean depth of the first contractions
    plus columns of the last."""

    rows: int | None = None
    columns: int = 512
    bytes: int | None = None
    most_read_again: int = 256

    def rows_of(self, machine: Machine | None, needs_all_keys: bool) -> int:
        """The rows of a block: whole register tiles of both contractions, which are 8 × 32 elements with 32 vector
        registers and 6 × 16 with 16. Twice as many if each block needs all keys: they are packed once for a block.
        Under a causal condition, larger blocks would compute more scores that it leaves out."""
        if self.rows is not None:
            return self.rows
        return (64 if machine is not None and machine.registers >= 32 else 48) * (2 if needs_all_keys else 1)


BLOCKS = Blocks()
Kernels = list[Group | NestKernel]


def joined(kernels: Kernels, program: TensorProgram, blocks: Blocks) -> Kernels:
    """The kernels, those in one that may run in blocks of rows. A program's own kernels, and those of a device with
    groups of threads, stay as they are. Raises CatenError E473 for a request to blocks that is not met; on a device:
    that would not be met elsewhere."""
    found = kernels if program.first(FusedKernel) is not None else _joined(kernels, program, blocks)
    check_requests(found, program)
    return kernels if has_groups(program) else found


def has_groups(program: TensorProgram) -> bool:
    """Is the program for a device with groups of threads? Such a device has no kernels of blocks of rows."""
    target = program.first(Target)
    return target is not None and bool(target.machine.groups)


def ignored_requests(program: TensorProgram) -> list[str]:
    """The requests to blocks of rows of a program for a device that has none, as they are written."""
    if not has_groups(program):
        return []
    return [text for (word, *_), text in requests_of(program).text if word in ("rows", "whole", "online")]


def boundaries(program: TensorProgram) -> list[Boundary]:
    """Where one kernel stores what another one reads, and why."""
    kernels = kernels_of(program)
    own, blocked = [{name: n for n, k in enumerate(found) for name in names_of(k)}
                    for found in (joined(kernels, program, BLOCKS), _joined(kernels, program, BLOCKS))]
    found = [b for b in boundaries_of(program) if own.get(b.source, -1) != own.get(b.reader)]
    return [Boundary(b.source, b.reader, NO_BLOCKS) if blocked.get(b.source, -1) == blocked.get(b.reader) else b
            for b in found]


def _joined(kernels: Kernels, program: TensorProgram, blocks: Blocks) -> Kernels:
    search, gone = _Search(kernels, program, blocks), set[int]()
    made: dict[int, Group] = {}
    for n in reversed(range(len(kernels))):
        for chain in [] if n in gone else search.chains(n):
            group = search.group(chain) if gone.isdisjoint(chain) else None
            if group is not None:
                made[n] = group
                gone.update(chain)
                break
    return [made.get(n, k) for n, k in enumerate(kernels) if n in made or n not in gone]


def check_requests(kernels: Kernels, program: TensorProgram) -> None:
    """Raise CatenError E473 for a request to blocks of rows that is not met."""
    requests = requests_of(program)
    blocked = {m.name: k for k in kernels if isinstance(k, Group) and k.blocked is not None for m in k.members}
    if requests.rows is not None and not blocked:
        raise refusal(program, f"(rows {requests.rows})", "no kernel runs in blocks of rows", HINT)
    for word, value in [*[("whole", v) for v in sorted(requests.whole)], *[("online", v) for v, _ in requests.online]]:
        if value not in blocked:
            raise refusal(program, requests.written(word, value), f"{value} is in no kernel of blocks of rows", HINT)
        if word == "online" and program.first(InOrder) is not None:
            raise refusal(program, requests.written(word, value), "sums may not be reassociated", HINT)
        if word == "online" and cascade_of(blocked[value], key_axes(blocked[value])) is None:
            raise refusal(program, requests.written(word, value), "the reductions over its keys are not a maximum and "
                          "sums of exp(x - maximum)", HINT)


class _Search:
    def __init__(self, kernels: Kernels, program: TensorProgram, blocks: Blocks) -> None:
        self.kernels, self.blocks = kernels, blocks
        self.made_by = {name: n for n, k in enumerate(kernels) for name in names_of(k)}
        self.reads = [tuple(dict.fromkeys([self.made_by[r] for r in reads_of_kernel(k) if r in self.made_by]))
                      for k in kernels]
        self.readers: dict[str, set[int]] = {}
        for n, k in enumerate(kernels):
            for name in reads_of_kernel(k):
                self.readers.setdefault(name, set()).add(n)
        self.outputs = set(program.results)
        self.requests = requests_of(program)
        self.sizes = {b.name: b.value for b in program.all(Bind)}

    def contraction(self, n: int) -> Member | None:
        """The contraction in a kernel."""
        k = self.kernels[n]
        return next((m for m in k.members if is_contraction(m.value)), None) if isinstance(k, Group) else None

    def chains(self, last: int) -> list[tuple[int, ...]]:
        """The kernels from contractions before that in the kernel `last` to it: from all of them where none needs
        another, and from each. All that the contractions store is for the kernels of the chain."""
        if self.contraction(last) is None or not self.may_join(last):
            return []
        between, starts, stack = {last}, set[int](), list(self.reads[last])
        while stack:
            n = stack.pop()
            if n in between or n in starts or not self.may_join(n):
                continue
            if self.contraction(n) is not None:
                starts.add(n)
            else:
                between.add(n)
                stack += self.reads[n]
        several = [sorted(starts)] if len(starts) > 1 and not self.follow_each_other(starts) else []
        found = [self.chain(each, sorted(between)) for each in (*several, *[[n] for n in sorted(starts)])]
        return [chain for chain in found if chain]

    def follow_each_other(self, starts: set[int]) -> bool:
        """Does one of these kernels need the results of another, as the steps of a recurrent network do?"""
        later = set(starts)
        for n in range(min(starts) + 1, max(starts) + 1):
            if not later.isdisjoint(self.reads[n]):
                if n in starts:
                    return True
                later.add(n)
        return False

    def chain(self, starts: Sequence[int], between: Sequence[int]) -> tuple[int, ...]:
        """The kernels from `starts` to the last one of `between`, none if others read what the starts store, or read
        anything before the last one is done."""
        needed, last = set(starts), between[-1]
        for n in between:                             # each kernel is after those that it reads
            if not needed.isdisjoint(self.reads[n]):
                needed.add(n)
        names = {name for n in needed - {last} for name in names_of(self.kernels[n])}
        inside = {name for n in starts for name in names_of(self.kernels[n])}
        if any(name in self.outputs or not self.readers.get(name, set()) <= needed for name in inside):
            return ()
        if any(n < last for name in names for n in self.readers.get(name, set()) - needed):
            return ()
        names |= {*names_of(self.kernels[last])}
        if not names.isdisjoint(self.requests.keep) or any(a in names and b in names for a, b in self.requests.apart):
            return ()
        return tuple(sorted(needed))

    def may_join(self, n: int) -> bool:
        """Is a kernel of maps and reductions only?"""
        k = self.kernels[n]
        return isinstance(k, Group) and k.blocked is None and all(
            isinstance(m.value, Compute | Reduce) for m in k.members)

    def group(self, chain: Sequence[int]) -> Group | None:
        """The kernels of a chain as one, if their values share rows and reading operands again is cheap."""
        kernels = [k for n in chain if isinstance(k := self.kernels[n], Group)]
        outer = shared_axes(kernels)
        members = tuple([Member(m.name, m.value, outer[m.name]) for k in kernels for m in k.members])
        rows = axis_of_rows(members)
        if rows is None:
            return None
        *starts, last = [m for n in chain if (m := self.contraction(n)) is not None]
        columns = [a.extent for a in last.value.axes if a not in outer[last.name]]
        unknown = USUAL_DEPTH if sum(isinstance(m.value, Reduce) for m in members) > 2 else UNKNOWN
        depths = [self.count([a.extent for a in m.value.over], unknown) for m in starts if isinstance(m.value, Reduce)]
        if sum(depths) / len(depths) + self.count(columns, unknown) > self.blocks.most_read_again:
            return None
        return Group(members, kernels[-1].stored | self.read_elsewhere(chain), rows)

    def read_elsewhere(self, chain: Sequence[int]) -> frozenset[str]:
        """What kernels of a chain store for others."""
        return frozenset([name for n in chain for name in names_of(self.kernels[n])
                          if name in self.outputs or not self.readers.get(name, set()) <= {*chain}])

    def count(self, extents: Sequence[Expr], unknown: int) -> int:
        """The product of extents. `unknown`: what a size counts as that is not known."""
        total = 1
        for e in extents:
            match e:
                case Const(int() as value):
                    total *= value
                case Var(name) if name in self.sizes:
                    total *= self.sizes[name]
                case _:
                    total *= unknown
        return total


def shared_axes(kernels: Sequence[Group]) -> dict[str, tuple[Axis, ...]]:
    """The axes along which the values of several kernels, each after those that it reads, read each other at their own
    index: the outer loops of a kernel of them all."""
    members = [m for k in kernels for m in k.members]
    own: dict[str, dict[int, Axis]] = {m.name: dict(enumerate(m.outer)) for m in kernels[-1].members}
    together = {m.name: k for k in kernels for m in k.members}
    readers: dict[str, list[tuple[str, Read]]] = {}
    for m in members:
        for r in reads_of(m.value):
            readers.setdefault(r.buffer, []).append((m.name, r))
    for _ in range(2):                                # what others alone read shares the loops of its kernel
        for m in reversed(members):
            for reader, read in [each for each in readers.get(m.name, []) if each[0] in own]:
                at = dict(_aligned(m.value, read, own[reader]))
                own[m.name] = {n: a for n, a in own.get(m.name, at).items() if at.get(n) is a}
        own |= {m.name: _of_kernel(m, together[m.name], own) for m in members if m.name not in own}
    common = [n for n in range(len(kernels[-1].last.outer))
              if all(n in own[m.name] for m in members)]
    return {m.name: tuple([own[m.name][n] for n in common]) for m in members}


def _of_kernel(m: Member, kernel: Group, own: Mapping[str, dict[int, Axis]]) -> dict[int, Axis]:
    """The axes of a member that are the loops of its kernel that other members have in common with their readers."""
    found: dict[int, Axis] = {}
    for other in kernel.members:
        for n, axis in own.get(other.name, {}).items():
            if axis in other.outer:
                found[n] = m.outer[other.outer.index(axis)]
    return found


def _aligned(value: Indexed, read: Read, reader: Mapping[int, Axis]) -> Iterator[tuple[int, Axis]]:
    """The axes of a value that a reader reads at an axis of its own."""
    for n, axis in reader.items():
        found = [a for a, i in zip(value.axes, read.index, strict=True) if i is axis.var]
        if len(found) == 1 and found[0].extent is axis.extent:
            yield n, found[0]
