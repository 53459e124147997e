"""Calls of C functions in texts of the tensor and the loop level: what is refused, kernels around them, the C text."""
from __future__ import annotations

import pytest

from caten.core.program import resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.loop.statements import ExternCall, Local, LoopProgram
from caten.loop.verifier import verify
from caten.runtime.discover import find
from caten.semantics.interpret import run
from caten.tensor.lower import lower
from caten.tensor.tensor_verifier import verify as verify_values

PARAMS = "(size N) (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out)"
CALL = "(extern scale (cast i32 N) 2.0 (address X read) (address Y write))"
PROGRAM = """(tensor T (size N) (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out)
  (define v0 (compute f32 ((i N)) (exp (read X i))))
  (define v1 (nest ((extern scale (cast i32 N) 2.0 (address v0 read) (address D write))) (out D f32 (N))))
  (define v2 (compute f32 ((i N)) (+ (read v1 i) (read v0 i))))
  (output Y v2))"""


def loops(body: str) -> LoopProgram:
    return resolve(read(f"(loop t {PARAMS} (kernel t {body}))")[0])


@pytest.mark.parametrize("body", [CALL, f"(if (< 0 N) ({CALL}))"])
def test_a_call_alone_is_right(body: str) -> None:
    program = loops(body)
    verify(program)
    assert resolve(read(show(program))[0]) is program


@pytest.mark.parametrize(("code", "message", "body"), [
    ("E484", "not a kernel of its own", f"{CALL} {CALL}"),
    ("E484", "not a kernel of its own", f"(for i 0 N 1 serial {CALL})"),
    ("E484", "not a kernel of its own", f"(if (< 0 N) ({CALL}) ({CALL}))"),
    ("E480", "'Z' is not declared", "(extern scale (address Z read))"),
    ("E488", "'X' is only read", "(extern scale (address X write))"),
    ("E488", "is no argument of a C function", "(extern scale (address X mend))"),
    ("E488", "is no argument of a C function", "(extern scale (splat 4 1.0))"),
    ("E482", "is no number", "(for i 0 N 1 serial (setf (aref Y i) (address X read)))"),
])
def test_refusals(code: str, message: str, body: str) -> None:
    with pytest.raises(CatenError, match=f"{code}: .*{message}"):
        verify(loops(body))


def test_a_call_is_a_kernel_of_its_own_and_what_crosses_it_is_shared() -> None:
    program = resolve(read(PROGRAM)[0])
    verify_values(program)
    made = lower(program)
    assert [any(isinstance(n, ExternCall) for n in k.walk()) for k in made.kernels] == [False, True, False]
    assert {n.name: n.space for n in made.all(Local)} == {"v0": "global"}
    assert "(address v0 read) (address Y write)" in show(made)      # the result is in the memory of the output


def test_the_interpreter_refuses_a_call() -> None:
    import numpy as np
    with pytest.raises(CatenError, match=r"E485: .*\(extern …\)"):
        run(loops(CALL), {"N": 2, "X": np.ones(2, np.float32), "Y": np.ones(2, np.float32)})


def test_a_device_refuses_a_call() -> None:
    with pytest.raises(CatenError, match="E612: a device cannot call the C function scale"):
        find("metal").render(loops(CALL))
