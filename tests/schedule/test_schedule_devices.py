"""Schedules for devices: why steps are refused, and that plans keep the meaning, whatever the order in which threads
have their turns."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from schedule_nets import program

from caten import driver, loading
from caten.core.program import Case, Schedule
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop.gpu_verifier import grid_of
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.schedule import script
from caten.semantics import comparison, interpret, oracle
from caten.testing import data, sizes_and_scalars

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))
DEVICE = Options(runtime="opencl", verify=True)
ONE = "(for j 0 N 1 serial (setf (aref v j) (aref u j)))"
ROWS = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref w i) (aref A i j))))"
SQUARE = "(for i 0 8 1 serial (for j 0 6 1 serial (for k 0 6 1 serial (incf (aref R i j) (aref F i k)))))"
CPU = '(target "clang" (machine x86_64_v3 32 16 (32768 524288) true))'
SMALL = '(target "opencl" (machine opencl 4 16 (32768 524288) true (32 64 64)))'


@pytest.mark.parametrize(("code", "steps", "statements", "message"), [
    ("E534", "(bind j grid) (bind j grid)", ONE, "it is bound to the grid already"),
    ("E534", "(bind j grid)", ROWS, "it is not the outermost loop of its kernel"),
    ("E534", "(bind j grid)", ONE
     + ONE.replace("j", "k").replace("aref v", "aref F k").replace("(aref F k k)", "(aref F 0 0)"),
     "it is not the outermost loop"),
    ("E534", "(bind j grid)", "(for j 1 N 1 serial (setf (aref v j) (aref v (- j 1))))",
     "which may be the same element"),
    ("E534", "(bind j grid)", "(for j 0 N 1 serial (incf (aref s) (aref u j)))", "which may be the same element"),
    ("E534", "(bind j block)", ONE, "a block has a constant number of threads"),
    ("E534", "(split j 2048 pad) (bind jo grid) (bind ji block)", ONE,
     "a group would have 2048 threads, and 1024 are the most"),
    ("E534", "(bind j grid)", "(for j 0 N 2 serial (setf (aref v j) x))", "its step is 1"),
    ("E534", "(bind i grid)",
     "(for i 0 M 1 serial (local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) x) (setf (aref X i j) (aref t j))))",
     "every thread would need the array 't' for itself"),
    ("E535", "(separate t)", ONE, "it has one statement"),
    ("E501", "(separate k)", ONE, "there is no kernel 'k'; the kernels are: t"),
    ("E535", "(separate t)", "(if (< x 0.0) ((fail 1))) " + ONE, "a check in it guards the statements that follow"),
    ("E535", "(separate t)", f"(let y f32 (aref s)) (setf (aref s) 0.0) {ONE.replace('(aref u j)', 'y')}",
     "'y' is read from an array that the kernel writes"),
    ("E536", "(spread i 3)", ROWS, "a power of two, and on this target 1024 at most"),
    ("E536", "(spread i 4)", "(for i 0 M 1 serial (setf (aref w i) x))", "there is no loop in it to be shared out"),
    ("E536", "(spread i 4)", "(for i 0 M 1 serial (for j 1 N 1 serial (setf (aref X i j) (aref X i (- j 1)))))",
     "the iterations of 'j' depend on each other"),
    ("E536", "(spread i 4)", "(for i 0 M 1 serial (local t f32 (N) scratch) (for j 0 N 1 serial (setf (aref t j) x)))",
     "the shape of 't' is not constant"),
    ("E536", "(spread i 4)",
     "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref w i) (aref A i j)) (incf (aref w i) x max)))",
     "takes values by two operators"),
    ("E536", "(spread i 4)", "(for i 1 M 1 serial (for j 0 N 1 serial (incf (aref w i) (aref w (- i 1)))))",
     "which may be the same element"),
    ("E536", "(spread a 4)", "(for b 0 N 1 serial (for a 0 4 1 serial (for c 0 6 1 serial (setf (aref W c b a) x))))",
     "the one perfect nest of its kernel"),
    ("E515", "(stage k F read shared i k)", SQUARE, "'k' is not inside the threads of a group"),
    ("E515", "(bind i block) (stage k F read shared j k)", SQUARE, "'j' is neither a block loop nor a loop inside 'k'"),
    ("E515", "(bind i block) (stage k F read shared k)", SQUARE, "moves with what is no axis of the tile"),
    ("E515", "(bind i block) (stage k R read shared i)", SQUARE, "does not read R in exactly one way, or writes it"),
    ("E515", "(bind i block) (stage k R accumulate shared i)", SQUARE,
     "threads fill a shared tile together with what they read"),
])
def test_refusal(code: str, steps: str, statements: str, message: str) -> None:
    with pytest.raises(CatenError) as caught:
        script.apply(program(statements), script.parse_schedule(f"(schedule {steps})").steps)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, message in diagnostic.message) == (code, True), diagnostic.message


SHARED = ("(for g 0 4 1 grid (local P f32 (8) shared) (for t 0 8 1 block (local q f32 () register) (setf (aref q) 0.0) (for k 0 6 1 serial"
          " (setf (aref P t) (aref R t k)) (barrier) (incf (aref q) (aref P (- 7 t))) (barrier)) (setf (aref E2 g t) (aref q))))").replace("aref E2 g t", "aref F t g")


@pytest.mark.parametrize(("steps", "message"), [
    ("(split g 2)", "'g' is bound to the grid already"), ("(unroll t)", "'t' is bound to the block already"),
                                                ("(reorder g t)", "is bound to the grid already"),
    ("(fission k 2)", "threads wait for each other inside 'k'"),
                                                ("(split k 2)", "threads wait for each other inside 'k'"),
                                                ("(inline P)", "threads share it"),
    ("(stage k P accumulate stack t)", "threads wait for each other inside 'k' because of it"),
])
def test_steps_that_know_nothing_of_other_threads_are_refused(steps: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        script.apply(program(SHARED), script.parse_schedule(f"(schedule {steps})").steps)


@pytest.mark.parametrize(("steps", "statements", "target", "message"), [
    ("(bind j grid)", ONE, CPU, "the target has no groups of threads"),
    ("(spread i 4)", ROWS, CPU, "the target has no groups of threads"),
    ("(split j 128 pad) (bind jo grid) (bind ji block)", ONE, SMALL,
     "a group would have 128 threads, and 64 are the most"),
    ("(bind i block) (stage k F read shared i k)", SQUARE, SMALL, "a group would share 192 bytes, and 64 are the most"),
])
def test_what_the_target_has_not(steps: str, statements: str, target: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        script.apply(program(statements, facts=target), script.parse_schedule(f"(schedule {steps})").steps)


@pytest.mark.slice(14)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
@pytest.mark.slow
def test_the_recipes_keep_the_meaning_in_any_order_of_threads(path: Path) -> None:
    for op in loading.load_programs(SpecText(path.name, path.read_text(), "toml"), DEVICE):
        assert isinstance(op, OpProgram)
        scheduled = driver.advance(op, "loop", DEVICE)
        assert isinstance(scheduled, LoopProgram)
        case = min([c for c in op.all(Case) if c.expect != "empty"],
                   key=lambda c: abs(sum(int(float(s.value)) for s in c.sizes) - 12))
        arguments = data.arguments(op, sizes_and_scalars.case_values(op, case), seed=3)
        exact = comparison.widened(op, arguments)
        assert interpret.run(oracle.bounded(op), exact) == 0
        for order in ("forward", "reverse"):
            run: dict[str, Any] = {k: v.copy(order="K") if isinstance(v, np.ndarray) else v
                                   for k, v in arguments.items()}
            assert interpret.run(scheduled, run, order) == 0
            for b in op.buffers.values():
                if b.access != "in":
                    bound, loose = exact.get(f"{b.name}__bound",
                                             np.zeros(())), exact.get(f"{b.name}__loose", np.zeros((), np.uint8))
                    verdict = comparison.check(run[b.name], exact[b.name], bound, loose, b.type)
                    assert verdict.passed, f"{path.stem} {case.name} {order}: {b.name}: {verdict}"
                    assert verdict.compared > verdict.loose, f"{path.stem} {case.name}: little of {b.name} is compared: {verdict}"


@pytest.mark.slice(4)
@pytest.mark.parametrize("name", [p.stem for p in SAMPLES if p.stem not in ("histogram", "prefix_sum")])
@pytest.mark.slow
def test_every_kernel_of_a_parallel_sample_runs_in_groups(name: str) -> None:
    path = SAMPLES[0].with_name(f"{name}.toml")
    for op in loading.load_programs(SpecText(path.name, path.read_text(), "toml"), DEVICE):
        scheduled = driver.advance(op, "loop", DEVICE)
        assert isinstance(scheduled, LoopProgram)
        serial = [k for k in scheduled.kernels if not grid_of(k)]
        assert len(serial) < len(scheduled.kernels), name
        assert name in ("dot",) or not serial, [k.name for k in serial]


@pytest.mark.slow
def test_a_printed_schedule_of_a_device_can_be_edited_and_replayed() -> None:
    path = SAMPLES[0].with_name("gemm.toml")
    first = driver.advance(loading.load_programs(SpecText(path.name, path.read_text(), "toml"), DEVICE)[0], "loop",
                           DEVICE)
    steps = first.first(Schedule)
    assert steps is not None
    text = repr(steps)
    for old, new in (("", ""), ("(split p 16 min)", "(split p 8 min)")):
        options = Options(runtime="opencl", schedule=text.replace(old, new), verify=True)
        again = driver.advance(loading.load_programs(SpecText(path.name, path.read_text(), "toml"), options)[0], "loop",
                               options)
        assert isinstance(again, LoopProgram)
        assert (again.kernels == first.kernels) == (not old)  # type: ignore[attr-defined]   # a loop program


@pytest.mark.parametrize(("signature", "axes", "steps", "kernels"), [
    ("x{f32}[M N]", "None", "(fuse p q) (flatten x 0) (separate s) (split pq 16384 pad) (stage pqo y partial scratch pqo)", 4),
    ("x{f32}[A B C]", "None", "(fuse q r) (flatten x 1) (separate s) (stage p y partial scratch p)", 4),      # a block for each of A
    ("x{f32}[M N]", "0", "(split p 256 pad) (reorder po i_2 pi) (stage po y partial scratch po i_2)", 4),
    ("x{f32}[1024 N]", "0", "(split p 256 pad) (reorder po i_2 pi) (stage po y partial scratch po i_2)", 4),
    ("x{f32}[1023 N]", "0", "(hoist p) (stage p y accumulate register)", 2),
    ("x{f32}[A M N]", "1", "(split p 256 pad) (reorder po i_2 j_2 pi) (stage po y partial scratch po i_2 j_2)", 4)])
def test_long_sums_are_shared_by_groups(signature: str, axes: str, steps: str, kernels: int) -> None:
    outputs = f"y{{f32}}[{' '.join(n for k, n in enumerate(signature[7:-1].split()) if axes not in ('None', str(k)))}]"
    text = f'[composite]\nname = "s"\ninputs = ["{signature}"]\noutputs = ["{outputs}"]\n[implementation]\nlang = "python"\n' \
           f'code = "return x.sum(axis={axes})"\n'
    scheduled = driver.advance(loading.load_programs(SpecText("s.toml", text, "toml"), DEVICE)[0], "loop", DEVICE)
    assert isinstance(scheduled, LoopProgram)
    assert steps in " ".join(repr(scheduled.first(Schedule)).split())
    assert len(scheduled.kernels) == kernels
    assert [bool(grid_of(k)) for k in scheduled.kernels] == [axes != "None", True, True, axes != "None"][:kernels]


def test_rows_that_lie_one_behind_the_other_are_one_row_of_threads() -> None:
    text = '[composite]\nname = "s"\ninputs = ["x{f32}[M N]"]\noutputs = ["y{f32}[M N]"]\n[implementation]\nlang = "python"\ncode = "return x * x"\n'
    scheduled = driver.advance(loading.load_programs(SpecText("s.toml", text, "toml"), DEVICE)[0], "loop", DEVICE)
    assert "(fuse i j) (flatten y 0) (flatten x 0) (split ij 256 pad) (bind ijo grid) (bind iji block)" in " ".join(repr(scheduled.first(Schedule)).split())
