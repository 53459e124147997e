"""Functions of sizes that are sizes: what Python computes, wherever a size may stand, also where the sizes are known."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from value_interpreter import evaluated, run

import caten

NAMED, FIXED = "x f32 A B C; v f32 A; out R f32 1", "x f32 4 2 3; v f32 4; out R f32 1"
SIZES = ({"A": 4, "B": 2, "C": 3}, {"A": 1, "B": 7, "C": 1}, {"A": 5, "B": 1, "C": 6})
OF_SHAPES = """
np.prod(x.shape) ;; np.prod(x.shape[:2]) ;; np.prod(x.shape[:0]) ;; np.prod(x.shape, axis=0) ;; np.prod(x.shape[:-1], dtype=int) ;; np.prod(list(x.shape), initial=2) ;; np.prod(x[0].shape)
math.prod(x.shape) ;; math.prod(x.shape[1:]) ;; math.prod(()) ;; math.prod([x.size, 2], start=3) ;; math.prod((x.shape[0], x.ndim)) ;; math.prod(n for n in x.shape) ;; math.prod(range(1, 4)) ;; math.prod(x.shape) // x.shape[0]
np.prod([x.shape[k] for k in range(2)]) ;; np.prod((2, 3)) ;; np.prod(range(1, 5)) ;; np.sum(x.shape) ;; sum(x.shape[1:]) ;; np.max(x.shape) ;; np.min(x.shape[:2]) ;; np.amax((x.shape[0], 3)) ;; np.amin([2, len(x)], initial=4)
max(x.shape) ;; min(x.shape) ;; max(len(x), 3) ;; len(x.shape) ;; x.ndim ;; x.size ;; np.size(x) ;; np.size(x, 1) ;; np.size(x, axis=(0, -1)) ;; np.ndim(x) ;; len(x) ;; np.maximum(len(x), 2) ;; np.max(x.shape, initial=7)
math.ceil(len(x) / 2) ;; math.floor(len(x) / 2) ;; math.trunc(len(x) / 2) ;; int(len(x) / 2) + 1 ;; int(len(x)) ;; int(np.prod(x.shape)) ;; int(x.size / len(x)) ;; math.ceil(x.size / (len(x) + 1)) ;; math.ceil(len(x)) ;; int(2.5) ;; math.ceil(2.5)
"""
ROWS = [text.strip() for line in OF_SHAPES.strip().splitlines() for text in line.split(";;")]


def plain(text: str, sizes: dict[str, int]) -> Any:
    """What Python computes."""
    x = np.zeros([sizes[name] for name in "ABC"], np.float32)
    return eval(text, {"np": np, "math": math, "x": x})


@pytest.mark.parametrize("signature", [NAMED, FIXED], ids=("named", "fixed"))
@pytest.mark.parametrize("text", ROWS)
@pytest.mark.parametrize("use", ["np.ones({}).sum()", "np.ones(({}, 2)).reshape(-1, {}).sum() / 2", "len(np.arange({}))", "1 / (1 / {})"])
def test_wherever_a_size_may_stand(use: str, text: str, signature: str) -> None:
    found = evaluated(signature, f"R[...] = {use.replace('{}', f'({text})')}")
    for sizes in SIZES[:1] if signature is FIXED else SIZES:
        arrays = {"x": np.zeros([sizes[name] for name in "ABC"], np.float32), "v": np.zeros(sizes["A"], np.float32)}
        wanted = plain(text, sizes)
        if wanted or "/" not in use:
            made, = run(found, sizes if signature is NAMED else {}, arrays)
            np.testing.assert_allclose(made, wanted, rtol=1e-6, err_msg=text)


@pytest.mark.parametrize("text", [*ROWS, "float(len(x))", "float(np.prod(x.shape))"])
@pytest.mark.parametrize("signature", [NAMED, FIXED], ids=("named", "fixed"))
def test_a_size_takes_the_type_that_it_meets(text: str, signature: str) -> None:
    for dtype, name in (("f32", "float32"), ("f16", "float16"), ("i32", "int32"))[:2 if "float" in text else 3]:
        declared = signature.replace("out R f32 1", f"out R {dtype} {'A' if signature is NAMED else 4}")
        evaluated(declared, f"return v.astype(np.{name}) * ({text})")               # E310 if that is of another type


@pytest.mark.parametrize("text", ["np.prod([2.5, 2])", "np.prod(x.shape, dtype=np.float64)", "np.sum([True, True])", "np.prod(x.shape, keepdims=True)[0]",
                                  "math.prod([1.5, len(x)])", "math.prod([v.sum(), 2])", "math.prod(v)", "np.max(x.shape, where=[True, False, True], initial=2)"])
def test_other_lists_are_arrays(text: str) -> None:
    sizes = SIZES[0]
    found = evaluated(NAMED, f"R[...] = ({text})")
    given = {"x": np.zeros((4, 2, 3), np.float32), "v": np.arange(1, 5, dtype=np.float32)}
    made, = run(found, sizes, given)
    np.testing.assert_allclose(made, eval(text, {"np": np, "math": math, **given}), rtol=1e-6)


def test_a_negative_quotient_is_truncated_as_a_float() -> None:
    found = evaluated("x f32 A; y f32 B; out R f32 1", "R[...] = int((len(x) - len(y)) / 2) + math.ceil((len(x) - len(y)) / 2)")
    made, = run(found, {"A": 2, "B": 5}, {"x": np.zeros(2, np.float32), "y": np.zeros(5, np.float32)})
    assert made == -2


SPEC = """
[composite]
name = "Sizes"
inputs = ["x{float}[A B C]"]
outputs = ["y{float}[(* A B)]", "n{int64}[3]"]
[composite.implementation]
lang = "python"
code = '''
rows = x.reshape(np.prod(x.shape[:2]), -1)
half = 0
for i in range(math.ceil(math.prod(x.shape) / 2)):
    half += 1
n[0], n[1], n[2] = half, int(x.size / C), np.prod(x.shape[:0])
for i in range(np.prod(x.shape[:2])):
    y[i] = rows[i].sum() / math.prod((C, 2))
    if i >= np.max(x.shape):
        y[i] *= 2
'''
"""


@pytest.mark.slow
def test_in_loops_over_elements(tool: Any) -> None:
    tool("gcc")
    operator = caten.compile(SPEC, runtime="gcc")
    for shape in ((2, 3, 4), (1, 1, 1), (5, 2, 1)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        y, n = operator(x)
        wanted = x.reshape(np.prod(shape[:2]), -1).sum(1) / (2 * shape[2])
        wanted[max(shape):] *= 2
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)
        assert n.tolist() == [math.ceil(x.size / 2), x.size // shape[2], 1]
