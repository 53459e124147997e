"""Loops that are split into the iterations in which all conditions hold, and those before and after them."""
from __future__ import annotations

import re

import numpy as np
import pytest

import caten
from caten import compiler
from caten.frontend.spec_files import SpecText
from caten.options import Options

WINDOW = """[composite]
name = "Window"
inputs = ["x{float}[N]", "h{float}[K]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (set acc 0.0) (dotimes (p K) (when (and (<= 3 (+ i p)) (< (- (+ i p) 3) N)) (incf acc (* (aref h p) (aref x (- (+ i p) 3)))))) (setf (aref y i) acc))"
"""
OF_ARRAYS = """[composite]
name = "Filtered"
inputs = [{inputs}]
outputs = [{outputs}]
implementation = {{ lang = "python", code = '''{code}''' }}
"""
PROGRAMS = {
    "same": ('"x{float}[N]", "h{float}[K]"', '"y{float}[N]"', "return np.convolve(x, h, mode='same')"),
    "full": ('"x{float}[N]", "h{float}[K]"', '"y{float}[(+ N (- K 1))]"', "return np.convolve(x, h, mode='full')"),
    "correlate": ('"x{float}[N]", "h{float}[K]"', '"y{float}[(+ N (- K 1))]"', "return np.correlate(x, h, mode='full')"),
    "five": ('"x{float}[N]", "h{float}[5]"', '"y{float}[N]"', "return np.convolve(x, h, mode='same')"),
    "padded": ('"x{float}[N]", "h{float}[K]"', '"y{float}[N]"', """
k = h.shape[0]
return np.lib.stride_tricks.sliding_window_view(np.pad(x, (k // 2, k - 1 - k // 2)), k) @ h"""),
    "image": ('"x{float}[N 37]", "h{float}[K 3]"', '"y{float}[N 37]"', """
k = h.shape[0]
p = np.pad(x, ((k // 2, k - 1 - k // 2), (1, 1)))
return np.einsum('ijkl,kl->ij', np.lib.stride_tricks.sliding_window_view(p, (k, 3)), h)"""),
}


def text(name: str) -> str:
    inputs, outputs, code = PROGRAMS[name]
    return OF_ARRAYS.format(inputs=inputs, outputs=outputs, code=code)


def steps_of(spec: str) -> str:
    source = compiler.prepare([SpecText("f.toml", spec, "toml")], Options(config=(("MARCH", "x86-64-v3"),))).source
    return " ".join(source.split("*/")[0].replace("*", " ").split())


def filled(*shape: int) -> np.ndarray:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape) % 7 - 3


@pytest.mark.slow
@pytest.mark.parametrize("steps", [
    "(interior p)", "(interior i_2)", "(interior i_2) (interior pb) (interior pe a b)", "(interior p u v)", "(split i_2 8) (interior i_2o)",
    "(stage p y begin register) (split i_2 8) (vectorize i_2i) (interior p)",
    "(stage p y begin register) (split i_2 16) (split i_2i 8) (vectorize i_2ii) (jam i_2io) (interior p)"])
def test_the_parts_are_the_whole_loop(steps: str) -> None:
    operator = caten.compile(WINDOW, schedule=f"(schedule {steps})")
    for n in (0, 1, 2, 3, 7, 16, 17, 40):
        for k in (0, 1, 3, 4, 7, 20, 60):
            x, h = filled(n), filled(k)
            inside = np.array([[x[i + p - 3] if 0 <= i + p - 3 < n else 0 for p in range(k)] for i in range(n)], np.float32)
            np.testing.assert_array_equal(operator(x, h), inside.reshape(n, k) @ h)


def loops_of(steps: str) -> list[str]:
    """The loops over terms of the sum, each with its test, if any."""
    source = caten.compile(WINDOW, schedule=f"(schedule {steps})").source
    return re.findall(r"for \(int64_t p\w* = .*\n *(?:if .*)?", source)


@pytest.mark.slow
def test_the_interior_has_no_condition() -> None:
    before, middle, after = loops_of("(interior i_2)")
    assert "if" in before
    assert "if" not in middle
    assert "if" in after


@pytest.mark.slow
def test_iterations_that_do_nothing_are_left_out() -> None:
    loop, = loops_of("(interior p)")
    assert "p = ct_max_i64(3 - i_2, 0); p < ct_min_i64(N - i_2 + 3, K)" in loop
    assert "if" not in loop


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_filters_with_padding(name: str) -> None:
    """Long and short signals, and windows longer than they are."""
    given, _, code = PROGRAMS[name]
    scope: dict[str, object] = {"np": np}
    exec("def reference(x, h):\n" + "\n".join(f"    {line}" for line in code.splitlines()), scope)
    operator = caten.compile(text(name))
    for n, k in ((1, 1), (5, 5), (9, 2), (30, 7), (64, 64), (65, 31), (200, 12), (301, 33)):
        x = filled(n, 37) if "37" in given else filled(n)
        h = filled(k, 3) if "37" in given else filled(5 if name == "five" else k)
        if name == "five" and n < 5:
            continue
        np.testing.assert_array_equal(operator(x, h), scope["reference"](x, h))  # type: ignore[operator]   # a function


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_sums_with_padding_have_an_interior(name: str) -> None:
    assert "(interior " in steps_of(text(name))


@pytest.mark.slow
def test_strips_of_a_convolution_are_for_signals_of_any_length() -> None:
    """Neighbouring results read the same elements: no plan for arrays that fit no cache is needed."""
    assert "(<= (*" not in steps_of(text("same"))


@pytest.mark.slow
def test_edges_of_an_image_that_repeat_its_border_are_vectors() -> None:
    """What all lanes read at a border is read where the row is inside, too."""
    code = """
H, W = x.shape
p = np.pad(x, 2, mode='edge')
return sum([np.exp(-p[d:d + H, e:e + W] ** 2) for d in (0, 4) for e in (0, 3)])"""
    spec = OF_ARRAYS.format(inputs='"x{float}[H W]"', outputs='"y{float}[H W]"', code=code)
    assert "(specialize i (<= W 3) l) (split il 8)" in steps_of(spec)              # of both nests, not of one
    operator = caten.compile(spec)
    for h, w in ((1, 1), (1, 9), (2, 8), (3, 3), (5, 23), (17, 40)):
        x = filled(h, w) / 4
        p = np.pad(x, 2, mode="edge")
        expected = sum(np.exp(-p[d:d + h, e:e + w] ** 2) for d in (0, 4) for e in (0, 3))
        np.testing.assert_allclose(operator(x), expected, rtol=1e-6)
