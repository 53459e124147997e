"""Two loops over adjacent axes of dense arrays as one."""
from __future__ import annotations

import pytest

from caten import driver, loading
from caten.core.program import Schedule
from caten.core.text import flat
from caten.frontend.spec_files import SpecText
from caten.loop.statements import Aref, Let, LoopProgram, Vref
from caten.options import Options


def scheduled(left: str, right: str, result: str, code: str) -> LoopProgram:
    """A formula of A and B, of these types and shapes."""
    options = Options(verify=True)
    (made,) = loading.loaded([SpecText("p.toml", f"""[composite]
name = "P"
inputs = ["A{left}", "B{right}"]
outputs = ["Y{result}"]
[composite.implementation]
lang = "python"
code = "return {code}"
""")], options)
    program = driver.advance(made, "loop", options)
    assert isinstance(program, LoopProgram)
    return program


def fused(right: str, code: str) -> bool:
    """Are the two axes that are summed one loop?"""
    schedule = scheduled("{float}[M P Q]", f"{{float}}[{right}]", "{float}[M N]", code).first(Schedule)
    assert schedule is not None
    return "(fuse p q)" in [flat(step) for step in schedule.steps]


@pytest.mark.slow
@pytest.mark.parametrize(("right", "code", "expected"), [
    ("P Q N", "np.tensordot(A, B, axes=2)", True), ("Q P N", "np.einsum('ipq,qpn->in', A, B)", False), ("P Q N", "np.einsum('ipq,pqn->in', A, B[:, ::-1])", False)])
def test_sums_over_two_dense_axes_are_one_sum(right: str, code: str, expected: bool) -> None:
    """If both operands have them in this order."""
    assert fused(right, code) is expected


@pytest.mark.parametrize(("dtype", "code"), [
    ("float", "np.sum(A * B)"), ("complex64", "np.sum(A * B)"), ("float", "np.sum(A) + np.sum(A * B)"), ("float", "3 * np.max(A)")])
def test_a_sum_of_all_elements_is_one_loop(dtype: str, code: str) -> None:
    """Also several sums, and with statements around them: nothing is left of the loops over two axes."""
    program = scheduled(f"{{{dtype}}}[M N]", f"{{{dtype}}}[M N]", f"{{{dtype}}}[]", code)
    assert all(len(ref.index) == 1 for k in program.kernels for ref in k.unique()
               if isinstance(ref, Aref | Vref) and ref.buffer in ("A", "B"))
    assert not [n for k in program.kernels for n in k.unique() if isinstance(n, Let)]
