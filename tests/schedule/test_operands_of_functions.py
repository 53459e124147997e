"""Contractions of functions of elements, of types that share a byte, and with windows larger than what they make: which plans they get."""
from __future__ import annotations

import pytest

from caten import compiler
from caten.frontend.spec_files import SpecText
from caten.options import Options

TEXT = """(tensor F (outputs Y)
  (buffer X f32 ({x}) ({order}) in) (buffer W f32 ({w}) ({order}) in) (buffer s f32 (64) (0) in) (buffer t f32 (64) (0) in)
  (buffer Y f32 ({y}) ({order}) out) {sizes} (opt 2)
  (define v0 (reduce f32 ({axes}) ({over}) add {cond} (* {left} {right})))
  (output Y v0))"""


def schedule(**parts: str) -> str:
    """The steps of the schedule, from the comment in the C text."""
    text = compiler.prepare([SpecText("t", TEXT.format(**parts), "lisp")], Options(config=(("MARCH", "x86-64-v4"),))).source
    return " ".join(text.split("*/")[0].replace("*", " ").split())


@pytest.mark.slow
def test_a_scale_and_a_shift_are_computed_while_packing() -> None:
    parts = {"x": "M 64", "w": "64 N", "y": "M N", "order": "0 1", "sizes": "(size M) (size N)", "axes": "(i M) (j N)", "over": "(p 64)", "cond": "true",
             "right": "(read W p j)"}
    made = schedule(left="(+ (* (read X i p) (read s p)) (read t p))", **parts)
    assert "(precompute X_tile)" in made
    assert "(precompute" not in schedule(left="(read X i p)", **parts)


@pytest.mark.slow
def test_few_constant_pixels_fill_a_register_tile() -> None:
    """The gradient of 3 × 3 weights: a tile of 4 × 4 in the place of 4 × 8 or 2 × 16."""
    made = schedule(x="16 B H V", w="8 B H V", y="16 8 3 3", order="0 1 2 3", sizes="(size B) (size H) (size V)", axes="(i 16) (j 8) (k 3) (l 3)",
                    over="(p B) (q H) (r V)", cond="(and (and (<= 0 (- (+ k q) 1)) (< (- (+ k q) 1) H)) (and (<= 0 (- (+ l r) 1)) (< (- (+ l r) 1) V)))",
                    left="(read X i p q r)", right="(read W j p (- (+ k q) 1) (- (+ l r) 1))")
    assert "(split l_2 4 pad) (split k_2 4 pad)" in made             # in the version for images of more than one pixel


def in_python(inputs: str, output: str, code: str) -> SpecText:
    return SpecText("t.toml", f"""[[composite]]
name = "packed"
inputs = [{inputs}]
outputs = ["{output}"]
[composite.implementation]
lang = "python"
code = "{code}"
""")


# in registers, elements that share a byte are not transposed
@pytest.mark.slow
@pytest.mark.slice(4)
@pytest.mark.parametrize("spec", [
    in_python('"x{float}[M K]", "W{int4}[K N]"', "y{float}[M N]", "return x @ W.astype(np.float32)"),
    in_python('"x{float}[M K]", "W{uint4}[N K]"', "y{float}[M N]", "return x @ W.T.astype(np.float32)"),
    in_python('"x{uint4}[K M]", "W{int4}[N K]"', "y{float}[M N]", "return x.T.astype(np.float32) @ W.T.astype(np.float32)"),
    in_python('"x{float}[1 64 14 14]", "W{int4}[64 64 3 3]"', "y{float}[1 64 12 12]", "return conv2d(x, W.astype(np.float32))"),
    in_python('"x{int4}[M N]"', "y{int4}[N M]", "return x.T")], ids=["product", "transposed", "both", "convolution", "transpose"])
@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
def test_a_program_of_elements_that_share_a_byte_is_verified(spec: SpecText, march: str) -> None:
    compiler.prepare([spec], Options(config=(("MARCH", march), ("OMP", "1"))))
