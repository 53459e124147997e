"""The manifest of programs: what a library of them will say of itself."""
from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.expr import Cast, Const, Expr, Op, Var
from ..core.program import (
    Bind,
    Buffer,
    Check,
    Collapsed,
    Doc,
    Ensure,
    Outputs,
    Program,
    Require,
    Scalar,
    Schedule,
    Signature,
    Size,
    Target,
)
from ..core.size_formula import names, spell
from ..core.text import show
from ..errors import ToolError
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.statements import LoopProgram
from ..render import entry_points
from ..render.c_identifiers import exports, symbol
from ..render.kernel_launch import launches
from ..render.scratch_memory import scratch_bytes
from . import work_formulas
from .manifest import ABI_VERSION, SCHEMA_VERSION, Manifest
from .protocol import Runtime
from .toolchain import library_name

NOT_FLAGS = ("source.c", "library.so", "library.o", "-c", "-o", "-Wl,-soname,library.so")


@frozen
class Provenance:
    """Where a library comes from: the resolved target, the compiler and its flags, the libraries it needs at run time,
    the SHA-256 of the spec and of the runtime file (hexadecimal)."""

    target: str = ""
    compiler: str = ""
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    spec_sha256: str = ""
    runtime_sha256: str = ""


def provenance(runtime: Runtime, target: Target | None, spec_sha256: str) -> Provenance:
    """The provenance of the library, without starting a process: compiler by name, flags without file names."""
    try:
        commands = runtime.commands(Path("source.c"), Path("library.so"), "so")
    except ToolError:
        commands = []                     # rendering needs no compiler; compiling will say that there is none
    words: list[str] = []
    for command in commands:              # zig compiles and links in two steps, with -march= in the first
        words += [w for w in command if w not in words or command is commands[0]]
    flags = tuple([w for w in words[1:] if w not in NOT_FLAGS])
    return Provenance(
        target=target.machine.arch if target else "", compiler=Path(words[0]).name if words else runtime.name,
        flags=flags, libraries=tuple([name for w in flags if (name := library_name(w))]), spec_sha256=spec_sha256,
        runtime_sha256=hashlib.sha256(runtime.file.read_bytes()).hexdigest() if runtime.file else "")


def manifest(programs: Sequence[LoopProgram], runtime: Runtime, record: Provenance,
             written: Sequence[Program] = ()) -> Manifest:
    """The manifest of a library of `programs`. `written`: the same programs before scheduling, for counting work."""
    return library_manifest(programs, runtime.name, record, written, runtime.allocates)


def library_manifest(programs: Sequence[LoopProgram], runtime: str, record: Provenance, written: Sequence[Program] = (),
                     allocates: bool = True) -> Manifest:
    """As `manifest`, with the runtime by its name, and whether its functions allocate memory."""
    exports([p.name for p in programs], [p.place() for p in programs])
    shared: Manifest = {
        "libraries": list(record.libraries), "target": record.target, "compiler": record.compiler,
                        "flags": list(record.flags),
        "runtime": runtime, "spec_sha256": record.spec_sha256, "runtime_sha256": record.runtime_sha256,
    }
    ops = [operator(p, w, allocates) for p, w in zip(programs, written or programs, strict=True)]
    head: Manifest = {"schema_version": SCHEMA_VERSION, "abi_version": ABI_VERSION}
    return head | ops[0] | shared if len(ops) == 1 else head | {"ops": ops} | shared


def operator(program: LoopProgram, written: Program, allocates: bool = True) -> Manifest:
    """The keys of one operator."""
    name = symbol(program.name)
    doc, declared, schedule = program.first(Doc), program.first(Signature), program.first(Schedule)
    return {
        "op": program.name,
        "symbol": name,
        "symbols": {**({"call": name} if allocates else {}), "workspace": f"{name}_ws",
                    "workspace_size": f"{name}_ws_size",
                    "check": f"{name}_check"},
        "documentation": doc.text if doc else "",
        "signature": list(declared.tensors) if declared else [],
        "arguments": list(arguments(program)),
        "outputs": outputs(program),
        **({"any_axes": {name: [name] for name in fact.names}} if (fact := program.first(Collapsed)) else {}),
        "binds": {b.name: b.value for b in program.all(Bind)},
        "conditions": [show(r.cond, 1 << 30) for r in program.all(Require)],
        "checks": [{"row": c.row, "text": c.text} for c in sorted(program.all(Check), key=lambda c: c.row)],
        "scratch_bytes": spell(scratch_bytes(program)),
        "flops": _over_sizes(work_formulas.flops(written), program),
        "bytes": _over_sizes(work_formulas.bytes_moved(program), program),
        **(on_a_device(program) if runs_in_groups(program) else {
            "kernels": [{"name": name, "launch": [_over_sizes(e, program) for e in extents]}
                        for name, extents in work_formulas.parallel_extents(program).items()]}),
        "schedule": show(schedule, 1 << 30) if schedule else "(schedule)",
    }


def runs_in_groups(program: LoopProgram) -> bool:
    """Was the program made for a device that runs groups of threads?"""
    target = program.first(Target)
    return target is not None and bool(target.machine.groups)


def on_a_device(program: LoopProgram) -> Manifest:
    """What the host needs to start the kernels of a device: the conditions that it checks at entry, and for each kernel
    its function, the number of its groups, the threads of a group along every axis (the fastest last), and its
    arguments."""
    kernels = zip(program.kernels, launches(program), strict=True)
    return {
        "ensures": [{"row": e.row, "condition": show(e.cond, 1 << 30)} for e in program.all(Ensure)],
        "kernels": [{"name": k.name, "launch": [spell(canonical(e)) for e in plan.grid], "function": plan.function,
                     "groups": spell(plan.groups),
                     "threads": list(plan.block), "arguments": list(plan.arguments)} for k, plan in kernels],
    }


def outputs(program: LoopProgram) -> list[str]:
    """The names of the outputs in the order of the spec, or of the arguments for a program without that fact."""
    fact = program.first(Outputs)
    return list(fact.names) if fact else [b.name for b in program.all(Buffer) if b.access != "in"]


def arguments(program: LoopProgram) -> Iterator[Manifest]:
    """The arguments of the C function in order."""
    strides = {s.name for b in program.all(Buffer) for s in b.strides if isinstance(s, Var)}
    for param in entry_points.arguments(program):
        match param:
            case Buffer(name=name, type=dtype, shape=shape, order=order, access=access):
                yield {"name": name, "kind": "tensor", "dtype": dtype, "shape": [spell(e) for e in shape],
                       "order": list(order),
                       "strides": [spell(e) for e in param.strides] or None, "direction": access}
            case Scalar() | Size():
                name, dtype = param.declares()
                kind = "stride" if name in strides else "size" if isinstance(param, Size) else "scalar"
                yield {"name": name, "kind": kind, "dtype": dtype, "shape": [], "order": [], "strides": None,
                       "direction": "in"}


def _over_sizes(expr: Expr, program: Program) -> str | int | None:
    """The formula's text, or None if it depends on more than sizes, such as a range read from an array."""
    known = {*program.sizes, *[s.name for s in program.all(Scalar)]}
    if all(isinstance(n, Op | Cast | Var | Const) for n in expr.unique()) and set(names(expr)) <= known:
        return spell(canonical(expr))
    return None
