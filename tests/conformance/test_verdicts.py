"""How results are judged: what is exact to the last bit, what within a bound, and memory that is not the kernel's."""
from __future__ import annotations

import ctypes
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.attach import runtime_of
from caten.conformance import execute, guarded_calls, suite
from caten.conformance.cases import selected
from caten.conformance.elementwise_verdicts import Elementwise, limits, ulps
from caten.conformance.verdicts import BAD, Called, Fails, Oracle, Verdict
from caten.core.numpy_types import numpy_dtype
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loading import load_programs
from caten.options import Options

OP: Any = None                     # judging elements needs no program


def judged(fn: str, x: list[float], got: list[Any], dtype: str = "f32", result: str = "f32") -> Verdict:
    operands = [np.array(x).astype(numpy_dtype(dtype))] * (2 if fn in ("add", "max", "floordiv") else 1)
    names = dict(zip("XYZ", operands, strict=False))
    return Elementwise(fn, (dtype,) * len(operands), result)(OP, names, Called({"R": np.array(got).astype(numpy_dtype(result))}))


@pytest.mark.parametrize(("fn", "x", "got", "status"), [
    ("add", 1.5, 3.0, "PASS"), ("add", 1.5, np.nextafter(np.float32(3), np.float32(4)), "QUALITY"), ("add", 1.5, 3.1, "FAIL"), ("add", np.nan, 0.0, "FAIL"),
    ("add", np.nan, -np.nan, "PASS"), ("add", -0.0, -0.0, "PASS"), ("add", -0.0, 0.0, "FAIL"), ("add", np.inf, 3.4028235e38, "FAIL"),
    ("exp", 1.0, 2.7182817, "PASS"), ("exp", 1.0, 2.7182825, "QUALITY"), ("exp", 1.0, 2.7183, "FAIL"), ("exp", 1000.0, np.inf, "PASS"), ("exp", 1000.0, 3.4e38, "FAIL"),
    ("max", -0.0, 0.0, "PASS"), ("floor", -0.5, -1.0, "PASS"), ("floor", 0.5, np.nextafter(np.float32(0), np.float32(1)), "FAIL"),
])
def test_a_float_result(fn: str, x: float, got: float, status: str) -> None:
    assert judged(fn, [x], [got]).status == status


@pytest.mark.parametrize(("fn", "x", "got", "dtype", "result", "status"), [
    ("add", 100, -56, "i8", "i8", "PASS"), ("add", 100, 127, "i8", "i8", "FAIL"), ("cast", 300.0, 255, "f32", "u8", "PASS"), ("cast", 300.0, 44, "f32", "u8", "FAIL"),
    ("isnan", np.nan, True, "f32", "bool", "PASS"), ("add", 1.0, 2.0, "bf16", "bf16", "PASS"), ("add", 1.0, 2.015625, "bf16", "bf16", "QUALITY"),
])
def test_a_result_of_another_type(fn: str, x: float, got: float, dtype: str, result: str, status: str) -> None:
    assert judged(fn, [x], [got], dtype, result).status == status


@pytest.mark.parametrize(("x", "got", "status"), [
    (-96.0, 0.0, "PASS"), (-96.0, 2.0312e-42, "PASS"), (-87.0, 0.0, "PASS"), (-86.0, 0.0, "FAIL"), (1.0, 2.7182825, "PASS"), (1.0, 2.718283, "QUALITY"),
    (1.0, 2.718285, "FAIL"),
])
def test_what_a_fast_form_promises(x: float, got: float, status: str) -> None:
    """3.5 units in the last place, and 0 for what is below twice the least normal number."""
    arguments, called = {"X": np.float32([x])}, Called({"R": np.float32([got])})
    assert Elementwise("exp", ("f32",), "f32", fast=True)(OP, arguments, called).status == status
    assert Elementwise("sqrt", ("f32",), "f32", fast=True)(OP, {"X": np.float32([4])}, Called({"R": np.float32([2.0000002])})).status == "QUALITY"


def spec_of(outputs: str, body: str) -> OpProgram:
    program = load_programs(SpecText("t", f"(composite T ((x{{float}}[N], k{{int64}}[]) -> ({outputs})) {body})", "lisp"), Options())[0]
    assert isinstance(program, OpProgram)
    return program


def test_a_case_of_which_nothing_is_compared_is_vacuous_unless_a_size_is_0() -> None:
    shorter = spec_of("y{float}[(- N 1)]", "(loop (i 1 N) (setf (aref y (- i 1)) (aref x i)))")
    cut = spec_of("y{int32}[N]", "(dotimes (i N) (setf (aref y i) (cast int32 (* 10.0 (aref x i)))))")

    def of(op: OpProgram, x: list[float], y: Any) -> str:
        return Oracle()(op, {"N": len(x), "k": 0, "x": np.float32(x), "y": y}, Called({"y": y})).status
    assert of(shorter, [1.0], np.zeros(0, np.float32)) == "VACUOUS"
    assert of(shorter, [1.0, 2.0], np.float32([2])) == "PASS"
    assert of(cut, [], np.zeros(0, np.int32)) == "PASS"
    assert of(cut, [0.1, 0.2], np.int32([1, 7])) == "VACUOUS"
    assert of(cut, [0.1, 0.55], np.int32([1, 5])) == "PASS"
    assert of(cut, [0.1, 0.55], np.int32([1, 7])) == "FAIL"
    assert judged("exp", [], []).status == "VACUOUS"
    assert "VACUOUS" in BAD


def test_the_error_is_measured_in_the_last_place() -> None:
    assert judged("exp", [1.0], [2.7182825]).ulp == pytest.approx((2.7182824611663818 - np.e) * 2.0**22, abs=0.01)
    assert ulps(np.array([np.inf], np.float32), np.array([3.402823e38]), "f32").tolist() == [np.inf]
    assert limits("f32") == (2.0**-149, float(np.finfo(np.float32).max))


def test_the_first_wrong_element_is_named() -> None:
    assert judged("floordiv", [7, -7], [1, 0], "i32", "i32").note == "(floordiv -7 -7) gives 0, expected 1; 1 of 2 wrong"


@pytest.mark.parametrize(("message", "status"), [("", "FAIL"), ("the index is outside", "PASS"), ("out of memory", "FAIL")])
def test_a_call_that_must_fail(message: str, status: str) -> None:
    assert Fails("outside")(OP, {}, Called({}, message)).status == status


def test_a_write_beside_an_array_is_seen() -> None:
    placed = guarded_calls.Placed(np.zeros((3, 4), np.float32), (5, 1), 1, 0xA5)
    assert placed.view.ctypes.data % guarded_calls.ALIGNMENT == 4
    placed.view[...] = 1
    assert not placed.strays()
    assert placed.changed()
    between = placed.view.ctypes.data - placed.memory.ctypes.data + 4 * 4
    placed.memory[between] ^= 1
    assert placed.strays()


# -- what a runtime's file says

DECLARES = """
from caten.runtime.discover import base
class Declares(base("numpy")):
    name = "declares"
    types = {k: v for k, v in base("numpy").types.items() if k != "f64"}
    denormals = False
    skips = {"operator/add/i32/ordinary": "known", "operator/sub/i32/*": "known, and mended"}
    def render(self, *programs):
        for p in programs:
            if "f64" in [b.type for b in p.buffers.values()]:
                raise self.refusal
        text = super().render(*programs)
        return text.replace("(+ (aref X i) (aref Y i))", "(- (aref X i) (aref Y i))")
    @property
    def refusal(self):
        from caten.errors import error
        return error("E611", "this runtime does not support f64")
"""


@pytest.mark.slice(2)
@pytest.mark.parametrize(("pattern", "status"), [
    ("operator/add/i32/ordinary", "XFAIL"), ("operator/add/i32/overflow", "FAIL"), ("operator/sub/i32/ordinary", "XPASS"), ("operator/max/f32/denormals", "UNSUPPORTED"),
    ("operator/max/f64/ordinary", "UNSUPPORTED"), ("rejection/element-type/f64/copy", "PASS"), ("operator/max/f32/ordinary", "PASS"),
])
def test_what_the_file_declares(tmp_path: Any, pattern: str, status: str) -> None:
    (tmp_path / "declares.py").write_text(DECLARES)
    options = Options(runtime=str(tmp_path / "declares.py"), cache_dir=str(tmp_path / "cache"), opt=0)
    runtime = runtime_of(options)
    (case,) = selected(suite.all_cases(runtime), [pattern])
    assert execute.run([case], execute.Plan(options, runtime, 1, 20.0), lambda done, of, name: None)[case.id].status == status


def test_a_call_for_which_there_is_no_memory_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def full(*given: Any) -> Any:
        raise OSError("Cannot allocate memory")
    monkeypatch.setattr(guarded_calls, "_sparse", full)
    options = Options(runtime="numpy", cache_dir=str(tmp_path))
    runtime = runtime_of(options)
    cases = selected(suite.all_cases(runtime), ["feature/offsets-over-2^31/u8", "feature/rank-0/u8"])
    found = execute.run(cases, execute.Plan(options, runtime, 1, 20.0), lambda done, of, name: None)
    assert [(c.row, found[c.id].status, found[c.id].note) for c in cases] == [
        ("rank-0", "PASS", ""), ("offsets-over-2^31", "NOT-RUN", "there is no memory for it: Cannot allocate memory")]


# -- what a runtime's own code does

CARELESS = """
import itertools, os
from caten.runtime.discover import base
count = itertools.count()
class Careless(base("numpy")):
    name = "careless"
    def {method}
"""


@pytest.mark.parametrize(("method", "status", "note"), [
    ("render(self, *p): return super().render(*p) + f'; {next(count)}\\n'", "FAIL", "render gives another text each time"),
    ("render(self, *p): os._exit(0)", "CRASH", "while it was compiled: exit code 0"),
    ("compile(self, *a): pass", "UNDECLARED", "`compile` gave None"),
])
def test_what_a_careless_runtime_does_is_a_verdict(tmp_path: Any, method: str, status: str, note: str) -> None:
    (tmp_path / "careless.py").write_text(CARELESS.format(method=method))
    options = Options(runtime=str(tmp_path / "careless.py"), cache_dir=str(tmp_path / "cache"), opt=0)
    runtime = runtime_of(options)
    (case,) = selected(suite.all_cases(runtime), ["feature/rank-0/f32"])
    found = execute.run([case], execute.Plan(options, runtime, 1, 20.0), lambda done, of, name: None)[case.id]
    assert found.status == status
    assert note in found.note


MISSPELT = """
from caten.runtime.discover import base
class Misspelt(base("clang")):
    name = "misspelt"
    def render(self, *programs):
        return super().render(*programs).replace("return 0;", "return no_such_name;")
"""


def test_why_something_was_not_compiled_is_told(tmp_path: Any) -> None:
    (tmp_path / "misspelt.py").write_text(MISSPELT)
    options = Options(runtime=str(tmp_path / "misspelt.py"), cache_dir=str(tmp_path / "cache"), opt=0)
    runtime = runtime_of(options)
    cases = selected(suite.all_cases(runtime), ["feature/rank-0/f32", "sample/Dot"])
    for found in execute.run(cases, execute.Plan(options, runtime, 1, 20.0), lambda done, of, name: None).values():
        assert found.status == "UNDECLARED"
        assert re.search(r"^E623: .*; library\.c:\d+:\d+: error: .*no_such_name.*; the source is kept in (\S+); .*-shared", found.note), found.note
        kept = re.findall(r"the source is kept in (\S+);", found.note)
        assert "no_such_name" in Path(kept[0]).read_text()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of the modes are those of x86-64")
@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00])
def test_another_mode_of_rounding_is_seen_and_undone(mode: int) -> None:
    before = guarded_calls._arithmetic()
    ctypes.CDLL(None).fesetround(mode)
    changed = guarded_calls._arithmetic() != before
    guarded_calls._restore()
    assert (changed, guarded_calls._arithmetic()) == (True, before)
