"""What is in scratch memory at which offset."""
from __future__ import annotations

from caten.core.program import resolve
from caten.core.size_formula import evaluate
from caten.core.text import flat, form_of, read
from caten.loop.statements import LoopProgram
from caten.render.scratch_memory import layout

MACHINE = '(target "c" (machine x86-64 64 16 (32768 1048576)))'
GROUPS = '(target "g" (machine gpu 64 16 (32768 1048576) true (32 1024 49152)))'


def program(body: str, target: str = MACHINE, locals_: str = "") -> LoopProgram:
    (made,) = [resolve(p) for p in read(f"(loop p (buffer X f32 (N) (0) inout) (size N) {target} {locals_} (kernel k {body}))")]
    assert isinstance(made, LoopProgram)
    return made


def nest(name: str, extent: str, number: int) -> str:
    """A loop with an array of its own."""
    return f"(for i{number} 0 N 1 serial (local {name} f32 ({extent}) scratch) (for j{number} 0 4 1 serial (setf (aref {name} j{number}) (aref X i{number}))) (setf (aref X i{number}) (aref {name} 1)))"


def offsets(p: LoopProgram) -> dict[str, int]:
    return {name: int(evaluate(slot.offset, {"N": 100})) for name, slot in layout(p).slots.items()}


def test_arrays_of_statements_that_follow_each_other_are_in_the_same_memory() -> None:
    """A smaller one in the place of a larger one; those of sizes in that of one of the same size."""
    p = program(nest("A", "16", 0) + nest("B", "64", 1) + nest("C", "16", 2))
    assert offsets(p) == {"A": 0, "B": 0, "C": 0}
    assert layout(p).total.value == 256
    assert offsets(program(nest("A", "N", 0) + nest("B", "N", 1) + nest("C", "(* 2 N)", 2))) == {"A": 0, "B": 0, "C": 0}


def test_arrays_of_the_whole_kernel_and_of_one_statement_are_apart() -> None:
    p = program("(local W f32 (16) scratch) (setf (aref W 0) 0.0)" + nest("A", "16", 0) + nest("B", "16", 1) + "(setf (aref X 0) (aref W 0))")
    assert offsets(p) == {"W": 0, "A": 64, "B": 64}
    between = program(nest("A", "16", 0) + "(for i 0 4 1 serial (setf (aref V i) 0.0))" + nest("B", "16", 1), locals_="(local V f32 (16) global)")
    assert len(set(offsets(between).values())) == 2


def test_arrays_of_one_statement_are_apart() -> None:
    p = program("(for k 0 N 1 serial " + nest("A", "16", 0) + nest("B", "16", 1) + ")")
    assert sorted(offsets(p).values()) == [0, 64]


def test_groups_of_threads_are_not_in_step_between_statements() -> None:
    assert offsets(program(nest("A", "16", 0) + nest("B", "16", 1), GROUPS)) == {"A": 0, "B": 64}


def test_sizes_that_are_needed_several_times_are_written_once() -> None:
    """As 3 · size, not as a sum: programs of many layers have long texts else."""
    p = program("".join([f"(local V{n} f32 (N) scratch) (setf (aref V{n} 0) 0.0)" for n in range(4)]))
    assert flat(form_of(layout(p).total)).count("floordiv") == 1
