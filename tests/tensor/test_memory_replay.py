"""Memory plans and layouts of scratch memory are replayed, and planted overlaps are found."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest

from caten import compiler, driver, loading
from caten.core.expr import index
from caten.core.program import resolve
from caten.core.text import read
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.render import layout_replay
from caten.render.scratch_memory import Layout, layout
from caten.tensor import memory_replay
from caten.tensor.fusion import kernels_of
from caten.tensor.kernels import Group, NestKernel, reads_of_kernel
from caten.tensor.memory import Plan, plan_memory
from caten.tensor.values import TensorProgram

LAYERS = """
h = np.exp(x.sum(axis=1))
g = np.exp(h.sum() + x.T) + h
k = np.exp(g.sum(axis=0) + h) + g.T
s = np.cumsum(k, axis=0) @ x
x = s + x[::-1]
return x, g * k.sum()
"""
SPEC = f"""[composite]
name = "Layers"
inputs = ["x{{float}}[N N]"]
outputs = ["x", "y{{float}}[N N]"]
[composite.implementation]
lang = "python"
code = '''{LAYERS}'''
"""


def planned() -> tuple[TensorProgram, list[Group | NestKernel], Plan]:
    (made,) = loading.loaded([SpecText("layers.toml", SPEC)], Options())
    program = driver.advance(made, "tensor", Options())
    assert isinstance(program, TensorProgram)
    kernels = kernels_of(program)
    return program, kernels, plan_memory(program, kernels)


def test_values_that_are_needed_at_the_same_time_in_one_array() -> None:
    program, kernels, plan = planned()
    assert list(memory_replay.faults(program, kernels, plan)) == []
    made = {name: n for n, k in enumerate(kernels) for name in (k.names if isinstance(k, NestKernel) else k.stored)}
    last = {name: max([n for n, k in enumerate(kernels) if name in reads_of_kernel(k)], default=len(kernels)) for name in made}
    planted = 0
    for a, b in combinations([name for name in made if plan.home[name] in plan.scratch], 2):
        if made[a] < last[b] and made[b] < last[a] and plan.home[a] != plan.home[b]:
            wrong = replace(plan, home=plan.home | {b: plan.home[a]})
            assert list(memory_replay.faults(program, kernels, wrong)), f"{b} in the place of {a}"
            planted += 1
    assert planted >= 2


def test_an_input_that_is_overwritten_too_early() -> None:
    program, kernels, plan = planned()
    assert plan.old                                             # the reversed rows of x are read while x is written
    for wrong in (replace(plan, old={}), replace(plan, copies=()), replace(plan, copies=tuple([(n + 1, a, b) for n, a, b in plan.copies]))):
        assert any("x" in fault for fault in memory_replay.faults(program, kernels, wrong))


def test_an_output_that_is_elsewhere() -> None:
    program, kernels, plan = planned()
    output = next(o for o in program.outputs if o.name == "y")
    wrong = replace(plan, home=plan.home | {output.value: "elsewhere"})
    assert any(fault.startswith("y holds ") and " at the end" in fault for fault in memory_replay.faults(program, kernels, wrong))


@cache
def placed(config: tuple[tuple[str, str], ...] = ()) -> tuple[LoopProgram, Layout]:
    options = Options(config=config)
    (program,) = compiler.prepare([SpecText("layers.toml", SPEC)], options).programs
    assert isinstance(program, LoopProgram)
    return program, layout(program)


@pytest.mark.slow
@pytest.mark.parametrize("config", [(), (("OMP", "1"),)], ids=["one thread", "threads"])
def test_arrays_that_are_needed_at_the_same_time_in_one_place(config: tuple[tuple[str, str], ...]) -> None:
    program, right = placed(config)
    assert list(layout_replay.faults(program, right)) == []
    needed = layout_replay._needed(program, set(right.slots))
    planted = 0
    for a, b in combinations(right.slots, 2):
        if needed[a] & needed[b] and right.slots[a].offset is not right.slots[b].offset and right.slots[a].step is right.slots[b].step:
            slots = right.slots | {b: replace(right.slots[b], offset=right.slots[a].offset)}
            wrong = replace(right, slots=slots)
            assert any("at the same time" in fault for fault in layout_replay.faults(program, wrong)), f"{b} in the place of {a}"
            planted += 1
    assert planted >= 2


@pytest.mark.slow
def test_an_array_beyond_the_end() -> None:
    program, right = placed()
    (name, slot), *_ = right.slots.items()
    wrong = replace(right, slots=right.slots | {name: replace(slot, offset=right.total + index(64))})
    assert any(f"{name} ends behind" in fault for fault in layout_replay.faults(program, wrong))


REPEATED = """(loop F (outputs Y Z) (buffer X f32 (64) (0) in) (buffer Y f32 (64) (0) inout) (buffer Z f32 (64) (0) inout)
  (kernel f (local t f32 (4096) scratch)
    (for i serial 0 64 1 (setf (aref t i) (aref X i))) (for j serial 0 64 1 (incf (aref Y j) (aref t j))))
  (kernel g (local u f32 (4096) scratch)
    (for k serial 0 64 1 (setf (aref u k) (aref X k))) (for l serial 0 64 1 (incf (aref Y l) (aref u l))))
  (repeat f (Y Z)))"""


def test_an_array_of_a_kernel_that_runs_again_is_needed_while_it_runs() -> None:
    """Between the two runs, another kernel may use its memory."""
    (program,) = [resolve(p) for p in read(REPEATED)]
    assert isinstance(program, LoopProgram)
    made = layout(program)
    assert made.slots["t"].offset is made.slots["u"].offset
    assert layout_replay._needed(program, {"t", "u"}) == {"t": {0, 1, 2, 6, 7, 8}, "u": {3, 4, 5}}
    assert list(layout_replay.faults(program, made)) == []


def test_sizes_that_no_call_has_are_not_tried() -> None:
    """A window of 3,000,001 elements in an axis of one."""
    text = """(loop F (outputs Y) (buffer X f32 (N) (0) in) (buffer W f32 (K) (0) in) (buffer Y f32 ((+ (- N K) 1)) (0) inout) (size N) (size K)
      (local t f32 ((+ (- N K) 1)) global) (kernel f (for i 0 (+ (- N K) 1) 1 serial (setf (aref t i) (aref X i))))
      (kernel g (for j 0 (+ (- N K) 1) 1 serial (incf (aref Y j) (* (aref W 0) (aref t j))))))"""
    (program,) = [resolve(p) for p in read(text)]
    assert isinstance(program, LoopProgram)
    assert list(layout_replay.faults(program)) == []
    slot = layout(program).slots["t"]
    wrong = replace(layout(program), slots={"t": replace(slot, offset=index(64))})
    assert list(layout_replay.faults(program, wrong))
