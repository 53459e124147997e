"""The verifier of kernels that a text of the tensor level has: `(group k0 (outer (i M)…) (form rows) step…)`."""
from __future__ import annotations

from collections.abc import Iterator

from ..core.text import flat, form_of
from ..errors import Diagnostic
from .boundaries import misread, told
from .fused_text import kernel_nodes
from .fusion import independent, kernels_of, misaligned
from .kernels import Group
from .values import Along, Define, FusedKernel, Indexed, Nest, Pass, TensorProgram, whole_operands_of

AGAIN = "caten ir --fused writes kernels around definitions"


def verify_kernels(program: TensorProgram) -> Iterator[Diagnostic]:
    """What is wrong with the kernels of a program (E472): outer loops that are no axes of the members, or that members
    read at other indices; a form or passes that are not those of the members."""
    found = program.all(FusedKernel)
    problems = [message for k in found for message in _axes(k)]
    if program.all(Define) and found:
        problems.append(f"{program.all(Define)[0].name} is outside all kernels")
    kernels = [] if problems else kernels_of(program)
    for node, kernel in zip(found, kernels, strict=False):
        if isinstance(kernel, Group) and (wrong := misaligned(kernel)) is not None:
            reader, read, axis = wrong
            why = told(misread(read, axis, reader.value), read.buffer, reader.name)
            problems.append(f"{node.name}: {why}, and the outer loops are not the same for both")
    if problems or not found:
        yield from [Diagnostic("E472", p, hint=AGAIN) for p in problems]
        return
    for written, made in zip(found, kernel_nodes(program), strict=True):
        if written.replace(name="") is not made.replace(name=""):
            yield Diagnostic("E472", f"{written.name}: the members make other passes, or are of another form",
                             hint=f"it is {flat(form_of(made.replace(name=written.name)))}")


def _axes(k: FusedKernel) -> Iterator[str]:
    """Members whose outer loops are not to be found, or that cannot be in one kernel."""
    along = {step.value: step.axes for step in k.steps if isinstance(step, Along)}
    yield from [f"{k.name}: {name} is no member" for name in along.keys() - {d.name for d in k.definitions}]
    if not k.definitions:
        yield f"{k.name} has no members"
    if not all(isinstance(step, Along | Define | Pass) for step in k.steps):
        yield f"{k.name}: a kernel holds definitions and passes"
    members = {name for d in k.definitions for name in d.names}
    yield from [f"{k.name}: {d.name} needs the whole of {name}, which another kernel is to compute"
                for d in k.definitions for name in whole_operands_of(d.value) if name in members]
    for d in k.definitions:
        if isinstance(d.value, Nest):
            if len(k.definitions) > 1:
                yield f"{k.name}: the nest {d.name} has a kernel of its own"
            continue
        names = along.get(d.name, tuple([a.name for a in k.outer]))
        extents = {a.name: a.extent for a in independent(d.value)} if isinstance(d.value, Indexed) else {}
        if len(set(names)) != len(k.outer) or [extents.get(n) for n in names] != [a.extent for a in k.outer]:
            yield f"{k.name}: the outer loops are no axes of {d.name} with these extents"
