"""Linear forms and their one spelling."""
from __future__ import annotations

import subprocess
import sys

import pytest

from caten.core.expr import Const, Expr, Op, Var
from caten.core.text import read, show
from caten.loop.affine import Linear, canonical, constant, expression, key_of, linear, of_atom
from caten.loop.statements import LoopProgram


def expr(text: str, types: str = "(let i i64 0) (let j i64 0) (let k i64 0) (let n i64 0) (let a u8 0:u8) (let b i32 0:i32) (let x f32 0.0) (let y f32 0.0)"):
    from caten.core.program import resolve
    return resolve(LoopProgram("t", (*read(types), read(f"(require (= {text} {text}))")[0]))).clauses[-1].cond.args[0]


@pytest.mark.parametrize(("written", "normal"), [
    ("(+ 1 i)", "(+ i 1)"),
    ("(- (+ (* i 6) j) (* 2 i))", "(+ (* 4 i) j)"),
    ("(* (+ i 1) (+ n 2))", "(+ (+ (+ (* i n) (* 2 i)) n) 2)"),
    ("(- i i)", "0"),
    ("(- 4 i)", "(- 4 i)"),
    ("(- (- 0 i) j)", "(- (* -1 i) j)"),
    ("(+ (* j n) (+ (* n j) k))", "(+ (* 2 (* j n)) k)"),
    ("(floordiv (+ 2 (+ i 1)) 4)", "(floordiv (+ i 3) 4)"),
    ("(+ (mod (+ 0 i) 4) (mod i 4))", "(* 2 (mod i 4))"),
    ("(max j i)", "(max i j)"),
    ("(+ (* 9 (floordiv i 9)) (+ (* 3 (floordiv (mod i 9) 3)) (mod (mod i 9) 3)))", "i"),
    ("(+ (- j (* 2 (mod (+ i n) 4))) (* -8 (floordiv (+ n i) 4)))", "(- (- j (* 2 i)) (* 2 n))"),
    ("(+ (* 4 (floordiv i 4)) (mod i 3))", "(+ (* 4 (floordiv i 4)) (mod i 3))"),
    ("(+ (* 3 (floordiv i 4)) (mod i 4))", "(+ (* 3 (floordiv i 4)) (mod i 4))"),
    ("(- a 1:u8)", "(+ a 255:u8)"),
    ("(* 256:i32 (* b 16777216:i32))", "0:i32"),
    ("(cast i64 (floor (* y (+ x 0.5))))", "(cast i64 (floor (* (+ 0.5 x) y)))"),
    ("(+ 1 (cast i64 (where (> x y) x y)))", "(+ (cast i64 (where (< y x) x y)) 1)"),
    ("(cast i64 (- y x))", "(cast i64 (- y x))"),
])
def test_equal_sums_have_one_spelling(written: str, normal: str) -> None:
    assert show(canonical(expr(written))) == normal
    assert canonical(expr(normal)) is canonical(expr(written))


def test_a_form_knows_its_coefficients_and_replaces_an_atom() -> None:
    i, j, n = (expr(t) for t in "ijn")
    form = linear(expr("(+ (+ (* i n) (* 3 i)) (- j 2))"))
    assert form.coefficient(i) == of_atom(n).shifted(3)
    assert form.replace(i, of_atom(j).shifted(-1)) == linear(expr("(+ (* (- j 1) (+ n 3)) (- j 2))"))
    assert form.degree == 2
    assert (form - form).is_constant
    assert expression(constant(7)) is expr("7")
    assert Linear({}, 0) == constant(0)


@pytest.mark.parametrize(("product", "by", "quotient"), [
    ("(* i n)", "n", "i"),
    ("(* (- i 2) (+ (* 3 n) 1))", "(+ (* 3 n) 1)", "(- i 2)"),
    ("(* (+ i j) (- i j))", "(+ i j)", "(- i j)"),
    ("(* 6 (* i n))", "(* 2 n)", "(* 3 i)"),
    ("(* (floordiv i 4) (floordiv n 8))", "(floordiv n 8)", "(floordiv i 4)"),
    ("(+ (* i n) 1)", "n", None),
    ("(* 3 i)", "(* 2 i)", None),
    ("(* i i)", "j", None),
    ("i", "0", None),
    ("0", "n", "0"),
])
def test_a_form_is_divided_without_a_rest_or_not_at_all(product: str, by: str, quotient: str | None) -> None:
    found = linear(expr(product)).quotient(linear(expr(by)))
    assert found == (None if quotient is None else linear(expr(quotient)))


def test_a_product_that_would_be_too_long_stays_a_product() -> None:
    total = expr("(+ (+ i j) (+ k n))")
    product = total
    for _ in range(6):
        product = product * total
    assert len(linear(product).terms) < 60


def test_proofs_about_tiles_and_tails_do_not_need_isl() -> None:
    code = """
import sys
from caten.core.text import read
from caten.core.program import resolve
from caten.loop.verifier import verify
from caten.loop.simplify import simplify_program
from caten.loop.dependence import obstacle_to_parallel
tiled = resolve(read('''(loop gemm (size M) (size N) (size K) (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (0 1) in) (buffer C f32 (M N) (0 1) inout)
 (kernel gemm (for io 0 (floordiv (+ M 5) 6) 1 parallel (for ii 0 6 1 unroll (if (< (+ (* 6 io) ii) M) ((for jo 0 N 16 serial
   (for ji jo (min (+ jo 16) N) 1 serial (for p 0 K 1 serial (incf (aref C (+ (* io 6) ii) ji) (* (aref A (+ ii (* io 6)) p) (aref B p ji))))))))))
   (for v 0 N 8 parallel (setf (vref C 8 (0 v) -1 (and (< (ramp 8 v 1) (splat 8 N)) (splat 8 (< 0 M)))) (splat 8 1.0)))))''')[0])
verify(simplify_program(tiled))
assert obstacle_to_parallel(tiled, 'io') is None
assert 'islpy' not in sys.modules and 'numpy' not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def long_atom(start: str, times: int) -> Expr:
    """An atom whose text has 2^times parts, of which all but `times` are shared."""
    value: Expr = Var(start, "i64")
    for _ in range(times):
        value = Op("xor", (value, Op("shl", (value, Const(3, "i64")))))
    return value


def test_atoms_with_long_texts_have_an_order() -> None:
    """Without the text, which would not end; the same in every process, and behind those with short texts."""
    a, b, short = long_atom("a", 60), long_atom("b", 60), Var("z", "i64")
    assert a.written_out > 2 ** 60
    assert canonical(a * b * short) is canonical(short * b * a)
    assert canonical(a - b) is canonical(Op("neg", (b,)) + a)
    assert key_of(short) < key_of(a)
    assert key_of(a) != key_of(b)


def test_digests_do_not_depend_on_the_process() -> None:
    text = ("import sys; sys.path.insert(0, 'tests/loop'); from test_loop_affine import long_atom; print(long_atom('a', 60).digest)")
    found = {subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}).stdout
             for seed in ("1", "2")}
    assert found == {long_atom("a", 60).digest + "\n"}
