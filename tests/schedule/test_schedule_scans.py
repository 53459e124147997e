"""Running totals as vectors: the prefix of each vector, and what the vectors before have added up."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from schedule_nets import assert_same, assert_sound, kernel_text, program

import caten
from caten import driver
from caten.compiler import Compilation
from caten.core.program import Schedule
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.loading import load_programs
from caten.loop.statements import If, LoopProgram, Prefix, Vref
from caten.options import Options
from caten.schedule import autoscheduler, script
from caten.schedule.planning import Planning
from caten.tensor.values import Define

AVX2 = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true))'
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),))
PARAMS = "(size N) (buffer u f32 (N) (0) in) (buffer v f32 (N) (0) inout) (buffer k i64 (N) (0) in)"
SCAN = "(local s f32 () register) (setf (aref s) 0.0) (for i 0 N 1 serial {})"
ROWS = """
[composite]
name = "Rows"
inputs = ["x{{{kind}}}[M N]"]
outputs = ["y{{{kind}}}[M N]"]
[implementation]
code = "(dotimes (i M) (set s 0) (dotimes (j N) (incf s (aref x i j)) (setf (aref y i j) s)))"
"""
SIZES = ((0,), (1,), (7,), (8,), (9,), (33,))
BODIES = {
    "inclusive": "(incf (aref s) (aref u i)) (setf (aref v i) (aref s))",
    "exclusive": "(let before f32 (aref s)) (incf (aref s) (aref u i)) (setf (aref v i) before)",
    "both": "(let before f32 (aref s)) (incf (aref s) (aref u i) max) (setf (aref v i) (* before (aref s)))",
    "in place": "(incf (aref s) (aref v i)) (setf (aref v i) (aref s))",
    "down": "(incf (aref s) (aref u (- (- N 1) i)) min) (setf (aref v (- (- N 1) i)) (+ 1.0 (aref s)))",
    "of an expression": "(let t f32 (* (aref u i) (aref u i))) (incf (aref s) t) (setf (aref v i) (- (aref s) t))",
    "two": "(incf (aref s) (aref u i)) (incf (aref s2) (aref v i)) (setf (aref v i) (+ (aref s2) (aref s)))",
    "a sum beside": "(incf (aref s) (aref u i)) (setf (aref v i) (aref s)) (incf (aref s2) (aref u i))",
    "a gather": "(incf (aref s) (aref u (max 0 (min (- N 1) (aref k i))))) (setf (aref v i) (aref s))",
}
SCALAR = {
    "a step that depends on the total": "(let before f32 (aref s)) (incf (aref s) (* before (aref u i))) (setf (aref v i) (aref s))",
    "two statements that accumulate": "(incf (aref s) (aref u i)) (incf (aref s) 1.0) (setf (aref v i) (aref s))",
    "an early use": "(setf (aref v i) (aref s)) (incf (aref s) (aref u i))",
    "under a condition": "(if (< 0.0 (aref u i)) ((incf (aref s) (aref u i)))) (setf (aref v i) (aref s))",
}


def scan(body: str) -> LoopProgram:
    second = "(local s2 f32 () register) (setf (aref s2) 1.0) " if "s2" in body else ""
    end = "(if (< 0 N) ((setf (aref v 0) (aref s2))))" if "s2" in body else "(if (< 0 N) ((incf (aref v 0) (aref s))))"
    return program(second + SCAN.format(body) + end, PARAMS, AVX2)


@pytest.mark.parametrize("name", BODIES)
def test_a_scan_is_vectorised(name: str) -> None:
    before = scan(BODIES[name])
    after = autoscheduler.schedule(before, Planning(verify=True))
    assert [n for k in after.kernels for n in k.unique() if isinstance(n, Prefix)]
    assert_sound(after)
    assert_same(before, after, SIZES)
    schedule = after.first(Schedule)
    assert schedule is not None
    assert [step for step in show(schedule).split("\n") if "vectorize ii" in step]


def test_the_steps_of_a_scan() -> None:
    before = program(SCAN.replace("N", "8").format(BODIES["exclusive"]), PARAMS.replace("(N)", "(8)"))
    after = script.apply(before, (("vectorize", "i"),))
    assert kernel_text(after) == """(local s f32 () register)
(setf (aref s) 0.0)
(local s_prefix f32 (8) register)
(setf (vref s_prefix 8 (0)) (prefix add (vref u 8 (0))))
(local before f32 (8) register)
(setf
  (vref before 8 (0))
  (+
    (splat 8 (aref s))
    (where (< (ramp 8 0 1) (splat 8 1)) (splat 8 0.0) (shuffle (vref s_prefix 8 (0)) 0 0 1 2 3 4 5 6))))
(incf (aref s) (aref s_prefix 7))
(setf (vref v 8 (0)) (vref before 8 (0)))"""


@pytest.mark.parametrize("name", SCALAR)
def test_other_accumulators_stay_scalar(name: str) -> None:
    before = scan(SCALAR[name])
    after = autoscheduler.schedule(before, Planning(verify=True))
    assert not [n for k in after.kernels for n in k.unique() if isinstance(n, Prefix)]
    assert_same(before, after, SIZES)


def test_a_step_that_depends_on_the_total_is_refused() -> None:
    before = program(SCAN.replace("N", "8").format(SCALAR["a step that depends on the total"]), PARAMS.replace("(N)", "(8)"))
    with pytest.raises(CatenError, match=r"E513.* s"):
        script.apply(before, (("vectorize", "i"),))


NUMPY = {
    "cumsum": ("np.cumsum(X, axis={axis})", lambda x, axis: np.cumsum(x, axis, dtype=x.dtype)),
    "maximum": ("np.maximum.accumulate(X, axis={axis})", np.maximum.accumulate),
    "exclusive": ("np.cumsum(X, axis={axis}).astype(X.dtype) - X", lambda x, axis: np.cumsum(x, axis, dtype=x.dtype) - x),
    "down": ("np.flip(np.cumsum(np.flip(X, {axis}), axis={axis}), {axis})", lambda x, axis: np.flip(np.cumsum(np.flip(x, axis), axis, dtype=x.dtype), axis)),
}


def spec(dtype: str, code: str) -> str:
    return f"""[composite]
name = "Total"
inputs = ["X{{{dtype}}}[M N]"]
outputs = ["Y{{{dtype}}}[M N]"]
[implementation]
lang = "python"
code = '''
return ({code}).astype(X.dtype)
'''
"""


@pytest.mark.slow
@pytest.mark.slice(12)
@pytest.mark.parametrize("dtype", ["float", "double", "int32", "int64", "uint8", "half"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("opt", [0, 2])
def test_running_totals_are_those_of_numpy(dtype: str, axis: int, opt: int, tool: Any) -> None:
    tool("gcc")
    texts = {name: spec(dtype, code.format(axis=axis)) for name, (code, _) in NUMPY.items()}
    for name, text in texts.items():
        total = caten.compile(text, runtime="gcc", opt=opt, config={"OPT": "1"})
        for shape in ((3, 1), (5, 17), (1, 67), (16, 16), (0, 4), (4, 0)):
            x = np.random.default_rng(1).integers(0, 9, shape).astype({"float": "f4", "double": "f8", "half": "f2"}.get(dtype, dtype))
            np.testing.assert_array_equal(total(x), NUMPY[name][1](x, axis), err_msg=f"{name} of {shape}")


@pytest.mark.slow
def test_sums_that_keep_their_order_stay_scalar(tool: Any) -> None:
    tool("gcc")
    x = np.random.default_rng(3).standard_normal((3, 1000)).astype(np.float32)
    want = np.empty_like(x)
    for row, out in zip(x, want, strict=True):
        total = np.float32(0)
        for n, value in enumerate(row):
            out[n] = total = np.float32(total + value)
    text = spec("float", "np.cumsum(X, axis=1)")
    np.testing.assert_array_equal(caten.compile(text, runtime="gcc", reassociate=False)(x), want)
    np.testing.assert_allclose(caten.compile(text, runtime="gcc")(x), want, rtol=1e-4, atol=1e-4)


def values_of(text: str) -> list[str]:
    (program,) = load_programs(SpecText("total.toml", text, "toml"), OPTIONS)
    return [show(d) for d in driver.advance(program, "tensor", OPTIONS).all(Define)]


@pytest.mark.parametrize("axis", [0, 1])
def test_loops_and_numpy_give_the_same_values(axis: int) -> None:
    (outer, m), (inner, n) = (("i", "M"), ("j", "N"))[::1 if axis else -1]
    loops = f"(dotimes ({outer} {m}) (set s 0.0) (dotimes ({inner} {n}) (incf s (aref X i j)) (setf (aref Y i j) s)))"
    numpy = spec("float", f"np.cumsum(X, axis={axis})")
    lisp = numpy[:numpy.index("lang")] + f"code = \"{loops}\""
    found = values_of(lisp)
    assert found == values_of(numpy)
    assert found == [f"(define v0 (scan f32 ((i M) (j N)) {inner} add inclusive up true (read X i j)))"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float", "double"])
def test_lanes_are_not_expanded_under_a_mask(kind: str) -> None:
    """What clang makes of shuffles with zeros for AVX-512 takes AMD's processors four times as long."""
    options = Options(config=(("MARCH", "x86_64_v4"), ("OPT", "3")))
    made = Compilation(load_programs(SpecText("a.toml", ROWS.format(kind=kind), "toml"), options), options).artifact("s").artifact.read_text()
    assert "vpermt2p" in made
    assert "expandp" not in made


def test_short_rows_of_running_totals_stay_scalar() -> None:
    (op,) = load_programs(SpecText("a.toml", ROWS.format(kind="float"), "toml"), OPTIONS)
    (copy,) = [n for n in driver.advance(op, "loop", OPTIONS).walk() if isinstance(n, If) and show(n.cond) == "(< N 8)"]
    assert not any(isinstance(n, Vref | Prefix) for s in copy.then for n in s.walk())
    assert any(isinstance(n, Prefix) for s in copy.otherwise for n in s.walk())
