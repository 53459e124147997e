"""The manifest: what a library says of itself, for bindings in any language.

A library of one operator has all keys at the top; one of several has the keys that its operators share at the top, and
the others in each entry of `ops`. `manifest.schema.json` is the published schema. Formulas are prefix arithmetic over
sizes (core.size_formula)."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

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
from ..core.size_formula import evaluate, formula, names, spell
from ..core.text import show
from ..echo import escape
from ..errors import CatenError, error
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.statements import LoopProgram
from ..render import entry_points
from ..render.c_identifiers import exports, symbol
from ..render.kernel_launch import launches
from ..render.scratch_memory import scratch_bytes
from ..schemas import fault
from . import work_formulas
from .protocol import Runtime

SCHEMA_VERSION = 1
ABI_VERSION = 1
Manifest = dict[str, Any]
SHARED = ("schema_version", "abi_version", "libraries", "target", "compiler", "flags", "runtime", "spec_sha256",
          "runtime_sha256")


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


def known_version(manifest: Mapping[str, Any], origin: Path) -> None:
    """E665 where a manifest is of another version than this caten knows. `origin`: the file that holds it."""
    for key, what, known in (("abi_version", "the calling convention", ABI_VERSION),
                             ("schema_version", "a manifest of version", SCHEMA_VERSION)):
        if manifest.get(key) != known:
            raise error("E665", f"{origin} has {what} {escape(str(manifest.get(key))[:40])}; this caten knows {known}",
                        hint="compile it again")


def checked(manifest: Mapping[str, Any], origin: Path) -> None:
    """E665 for a manifest of another version, E663 for one that breaks the schema or contradicts itself."""
    known_version(manifest, origin)
    wrong = fault(manifest, schema()) or next((w for op in operators(manifest) for w in _contradictions(op)), None)
    if wrong is not None:
        raise error("E663", f"the manifest of {origin} is damaged: {wrong}", hint="compile the spec again")


def _contradictions(op: Mapping[str, Any]) -> Iterator[str]:
    """What the schema cannot say: names mean one argument, axes agree, formulas are formulas over sizes and scalars."""
    arguments = [a["name"] for a in op["arguments"]]
    numbers = [a["name"] for a in op["arguments"] if a["kind"] != "tensor"]
    written = [a["name"] for a in op["arguments"] if a["kind"] == "tensor" and a["direction"] != "in"]
    if twice := [name for name in arguments if arguments.count(name) > 1]:
        yield f"two arguments are called {twice[0]}"
    if sorted(op["outputs"]) != sorted(written):
        yield f"the outputs are {', '.join(op['outputs']) or 'none'}, and it writes {', '.join(written) or 'nothing'}"
    for a in op["arguments"]:
        if sorted(a["order"]) != list(range(len(a["shape"]))) or len(a["strides"] or a["shape"]) != len(a["shape"]):
            yield f"the axes of {a['name']} do not agree"
    texts = [e for a in op["arguments"] for e in (*a["shape"], *(a["strides"] or ()))]
    for text in (*texts, *op["conditions"], *[e["condition"] for e in op.get("ensures", ())], op["scratch_bytes"]):
        try:
            expr = formula(text)
            evaluate(expr, dict.fromkeys((*numbers, "ct_threads"), 1))
        except (CatenError, KeyError, TypeError, ArithmeticError, AttributeError):
            yield f"'{escape(str(text)[:60])}' is no formula over its sizes"


def operators(manifest: Mapping[str, Any]) -> list[Manifest]:
    """One complete manifest per operator of a library."""
    if "ops" not in manifest:
        return [dict(manifest)]
    shared = {k: v for k, v in manifest.items() if k != "ops"}
    return [shared | op for op in manifest["ops"]]


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


def to_json(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest file: the same bytes for the same manifest."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def embedded_text(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest as it is inside its library."""
    return json.dumps(manifest, ensure_ascii=True, separators=(",", ":"))


def manifest_c(manifest: Mapping[str, Any]) -> str:
    """C text that puts the manifest into the library: `ct_OP_manifest` points to it, and where it is the only library
    of a program, or a shared one, it is `ct_manifest`, too."""
    text = embedded_text(manifest)
    pieces = [text[i:i + 100] for i in range(0, len(text), 100)]
    lines = "\n".join(['  "' + p.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"' for p in pieces])
    exported = '__attribute__((visibility("default"))) '
    named = "".join([f"{exported}const char *const {op['symbol']}_manifest = ct_Manifest;\n"
                     for op in operators(manifest)])
    shared = ('extern __attribute__((weak, alias("ct_Manifest"), visibility("default"))) const char ct_manifest[sizeof '
              'ct_Manifest];\n')
    own = f"static const char ct_Manifest[] =\n{lines};\n"
    return f"\n/* What this library says of itself; the schema is published with caten. */\n{own}{named}{shared}"


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema."""
    text = resources.files("caten").joinpath("manifest.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
