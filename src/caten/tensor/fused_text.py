"""The tensor level with the kernels that fusion has found written around the definitions: `caten ir --fused`.

    (group k0 (outer (i M)) (form rows)
      (pass ((p N)) (define v0 (reduce f32 ((i M)) ((p N)) max true (read X i p))))
      (pass ((p N))
        (define v1 (compute f32 ((i M) (j N)) (exp (- (read X i j) (read v0 i)))))
        (define v2 (reduce f32 ((i M)) ((p N)) add true (read v1 i p))))
      …)

The text has what the kernels compute: maps that their readers compute are in them. Lowering takes it back.
"""
from __future__ import annotations

from collections.abc import Iterator

from ..core.node import Node
from .before_fusion import ready_for_fusion
from .blocks_of_rows import BLOCKS, joined
from .fusion import BLOCKS as IN_BLOCKS
from .fusion import is_contraction, kernels_of
from .kernels import Group, NestKernel
from .loop_builder import LoopBuilder
from .passes_over_rows import Loop, Passes
from .values import Along, Axis, Define, FusedKernel, Pass, TensorProgram


def fused(program: TensorProgram) -> TensorProgram:
    """A program with its kernels."""
    if program.first(FusedKernel) is not None:
        return program
    program = ready_for_fusion(program)
    clauses = [c for c in program.clauses if not isinstance(c, Define)]
    at = next((n for n, c in enumerate(program.clauses) if isinstance(c, Define)), len(clauses))
    return program.replace(clauses=(*clauses[:at], *kernel_nodes(program), *clauses[at:]))


def kernel_nodes(program: TensorProgram) -> list[FusedKernel]:
    """The kernels of a program, in the order in which they run."""
    kernels = joined(kernels_of(program), program, BLOCKS)
    builder = LoopBuilder(program, kernels)
    return [kernel_node(f"k{n}", k, builder) for n, k in enumerate(kernels)]


def kernel_node(name: str, k: Group | NestKernel, builder: LoopBuilder) -> FusedKernel:
    """One kernel as a clause."""
    if isinstance(k, NestKernel):
        return FusedKernel(name, (), form_of(k), (Define(k.names, k.nest),))
    outer = k.last.outer
    along = [Along(m.name, names) for m in k.members
             if (names := tuple([a.name for a in m.outer])) != tuple([a.name for a in outer])]
    return FusedKernel(name, outer, form_of(k), (*along, *_steps(Passes(builder, k).root)))


def form_of(k: Group | NestKernel) -> str:
    """The kind of nest that a kernel becomes."""
    if isinstance(k, NestKernel):
        return "nest"
    if k.blocked is not None:
        return IN_BLOCKS
    if any(is_contraction(m.value) for m in k.members):
        return "contraction"
    kinds = {type(m.value).__name__.lower() for m in k.members} - {"compute"}
    return "map" if not kinds else kinds.pop() if kinds <= {"scan", "scatter"} else "rows"


def _steps(loop: Loop) -> Iterator[Node]:
    """The definitions and passes of a loop, in order. Loops with one loop and nothing else inside are one pass."""
    for step in loop.steps:
        if not isinstance(step, Loop):
            yield Define((step.name,), step.value)
            continue
        axes: list[Axis] = [next(iter(step.axes.values()))]
        while len(step.steps) == 1 and isinstance(only := step.steps[0], Loop):
            step = only
            axes.append(next(iter(step.axes.values())))
        yield Pass(tuple(axes), tuple(_steps(step)))

