"""Matrix-vector products: with an epilogue they have the plans of the bare ones, and read the matrix in order."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.expr import Op
from caten.core.program import Schedule
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.loop.statements import Aref, For, If, Incf, LoopProgram, Setf, Vref
from caten.options import Options

BODY = """
[[composite]]
name = "Product"
inputs = ["X{float}[%s]", "W{float}[%s]", "B{float}[N]"]
outputs = ["Z{float}[%s]"]
implementation = { lang = "python", code = "return %s" }
"""
COLUMNS, ROWS, ONE_ROW = ("K", "K N", "N"), ("K", "N K", "N"), ("1 K", "K N", "1 N")
SIZES = ((1, 1), (3, 5), (40, 17), (300, 33), (130, 1), (257, 130), (1030, 700))


def spec(shapes: tuple[str, str, str], value: str) -> str:
    return BODY % (*shapes, value)


def scheduled(text: str, config: dict[str, str] | None = None, opt: int = 2) -> LoopProgram:
    options = Options(opt=opt, config=tuple({"MARCH": "x86_64_v4", **(config or {})}.items()))
    (program,) = loading.load_programs(SpecText("f.toml", text, "toml"), options)
    made = driver.advance(program, "loop", options)
    assert isinstance(made, LoopProgram)
    return made


def steps(text: str) -> list[str]:
    (found,) = scheduled(text).all(Schedule)
    return [str(step) for step in found.steps]


@pytest.mark.parametrize(("shapes", "bare", "value"), [
    (COLUMNS, "X @ W", "X @ W + B"), (COLUMNS, "X @ W", "np.tanh(X @ W) * B"), (ROWS, "W @ X", "W @ X + B"), (ONE_ROW, "X @ W", "X @ W + B")])
def test_an_epilogue_leaves_the_plan_as_it_is(shapes: tuple[str, str, str], bare: str, value: str) -> None:
    """But that it is a part of the sums where these stay in registers."""
    with_epilogue = set(steps(spec(shapes, value)))
    assert all(step in with_epilogue or step.replace("begin", "finish") in with_epilogue for step in steps(spec(shapes, bare)))


@pytest.mark.parametrize(("shapes", "value", "fn"), [
    (ROWS, "np.tanh(W @ X + B)", "tanh"), (("M K", "K 20", "M 20"), "np.tanh(X @ W + B)", "tanh"), (("M K", "K N", "M N"), "np.tanh(X @ W + B)", "tanh"), (("M K", "K N", "M N"), "np.maximum(X @ W + B, 0)", "max")])
def test_functions_of_sums_are_computed_in_vectors(shapes: tuple[str, str, str], value: str, fn: str) -> None:
    """Where the sums are scalars whose lanes were added, functions of them are left to a loop behind; what is cheap is not."""
    text = spec(shapes, value)
    made = scheduled(text.replace("[N]", "[20]") if "20" in shapes[2] else text)
    stores = [n for n in made.walk() if isinstance(n, Setf) and n.ref.buffer == "Z" and any(isinstance(e, Op) and e.fn == fn for e in n.value.unique())]
    kept = [n for n in stores if isinstance(n.ref, Aref) and any(isinstance(e, Aref) and e.buffer.startswith("Z_part") for e in n.value.unique())]
    few = [n for n in kept if "i_2w" not in show(n.ref)]              # but for the last rows of sums that are lanes
    assert bool(few) == (fn == "max")
    assert any(isinstance(n.ref, Vref) for n in stores)


def test_axes_of_extent_1_leave_the_plan_as_it_is() -> None:
    one, none = steps(spec(ONE_ROW, "X @ W + B")), steps(spec(COLUMNS, "X @ W + B"))
    assert [re.sub(r"\bj(?!am)", "i", step) for step in one] == none


@pytest.mark.parametrize("scale", ["S{float}[N]", "S{float}[N 1]"], ids=["vector", "column"])
def test_a_scale_of_each_row_leaves_the_plan_as_it_is(scale: str) -> None:
    """Weights are dequantised in the sum: the scale moves with the result alone."""
    bare = spec(ROWS, "W @ X")
    row = "S" if scale.endswith("1]") else "S[:, None]"
    scaled = spec(ROWS, f"(W * {row}) @ X").replace('"B{float}[N]"', f'"{scale}"')
    assert steps(scaled) == steps(bare)
    assert any("rows" in step or "jam" in step for step in steps(scaled))


def test_narrow_columns_have_several_sums() -> None:
    text = show(scheduled(spec(COLUMNS, "X @ W")))
    assert "(<= N 32)" in text
    assert "tree register pvi" in text


def test_small_matrices_are_read_once() -> None:
    """From the start of each sum to its epilogue, strips of columns stay in registers."""
    made = scheduled(spec(COLUMNS, "np.tanh(X @ W) * B"))
    (copy,) = [n for n in made.walk() if isinstance(n, If) and isinstance(n.cond, Op) and "(* K N)" in show(n.cond) and any(
        isinstance(s, For) and s.name == "i_2fo" for s in n.then)]
    strips = next(s for s in copy.then if isinstance(s, For) and s.name == "i_2fo")
    stores = [n for n in strips.walk() if isinstance(n, Setf) and isinstance(n.ref, Vref) and n.ref.buffer == "Z"]
    assert len(stores) == 1
    assert "tanh" in show(stores[0].value)
    assert not any(isinstance(n, Vref) and n.buffer == "Z" for n in strips.walk() if n is not stores[0].ref)


@pytest.mark.slow
@pytest.mark.slice(6)
@pytest.mark.parametrize("config", [{}, {"OMP": "1"}, {"MARCH": "x86_64_v3"}], ids=["", "threads", "16 registers"])
@pytest.mark.parametrize(("shapes", "value"), [
    (COLUMNS, "X @ W"), (COLUMNS, "X @ W + B"), (ROWS, "np.maximum(W @ X + B, 0)"), (ONE_ROW, "X @ W + B")], ids=["columns", "epilogue", "rows", "one row"])
def test_products_are_those_of_numpy(shapes: tuple[str, str, str], value: str, config: dict[str, Any]) -> None:
    draw = np.random.default_rng(0)
    operator = caten.compile(spec(shapes, value), config=config)
    for summed, columns in SIZES:
        extents = {"K": summed, "N": columns, "1": 1}
        X, W, B = (draw.standard_normal([extents[e] for e in shape.split()]).astype(np.float32) for shape in (*shapes[:2], "N"))
        np.testing.assert_allclose(operator(X, W, B), eval(value, {"X": X, "W": W, "B": B, "np": np}), rtol=1e-4, atol=1e-3, err_msg=f"{summed} x {columns}")


def test_a_graphics_card_starts_one_kernel() -> None:
    options = Options(runtime="opencl", opt=2)
    (program,) = loading.load_programs(SpecText("f.toml", spec(COLUMNS, "np.tanh(X @ W + B)"), "toml"), options)
    made = driver.advance(program, "loop", options)
    assert isinstance(made, LoopProgram)
    assert len(made.kernels) == 1
    (program,) = loading.load_programs(SpecText("f.toml", ATTENTION % ("D", "D"), "toml"), options)
    made = driver.advance(program, "loop", options)
    assert isinstance(made, LoopProgram)
    sums = [n for n in made.walk() if isinstance(n, Incf) and n.fn == "add"]
    assert all(not n.ref.index for n in sums if isinstance(n.ref, Aref))         # scores are summed up in registers


@pytest.mark.parametrize(("width", "vectors"), [(20, 0), (48, 3), (64, 4), (128, 8), (200, 8)])
def test_strips_of_a_known_width(width: int, vectors: int) -> None:
    product = spec(("K", f"K {width}", str(width)), "X @ W").replace("B{float}[N]", f"B{{float}}[{width}]")
    softmax = f'''[composite]
name = "Softmax"
inputs = ["X{{float}}[M {width}]"]
outputs = ["Y{{float}}[M {width}]"]
implementation = {{ lang = "python", code = "return np.exp(X - X.max(axis=0)) / np.exp(X - X.max(axis=0)).sum(axis=0)" }}
'''
    for text in (product, softmax):
        made = steps(text)
        assert any(step.startswith("('jam'") for step in made) == (vectors > 0)
        assert vectors == 0 or any(step.startswith("('split'") and step.endswith(f"'{16 * vectors}')") for step in made)


ATTENTION = """
[[composite]]
name = "Attention"
inputs = ["Q{float}[H D]", "K{float}[T H D]", "V{float}[T H %s]"]
outputs = ["O{float}[H %s]"]
implementation = { lang = "python", code = '''
S = (Q * K).sum(axis=2)
E = np.exp(S - S.max(axis=0))
return ((E / E.sum(axis=0))[:, :, None] * V).sum(axis=0)
''' }
"""


@pytest.mark.slow
def test_kept_scores_are_computed_several_at_once() -> None:
    """The products of a query and all keys have a loop of their own, in which eight share the query."""
    text = ATTENTION % ("D", "D")
    plain = scheduled(text, opt=1)
    (rows,) = [s for s in plain.kernels[0].body if isinstance(s, For)]
    first = next(s for s in rows.body if isinstance(s, For))
    assert isinstance(first.body[0], Setf)
    assert isinstance(first.body[1], For)
    assert len(first.body) == 2
    assert "('fission', 'j', '1')" in steps(text)
    assert "(<= 8 T)" in show(scheduled(text))


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("width", [64, 48, 20])
def test_attention_of_one_query(width: int) -> None:
    draw = np.random.default_rng(1)
    operator = caten.compile(ATTENTION % (width, width))
    for heads, keys, depth in ((3, 40, 64), (1, 7, 5), (2, 1, 1), (2, 300, 33)):
        Q, K, V = (draw.standard_normal(shape).astype(np.float32) for shape in ((heads, depth), (keys, heads, depth), (keys, heads, width)))
        S = np.einsum("hd,thd->th", Q, K)
        E = np.exp(S - S.max(axis=0))
        np.testing.assert_allclose(operator(Q, K, V), np.einsum("th,thd->hd", E / E.sum(axis=0), V), rtol=1e-4, atol=1e-5)


IN_PLACE = """
[[composite]]
name = "InPlace"
inputs = ["Z{float}[M N]", "A{float}[N K]", "X{float}[M K]", "T{float}[M N]"]
outputs = ["Z", "T"]
implementation = { lang = "python", code = '''
V = (Z[:, :, None] * A[None, :, :] * X[:, None, :]).sum(axis=2)
T[:, :] = np.exp(V - V.max(axis=1, keepdims=True))
Z[:, :] = V
''' }
"""


@pytest.mark.slow
def test_sums_are_not_where_their_terms_are_read() -> None:
    draw = np.random.default_rng(2)
    Z, A, X = (draw.random(shape).astype(np.float32) for shape in ((6, 20), (20, 30), (6, 30)))
    V = np.einsum("ij,jk,ik->ij", Z, A, X)
    made = caten.compile(IN_PLACE)(Z.copy(), A, X, np.zeros_like(Z))
    np.testing.assert_allclose(made[0], V, rtol=1e-5)
    np.testing.assert_allclose(made[1], np.exp(V - V.max(axis=1, keepdims=True)), rtol=1e-4)
