"""Manifests: keys, order of arguments, formulas of work, the schema."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from caten.core.program import resolve
from caten.core.size_formula import evaluate, formula
from caten.core.text import read
from caten.errors import CatenError
from caten.runtime import manifest as m
from caten.runtime import program_manifest as p
from caten.runtime import work_formulas

Describe = Callable[..., dict[str, Any]]

GEMM = """(loop Gemm (size M) (size K) (size N)
  (buffer A f32 (M K) (0 1) in A_stride0 1) (scalar alpha f32) (buffer B f32 (K N) (1 0) in) (buffer C f32 (M N) (0 1) inout) (buffer T f64 ((* 2 M)) (0) out)
  (scalar A_stride0 i64) (bind K 4) (require (< M N)) (check 2 "second") (check 1 "first \\"quoted\\"") (doc "C <- A @ B + C") (signature "A{float}[M K]" "C{float}[M N]")
  (schedule (split i 6 pad))
  (kernel gemm (for i 0 M 1 parallel (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (* alpha (aref A i p)) (aref B p j))))))))"""
OTHER = "(loop Other (size N) (buffer X i8 (N) (0) inout) (kernel k))"
KEYS = ["schema_version", "abi_version", "op", "symbols", "arguments", "conditions", "checks", "scratch_bytes", "flops", "bytes", "kernels", "libraries", "target", "compiler", "flags", "runtime", "spec_sha256", "runtime_sha256", "schedule"]


def loops(text: str) -> Any:
    return resolve(read(text)[0])


def test_one_operator(describe: Describe) -> None:
    found = describe(GEMM)
    assert [k for k in KEYS if k not in found] == []
    assert found["op"] == "Gemm"
    assert found["symbols"] == {"call": "ct_gemm", "workspace": "ct_gemm_ws", "workspace_size": "ct_gemm_ws_size", "check": "ct_gemm_check"}
    assert [(a["name"], a["kind"]) for a in found["arguments"]] == [
        ("A", "tensor"), ("alpha", "scalar"), ("B", "tensor"), ("C", "tensor"), ("T", "tensor"), ("M", "size"), ("K", "size"), ("N", "size"),
        ("A_stride0", "stride")]
    assert found["arguments"][0] == {"name": "A", "kind": "tensor", "dtype": "f32", "shape": ["M", "K"], "order": [0, 1], "strides": ["A_stride0", 1],
                                     "direction": "in"}
    assert found["arguments"][4] == {"name": "T", "kind": "tensor", "dtype": "f64", "shape": ["(* 2 M)"], "order": [0], "strides": None, "direction": "out"}
    assert found["conditions"] == ["(< M N)"]
    assert found["checks"] == [{"row": 1, "text": 'first "quoted"'}, {"row": 2, "text": "second"}]
    assert found["flops"] == "(* 3 (* (* K M) N))"
    assert found["kernels"] == [{"name": "gemm", "launch": ["M"]}]
    assert found["schedule"] == "(schedule (split i 6 pad))"
    assert found["binds"] == {"K": 4}
    assert found["target"] == "x86_64"
    assert evaluate(formula(found["bytes"]), {"M": 2, "K": 3, "N": 5}) == 4 * (2 * 3 + 3 * 5 + 2 * 2 * 5) + 8 * 4


def test_manifests_follow_the_schema(describe: Describe) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(m.schema())
    validator.check_schema(m.schema())
    for found in (describe(GEMM), describe(OTHER), describe(GEMM, OTHER)):
        validator.validate(json.loads(m.to_json(found)))
    for change in ({"arguments": [{"name": "A"}]}, {"spec_sha256": "x"}, {"schema_version": 2}, {"scratch_bytes": None}, {"ops": []}):
        assert not validator.is_valid(describe(GEMM) | change), change


def test_a_library_of_several_shares_keys(describe: Describe) -> None:
    both = describe(GEMM, OTHER)
    assert [op["op"] for op in both["ops"]] == ["Gemm", "Other"]
    assert set(m.SHARED) <= set(both)
    first, second = m.operators(both)
    assert first == describe(GEMM)
    assert second == describe(OTHER)
    assert m.operators(describe(OTHER)) == [describe(OTHER)]


def test_symbols_that_collide_are_refused(describe: Describe) -> None:
    with pytest.raises(CatenError, match=r"E666: Add-1 and add_1 would have the same symbol ct_add_1"):
        describe("(loop Add-1 (kernel k))", "(loop add_1 (kernel k))")


def test_text_is_the_same_every_time(describe: Describe) -> None:
    assert m.to_json(describe(GEMM)) == m.to_json(describe(GEMM))
    assert m.manifest_c(describe(GEMM)) == m.manifest_c(describe(GEMM))
    assert json.loads(m.to_json(describe(GEMM))) == describe(GEMM)


BODIES = [
    # statements, formula at small sizes by counting
    ("(for i 0 M 1 serial (setf (aref Y i) (+ (* (aref X i) 2.0) 1.0)))", lambda M, N: 2 * M),
    ("(for i 0 M 2 serial (setf (aref Y i) (exp (aref X i))))", lambda M, N: (M + 1) // 2),
    ("(for i (- M 1) -1 -1 serial (setf (aref Y i) (exp (aref X i))))", lambda M, N: M),
    ("(for i 0 M 1 serial (for j 0 (+ i 1) 1 serial (incf (aref Y i) (aref X j))))", lambda M, N: M * (M + 1) // 2),
    ("(for i 0 M 1 serial (for j i M 1 serial (for k j M 1 serial (incf (aref Y i) (aref X j)))))", lambda M, N: M * (M + 1) * (M + 2) // 6),
    ("(for i 0 M 1 serial (for j 0 i 1 serial (for k 0 j 1 serial (for l 0 k 1 serial (incf (aref Y i) (aref X j))))))",
     lambda M, N: M * (M - 1) * (M - 2) * (M - 3) // 24),
    ("(for i 0 M 1 serial (for j 0 (floordiv i 1000) 1 serial (incf (aref Y i) (aref X j))))", lambda M, N: 0),
    ("(for i 0 M 1 serial (let n i64 (* 2 i)) (for j 0 n 1 serial (incf (aref Y i) (aref X j))))", lambda M, N: M * (M - 1)),
    ("(for i 0 M 1 serial (if (< (aref X i) 0.0) ((setf (aref Y i) (neg (aref X i)))) ((setf (aref Y i) (+ 1.0 (+ 1.0 (aref X i)))))))", lambda M, N: 2 * M),
    ("(for i 0 M 1 serial (setf (aref Y (floordiv i 2)) (fma (aref X i) (aref X i) (cast f32 (* i 2)))))", lambda M, N: 2 * M),
    ("(for i 0 M 1 serial (setf (aref Y i) (where (< (aref X i) 0.0) 0.0 (aref X i))))", lambda M, N: 0),
    ("(for b 0 (floordiv (+ M 2) 3) 1 serial (for i 0 (min (- M (* 3 b)) 3) 1 serial (setf (aref Y (+ (* 3 b) i)) (exp (aref X (+ (* 3 b) i))))))", lambda M, N: M),
    ("(for b 0 (floordiv (+ M (- N 1)) N) 1 serial (for i 0 (min N (- M (* N b))) 1 serial (incf (aref Y 0) 1.0) (incf (aref Y 0) 1.0)) (incf (aref Y 0) 1.0))",
     lambda M, N: 2 * M + -(-M // N)),
    ("(setf (vref Y 8 (0)) (* (vref X 8 (0)) (splat 8 2.0)))", lambda M, N: 8),
]


@pytest.mark.parametrize(("body", "count"), BODIES)
def test_flops_are_counted(body: str, count: Callable[[int, int], int]) -> None:
    program = loops(f"(loop F (size M) (size N) (buffer X f32 (M) (0) in) (buffer Y f32 (M) (0) inout) (kernel k {body}))")
    found = work_formulas.flops(program)
    for size in range(8):
        assert evaluate(found, {"M": size, "N": 3}) == count(size, 3), (size, found)


def test_steps_count_every_type_and_stores() -> None:
    program = loops("(loop F (size M) (buffer X i32 (M) (0) in) (buffer Y i32 (M) (0) inout) (kernel k "
                    "(for i 0 M 1 serial (incf (aref Y i) (* (aref X i) 3))) (for i 0 M 1 serial (setf (aref Y i) (aref X i)))))")
    assert work_formulas.at(work_formulas.flops(program), {"M": 5}) == 0
    assert work_formulas.at(work_formulas.steps(program), {"M": 5}) == 15


def test_work_that_depends_on_contents_has_no_formula(describe: Describe) -> None:
    text = """(loop F (size M) (buffer R i64 (M) (0) in) (buffer Y f32 (M) (0) inout)
      (kernel k (for i 0 M 1 serial (for j 0 (aref R i) 1 parallel (incf (aref Y i) 1.0)))))"""
    found = describe(text)
    assert found["flops"] is None
    assert work_formulas.at(work_formulas.flops(loops(text)), {"M": 4}) == 0
    assert found["kernels"] == [{"name": "k", "launch": [None]}]
    assert found["bytes"] is not None


def test_work_is_counted_on_the_program_as_written() -> None:
    padded = loops("(loop F (size M) (buffer Y f32 (M) (0) inout)"
                   " (kernel k (for io 0 M 8 serial (for ii 0 8 1 serial (if (< (+ io ii) M) ((incf (aref Y (+ io ii)) 1.0)))))))")
    written = loops("(loop F (size M) (buffer Y f32 (M) (0) inout) (kernel k (for i 0 M 1 serial (incf (aref Y i) 1.0))))")
    assert p.library_manifest([padded], "gcc", p.Provenance(), [written])["flops"] == "M"
