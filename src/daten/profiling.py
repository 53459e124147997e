"""What each kernel of a program takes: each compiled as a program of its own, and run in order over the arrays of a
call. So the times are those of kernels as they follow each other, with the calls between them (about 1 µs each)."""
from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from caten import attach
from caten.benchmarking import limits, measure, timing
from caten.benchmarking.limits import Limits
from caten.benchmarking.results import spelled
from caten.compiler import Compilation
from caten.core.expr import Var
from caten.core.node import Node
from caten.core.numpy_types import numpy_dtype
from caten.core.program import Buffer, Check, Ensure, Opt, Outputs, Size, Target
from caten.errors import ToolError
from caten.tensor.fused_text import fused
from caten.tensor.values import FusedKernel, Inside, Output, TensorProgram

from .listing import Listing, operations
from .lowering import Lowered
from .settings import options

STORED = "_out"                                             # behind the name of a value: the array that it is stored in
MOST_SECONDS, LEAST_ROUNDS, MOST_ROUNDS = 2.0, 5, 200


@dataclass(frozen=True)
class Timed:
    """One kernel: how the listing writes it, its form, seconds by median, when it began in the last round and what it
    took there, floating-point operations and bytes that it reads and writes at least."""

    text: str
    form: str
    seconds: float
    start: float
    last: float
    flops: int
    bytes: int


@dataclass(frozen=True)
class Profile:
    """`kernels`: in order. `whole`: seconds of the program in one call, by median. `machine`: what it could do."""

    name: str
    kernels: tuple[Timed, ...]
    whole: float
    machine: Limits | None

    def lines(self) -> Iterator[str]:
        """A line for each kernel: time, share, rates, and the share of what the machine could do."""
        total = sum([k.seconds for k in self.kernels])
        rows = [("time", "share", "GFLOP/s", "GB/s", "of peak", "kernel")]
        rows += [(spelled(k.seconds), f"{k.seconds / total:.0%}", f"{k.flops / k.seconds / 1e9:.1f}",
                  f"{k.bytes / k.seconds / 1e9:.1f}", self._share(k), k.text) for k in self.kernels]
        widths = [max([len(row[n]) for row in rows]) for n in range(5)]
        for row in rows:
            yield "  ".join([*[cell.rjust(width) for cell, width in zip(row, widths, strict=False)], row[-1]])
        yield f"; {self.name}: {len(self.kernels)} kernels, {spelled(total)} apart, {spelled(self.whole)} in one call"
        if self.machine is not None:
            yield f"; {self.machine.line()}"

    def trace(self) -> str:
        """The last round as JSON for a browser's trace viewer: complete events, in microseconds."""
        events = [{"name": k.text.split(" <- ")[0], "cat": k.form, "ph": "X", "pid": 1, "tid": 1,
                   "ts": k.start * 1e6, "dur": k.last * 1e6,
                   "args": {"kernel": k.text, "flops": k.flops, "bytes": k.bytes}} for k in self.kernels]
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1) + "\n"

    def _share(self, k: Timed) -> str:
        if self.machine is None:
            return "-"
        return f"{max(k.flops / self.machine.flops, k.bytes / self.machine.bandwidth) / k.seconds:.0%}"


def profiled(made: Lowered, wants_machine: bool = True) -> Profile:
    """Time a program and its kernels over the arrays that it was lowered for."""
    whole = fused(made.program)
    listing = Listing(whole, whole.all(FusedKernel), made.sizes)
    apart = [_alone(whole, k, listing) for k in listing.kernels]
    built = Compilation(apart, options()).artifact()
    loaded = built.runtime.load(built.artifact, built.manifest)
    arrays: dict[str, np.ndarray] = {
        b.name: np.asarray(r.array) for b, r in zip(made.program.buffers.values(), made.arrays, strict=False)}
    calls = []
    for program in apart:
        given = {b.name: arrays[b.name] for b in program.all(Buffer) if b.access == "in"}
        for b in program.all(Buffer):
            if b.access == "out":
                given[b.name] = arrays[b.name.removesuffix(STORED)] = np.empty(
                    [listing.extent(e) for e in b.shape], numpy_dtype(b.type))
        call = loaded[program.name] if len(apart) > 1 else loaded
        calls.append(call.bind(**given, **{s: made.sizes[s] for s in _own_sizes(call) if s in made.sizes}))
        calls[-1]()                                         # what follows reads it
    starts, taken = _rounds(calls)
    kernels = [Timed(line, k.form, float(np.median(seconds)), start, seconds[-1], *_work(program, listing))
               for line, k, seconds, start, program
               in zip(listing.lines(), listing.kernels, taken, starts, apart, strict=True)]
    return Profile(made.program.name, tuple(kernels), _in_one_call(made), _limits() if wants_machine else None)


def _alone(whole: TensorProgram, kernel: FusedKernel, listing: Listing) -> TensorProgram:
    """One kernel as a program: what it reads are arrays, what is read of it too."""
    stored, read = listing.operands(kernel)
    ins = [_buffer(name, listing, "in") for name in read]
    outs = [_buffer(name, listing, "out") for name in stored]
    used = {v.name for node in (kernel, *ins, *outs) for v in node.unique() if isinstance(v, Var)}
    known = [e for e in whole.all(Ensure) if e.cond.variables <= used]      # its indices may rest on them
    rows = {n.row for n in kernel.unique() if isinstance(n, Inside)} | {e.row for e in known}
    facts: list[Node] = [s for s in whole.all(Size) if s.name in used]
    return TensorProgram(f"{whole.name}_{kernel.name}", (
        Outputs(tuple([b.name for b in outs])), *ins, *facts, *whole.all(Target), *whole.all(Opt), *outs,
        *[c for c in whole.all(Check) if c.row in rows], *known, kernel,
        *[Output(b.name, name) for b, name in zip(outs, stored, strict=True)]))


def _buffer(name: str, listing: Listing, access: str) -> Buffer:
    dtype, shape = listing.kinds[name]
    return Buffer(name if access == "in" else name + STORED, dtype, shape, tuple(range(len(shape))), access)


def _own_sizes(call: Any) -> Sequence[str]:
    """The sizes of a call that no array tells."""
    return tuple(call._keywords)


def _rounds(calls: Sequence[Any]) -> tuple[list[float], list[list[float]]]:
    """Run all in order, again and again: when each began in the last round, and the seconds of each in all."""
    clock, taken = time.perf_counter, list[list[float]]([] for _ in calls)
    ends = clock() + MOST_SECONDS
    starts = list[float]()
    for n in range(MOST_ROUNDS):
        if n >= LEAST_ROUNDS and clock() > ends:
            break
        begin, starts = clock(), []
        for call, seconds in zip(calls, taken, strict=True):
            start = clock()
            call()
            seconds.append(clock() - start)
            starts.append(start - begin)
    return starts, taken


def _in_one_call(made: Lowered) -> float:
    built = Compilation([made.program], options()).artifact()
    call = built.runtime.load(built.artifact, built.manifest).bind(
        *[np.asarray(r.array) for r in made.arrays],
        *[np.empty(r.shape, numpy_dtype(r.dtype)) for r in made.results])
    call()
    _, (seconds,) = _rounds([call])
    return float(np.median(seconds))


def _work(program: TensorProgram, listing: Listing) -> tuple[int, int]:
    """Floating-point operations, and the bytes of the arrays that it reads and writes."""
    moved = sum([prod([listing.extent(e) for e in b.shape]) * numpy_dtype(b.type).itemsize
                 for b in program.all(Buffer)])
    return operations(program, listing.sizes), moved


def _limits() -> Limits | None:
    """The limits of the machine; None for a runtime without a C compiler."""
    runtime = attach.runtime_of(options())
    try:
        return limits.measured(runtime, measure.threads(options()), LEAST_ROUNDS, timing.Plan()) \
            if "c" in runtime.suffixes else None
    except ToolError:
        return None
