"""What --explain says of fusion."""
from __future__ import annotations

import pytest
from test_fusion import PROGRAMS, raised

from caten.core.program import Bind
from caten.tensor.fused_text import fused
from caten.tensor.fusion_report import explained

REPORTS = {
    "softmax": """kernel k0, rows, outer loops i (M): v0 (top), v1 (e), v2 (s), v3 (C)
  pass over p (N): v0
  pass over j (N): v1, v2
  pass over j (N): v3
  v0 (top) is in the register 'top'; 8 M bytes are not stored and loaded
  v1 (e) is kept in 'e', memory for one iteration of the outer loops; 12 M N bytes are not stored and loaded
  v2 (s) is in the register 's'; 8 M bytes are not stored and loaded
  v3 (C) is stored in the output 'C'""",
    "a product and its epilogue": """kernel k0, contraction, outer loops i (M), j (N): v0 (t), v1 (C)
  pass over p (K): v0
  v0 (t) is kept where 'C' is stored later; 8 M N bytes are not stored and loaded
  v1 (C) is stored in the output 'C'""",
    "shifted reads of a costly map": """kernel k0, map, outer loops i (N): v0 (t)
  v0 (t) is stored in the scratch memory 't'
kernel k1, map, outer loops i (N): v1 (y)
  v1 (y) is stored in the output 'y'
v0 | v1: v1 reads axis 0 of v0 at (- i 1) (shifted)""",
    "a nest between maps": """kernel k0, map, outer loops i (N): v0 (y)
  v0 (y) is stored in the output 'y'
kernel k1, nest: v1 (y)
  v1 (y) is stored in the output 'y'
kernel k2, map, outer loops i (N): v2 (y)
  v2 (y) is stored in the output 'y'
v0 | v1: a nest is a kernel by itself
v1 | v2: a nest is a kernel by itself""",
}
# The accumulation reads C, which the map replaces: it has memory of its own.
SCRATCH = """(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (* 2.0 (aref C i j)))))
  (for i_2 0 M 1 serial (for j_2 0 N 1 serial (for p 0 K 1 serial (incf (aref C i_2 j_2) (* (aref A i_2 p) (aref B p j_2))))))
  (for i_3 0 M 1 serial (for j_3 0 N 1 serial (setf (aref C i_3 j_3) (* (aref C i_3 j_3) (aref C i_3 j_3)))))"""


@pytest.mark.parametrize("name", REPORTS)
def test_reports(name: str) -> None:
    assert "\n".join(explained(raised(PROGRAMS[name][0]))) == REPORTS[name]


def test_a_map_that_its_readers_compute() -> None:
    body = """(local t f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (+ (aref x i) 1.0)))
      (for i_2 0 N 1 serial (setf (aref y i_2) (* (aref t i_2) (aref t (- (- N i_2) 1)))))"""
    kernel = ["kernel k0, map, outer loops i (N): v1 (y)", "  v1 (y) is stored in the output 'y'"]
    assert list(explained(raised(body, "(fusion (inline t))"))) == [*kernel, "v0 (t) is computed by v1; 8 N bytes are not stored and loaded"]
    assert list(explained(raised(body))) == [line.replace("v1", "v0") for line in kernel]


def test_scratch_memory_of_a_contraction_saves_nothing() -> None:
    lines = list(explained(raised(SCRATCH)))
    assert "is in the scratch memory" in "\n".join(lines)
    assert not [line for line in lines if "scratch memory" in line and "bytes" in line]


def test_sizes_that_are_known() -> None:
    program = raised(PROGRAMS["softmax"][0]).adding(Bind("M", 100), Bind("N", 30))
    assert "12 M N = 36,000 bytes" in "\n".join(explained(program))


def test_the_kernels_of_a_text() -> None:
    program = raised(PROGRAMS["softmax"][0])
    assert list(explained(fused(program))) == list(explained(program))
