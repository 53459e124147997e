"""The rule winograd.toml: it applies to convolutions by 3 x 3 windows, is right at odd sizes, and keeps its error bound."""
from __future__ import annotations

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.schedule.planning_log import Entry, Rewritten

SPEC = """include = ["winograd.toml"]
[composite]
name = "Windows"
inputs = ["X{float}[N C (+ (* STEP (- H 1)) SIZE) (+ W 2)]", "F{float}[O C SIZE 3]"]
outputs = ["Y{float}[N O H W]"]
[implementation]
code = \"\"\"
(dotimes (o O) (dotimes (n N) (dotimes (y H) (dotimes (x W)
  (set acc 0.0)
  (dotimes (c C) (dotimes (j 3) (dotimes (i SIZE)
    (incf acc (* (aref F o c i j) (aref X n c (+ (* STEP y) i) (+ x j)))))))
  (setf (aref Y n o y x) acc)))))
\"\"\"
"""


def spec(step: int = 1, size: int = 3) -> str:
    text = SPEC.replace("(+ (* STEP (- H 1)) SIZE)", f"(+ H {size - 1})" if step == 1 else f"(+ (* {step} H) {size - 1})")
    return text.replace("STEP", str(step)).replace("SIZE", str(size))


def rules(text: str, options: Options) -> list[str]:
    log: list[Entry] = []
    (program,) = loading.load_programs(SpecText("w.toml", text), options)
    driver.advance(program, "tensor", options, log=log)
    return [e.rule for e in log if isinstance(e, Rewritten)]


def test_it_applies_to_windows_of_three_with_step_one_where_sums_may_be_reordered() -> None:
    assert rules(spec(), Options()) == ["winograd"]
    assert rules(spec(step=2), Options()) == []
    assert rules(spec(size=2), Options()) == []
    assert rules(spec(), Options(in_order=True)) == []
    assert rules(spec().split("\n", 1)[1], Options()) == []                     # without the include


PADDED = """include = ["winograd.toml"]
[composite]
name = "Padded"
inputs = ["X{float}[N C H W]", "F{float}[O C 3 3]"]
outputs = ["Y{float}[N O H W]"]
[implementation]
code = \"\"\"
(array P float (N C (+ H 2) (+ W 2)))
(dotimes (n N) (dotimes (c C) (dotimes (y (+ H 2)) (dotimes (x (+ W 2))
  (setf (aref P n c y x) (if (and (<= 1 y) (<= y H) (<= 1 x) (<= x W)) (aref X n c (- y 1) (- x 1)) 0.0))))))
(dotimes (n N) (dotimes (o O) (dotimes (y H) (dotimes (x W)
  (set acc 0.0)
  (dotimes (c C) (dotimes (i 3) (dotimes (j 3) (incf acc (* (aref F o c i j) (aref P n c (+ y i) (+ x j)))))))
  (setf (aref Y n o y x) acc)))))
\"\"\"
"""
SKIPPING = PADDED[:PADDED.index("(array")] + """(dotimes (n N) (dotimes (o O) (dotimes (y H) (dotimes (x W)
  (set acc 0.0)
  (dotimes (c C) (dotimes (i 3) (dotimes (j 3)
    (when (and (<= 1 (+ y i)) (<= (+ y i) H) (<= 1 (+ x j)) (<= (+ x j) W))
      (incf acc (* (aref F o c i j) (aref X n c (- (+ y i) 1) (- (+ x j) 1))))))))
  (setf (aref Y n o y x) acc)))))
\"\"\"
"""


def test_it_applies_to_an_image_that_is_padded_but_not_where_products_are_left_out() -> None:
    """A product of zero and a weight that is infinite is NaN."""
    assert rules(PADDED, Options()) == ["winograd"]
    assert rules(SKIPPING, Options()) == []


MATRICES = {"G": [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
            "B": [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], "A": [[1, 1, 1, 0], [0, 1, -1, -1]]}


def bound(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    """(C + 12) u S of each element, as docs/rewrites.md says."""
    g, b, a = (np.abs(np.array(MATRICES[name], float)) for name in "GBA")
    n, c, h, w = x.shape
    rows, columns = -(-(h - 2) // 2), -(-(w - 2) // 2)
    padded = np.zeros((n, c, 2 * rows + 2, 2 * columns + 2))
    padded[:, :, :h, :w] = np.abs(x)
    u = np.einsum("ai,bj,ocij->aboc", g, g, np.abs(f.astype(float)))
    whole = np.zeros((n, f.shape[0], 2 * rows, 2 * columns))
    for p in range(rows):
        for q in range(columns):
            v = np.einsum("ai,bj,ncij->abnc", b, b, padded[:, :, 2 * p:2 * p + 4, 2 * q:2 * q + 4])
            whole[:, :, 2 * p:2 * p + 2, 2 * q:2 * q + 2] = np.einsum("ra,sb,abno->nors", a, a, np.einsum("aboc,abnc->abno", u, v))
    return (c + 12) * 2.0 ** -24 * whole[:, :, :h - 2, :w - 2]


@pytest.fixture(scope="module")
def windows() -> caten.Operator:
    return caten.compile(spec())


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (1, 3, 2, 5, 5), (2, 5, 7, 6, 9), (1, 17, 18, 13, 20), (1, 3, 2, 4, 0), (2, 0, 3, 3, 2)])
@pytest.mark.parametrize("wild", [False, True])
def test_its_error_is_within_the_bound(windows: caten.Operator, shape: tuple[int, ...], wild: bool) -> None:
    n, c, o, h, w = shape
    rng = np.random.default_rng(3)
    x, f = rng.uniform(-1, 1, (n, c, h + 2, w + 2)).astype(np.float32), rng.uniform(-1, 1, (o, c, 3, 3)).astype(np.float32)
    if wild:                                             # elements of very different size in one tile
        x *= np.float32(10) ** rng.integers(-4, 5, x.shape).astype(np.float32)
    exact = sum(np.einsum("nchw,oc->nohw", x[:, :, i:i + h, j:j + w].astype(float), f[:, :, i, j].astype(float)) for i in range(3) for j in range(3))
    got = windows(x, f, H=h, W=w)
    assert got.shape == (n, o, h, w)
    assert (np.abs(got - exact) <= bound(x, f) + np.spacing(np.abs(exact).astype(np.float32))).all()
