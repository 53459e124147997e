"""Two loops over adjacent axes of dense arrays as one."""
from __future__ import annotations

import pytest

from caten import driver, loading
from caten.core.program import Schedule
from caten.core.text import flat
from caten.frontend.spec_files import SpecText
from caten.options import Options


def fused(right: str, code: str) -> bool:
    """Are the two axes that are summed one loop?"""
    (made,) = loading.loaded([SpecText("p.toml", f"""[composite]
name = "P"
inputs = ["A{{float}}[M P Q]", "B{{float}}[{right}]"]
outputs = ["Y{{float}}[M N]"]
[composite.implementation]
lang = "python"
code = "return {code}"
""")], Options())
    schedule = driver.advance(made, "loop", Options()).first(Schedule)
    assert schedule is not None
    return "(fuse p q)" in [flat(step) for step in schedule.steps]


@pytest.mark.slow
@pytest.mark.parametrize(("right", "code", "expected"), [
    ("P Q N", "np.tensordot(A, B, axes=2)", True), ("Q P N", "np.einsum('ipq,qpn->in', A, B)", False), ("P Q N", "np.einsum('ipq,pqn->in', A, B[:, ::-1])", False)])
def test_sums_over_two_dense_axes_are_one_sum(right: str, code: str, expected: bool) -> None:
    """If both operands have them in this order."""
    assert fused(right, code) is expected
