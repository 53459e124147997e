"""Which values share a kernel, and what becomes of them in loops."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_raising import op

from caten import driver, loading
from caten.attach import attach
from caten.core.expr import Op, Var
from caten.core.program import resolve
from caten.core.text import flat, read, show
from caten.frontend.op import OpProgram
from caten.frontend.spec import load
from caten.frontend.spec_files import SpecText
from caten.loop.statements import Local, LoopProgram
from caten.options import Options
from caten.semantics import interpret
from caten.tensor import tensor_verifier
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.fusion import kernels_of
from caten.tensor.kernels import Group, names_of
from caten.tensor.lower import lower
from caten.tensor.raising import raise_op
from caten.tensor.values import Compute, Read, Reduce, TensorProgram

SIZES = {"M": 4, "N": 5, "K": 3}
SUM = "(local {s} f32 () register) (setf (aref {s}) 0.0) (for {p} 0 {n} 1 serial (incf (aref {s}) {e}))"
SOFTMAX = """(for i 0 M 1 serial
  (local top f32 () register) (setf (aref top) -inf) (for j 0 N 1 serial (incf (aref top) (aref C i j) max))
  (local s f32 () register) (setf (aref s) 0.0)
  (for j_2 0 N 1 serial (let e f32 (exp (- (aref C i j_2) (aref top)))) (setf (aref C i j_2) e) (incf (aref s) e))
  (for j_3 0 N 1 serial (setf (aref C i j_3) (/ (aref C i j_3) (aref s)))))"""
SOFTMAX_APART = """(local t f32 (M) scratch) (local e f32 (M N) scratch) (local s f32 (M) scratch)
  (for i 0 M 1 serial (setf (aref t i) -inf) (for j 0 N 1 serial (incf (aref t i) (aref C i j) max)))
  (for j 0 N 1 serial (for i 0 M 1 serial (setf (aref e i j) (exp (- (aref C i j) (aref t i))))))
  (for i 0 M 1 serial (setf (aref s i) 0.0))
  (for j 0 N 1 serial (for i 0 M 1 serial (incf (aref s i) (aref e i j))))
  (for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (/ (aref e i j) (aref s i)))))"""
PROGRAMS = {
    "softmax": (SOFTMAX, 1), "softmax in five nests": (SOFTMAX_APART, 1),
    "variance": (f"""(for i 0 M 1 serial {SUM.format(s='m', p='j', n='N', e='(aref C i j)')} (let u f32 (/ (aref m) (cast f32 N)))
       {SUM.format(s='v', p='j_2', n='N', e='(* (- (aref C i j_2) u) (- (aref C i j_2) u))')}
       (for j_3 0 N 1 serial (setf (aref C i j_3) (/ (- (aref C i j_3) u) (sqrt (aref v))))))""", 1),
    "two maps, one after the other": ("(for i 0 N 1 serial (setf (aref y i) (sin (aref x i)))) (for i_2 0 N 1 serial (setf (aref y i_2) (* 2.0 (aref y i_2))))", 1),
    "shifted reads of a costly map": ("""(local t f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (exp (aref x i))))
       (for i_2 1 N 1 serial (setf (aref y i_2) (+ (aref t i_2) (aref t (- i_2 1)))))""", 2),
    "a transposed read of a costly map": ("""(local t f32 (N M) scratch) (for i 0 N 1 serial (for j 0 M 1 serial (setf (aref t i j) (exp (aref C j i)))))
       (for i_2 0 M 1 serial (for j_2 0 N 1 serial (setf (aref C i_2 j_2) (+ (aref t j_2 i_2) (aref t (- (- N j_2) 1) i_2)))))""", 1),
    "a product and its epilogue": ("""(local t f32 (M N) scratch) (for i 0 M 1 serial (for j 0 N 1 serial (setf (aref t i j) 0.0)))
       (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref t i j) (* (aref A i p) (aref B p j))))))
       (for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) (max 0.0 (+ (aref t i j) (aref x j))))))""", 1),
    "a product of what a map costs": ("""(local t f32 (M K) scratch) (for i 0 M 1 serial (for p 0 K 1 serial (setf (aref t i p) (tanh (aref A i p)))))
       (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref t i p) (aref B p j))))))""", 2),
    "the mean of all elements": (f"""{SUM.format(s='m', p='i', n='N', e='(aref x i)')}
       (for i_2 0 N 1 serial (setf (aref y i_2) (- (aref x i_2) (/ (aref m) (cast f32 N)))))""", 2),
    "a nest between maps": ("""(for i 0 N 1 serial (setf (aref y i) (exp (aref x i)))) (for i_2 1 N 1 serial (incf (aref y i_2) (aref y (- i_2 1))))
       (for i_3 0 N 1 serial (setf (aref y i_3) (sin (aref y i_3))))""", 3),
    "columns": (f"""(for j 0 N 1 serial {SUM.format(s='m', p='i', n='M', e='(aref C i j)')}
       (for i_2 0 M 1 serial (setf (aref C i_2 j) (- (aref C i_2 j) (/ (aref m) (cast f32 M))))))""", 1),
}


def raised(body: str, facts: str = "") -> TensorProgram:
    program = raise_op(op(body, facts))
    assert resolve(read(show(program))[0]) is program
    tensor_verifier.verify(program)
    return program


def results(program: OpProgram | LoopProgram) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    values: dict[str, Any] = dict(SIZES)
    for name, shape in {"A": "MK", "B": "KN", "C": "MN", "x": "N", "y": "N"}.items():
        values[name] = rng.random([SIZES[n] for n in shape], np.float32)
    values["k"] = np.zeros(SIZES["N"], np.int64)
    assert interpret.run(program, values) == 0
    return {name: values[name] for name in ("C", "y")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels(name: str) -> None:
    body, kernels = PROGRAMS[name]
    program = raised(body)
    found = kernels_of(program)
    assert len(found) == kernels, [names_of(k) for k in found]
    before, after = results(op(body)), results(lower(program))
    for each, want in before.items():
        np.testing.assert_allclose(after[each], want, rtol=2e-6)


def test_a_softmax_is_the_same_values_in_one_nest_and_in_five() -> None:
    first, second = (raised(body) for body in (SOFTMAX, SOFTMAX_APART))
    assert first.definitions == second.definitions
    assert first.outputs == second.outputs


def test_what_a_later_pass_reads_is_kept_in_the_output() -> None:
    program = lower(raised(SOFTMAX.replace("(aref C i j) max", "(* (aref x j) (cast f32 i)) max").replace(
        "(exp (- (aref C i j_2)", "(exp (- (* (aref x j_2) (cast f32 i))")))
    assert not [n for n in program.kernels[0].walk() if isinstance(n, Local) and n.shape]
    in_place = lower(raised(SOFTMAX))
    assert [n.shape for n in in_place.kernels[0].walk() if isinstance(n, Local) and n.shape] == [(Var("N", "i64"),)]


def test_an_input_that_is_written_early_is_copied_first() -> None:
    body = """(local t f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (* 2.0 (aref y i))))
      (for i_2 0 N 1 serial (setf (aref y i_2) (aref t (- (- N 1) i_2))))"""
    program = lower(raised(body))
    assert "(local y_old f32 (N) scratch)" in show(program)
    before, after = results(op(body)), results(program)
    np.testing.assert_array_equal(before["y"], after["y"])


def test_a_costly_map_that_is_read_elsewhere_is_stored() -> None:
    body = """(local t f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (sin (aref y i))))
      (for i_2 0 N 1 serial (setf (aref y i_2) (aref t (- (- N 1) i_2))))"""
    program = lower(raised(body))
    assert "(local t f32 (N) scratch)" in show(program)
    before, after = results(op(body)), results(program)
    np.testing.assert_array_equal(before["y"], after["y"])


def test_the_diagonal_of_what_a_reduction_makes_is_no_place_for_its_rows() -> None:
    program = resolve(read("""(tensor T (size M) (size N) (buffer A f32 (M M N) (0 1 2) in) (buffer Y f32 (M M) (0 1) out)
      (define v0 (reduce f32 ((i M) (j M)) ((p N)) max true (read A i j p)))
      (define v1 (compute f32 ((i M) (j M)) (+ (read v0 i i) (exp (read v0 i j)))))
      (output Y v1))""")[0])
    tensor_verifier.verify(program)
    a, y = np.random.default_rng(3).random((4, 4, 3), np.float32), np.zeros((4, 4), np.float32)
    assert interpret.run(lower(program), {"M": 4, "N": 3, "A": a, "Y": y}) == 0
    top = a.max(axis=2)
    np.testing.assert_allclose(y, np.diag(top)[:, None] + np.exp(top), rtol=2e-6)


def test_a_sum_that_needs_all_of_another_reduction_stays_in_another_kernel() -> None:
    """Both are read by the last sum: one at its own index, one at all of them. The first two read the same array."""
    body = """(local s f32 (N) scratch) (local t f32 (N) scratch)
      (for i 0 N 1 serial (setf (aref t i) -inf) (for p 0 N 1 serial (incf (aref t i) (/ (aref x p) (+ 1.0 (abs (aref x i)))) max)))
      (for i_2 0 N 1 serial (setf (aref s i_2) 0.0) (for p_2 0 N 1 serial (incf (aref s i_2) (aref x p_2))))
      (for i_3 0 N 1 serial (setf (aref y i_3) 0.0) (for p_3 0 N 1 serial (incf (aref y i_3) (+ (aref s i_3) (aref t p_3)))))"""
    program = raised(body)
    assert max(len(names_of(k)) for k in kernels_of(program)) == 2
    for name, made in results(op(body)).items():
        np.testing.assert_allclose(made, results(lower(program))[name], rtol=1e-5)


@pytest.mark.parametrize(("body", "loops"), [
    ("return np.concatenate((A, B, C), axis=0)", 3), ("return np.tanh(np.concatenate((A, B, C), axis=0)) + 1", 3),
    ("return np.roll(np.concatenate((A, B, C), axis=0), 3, axis=1)", 6), ("return np.concatenate((C, np.vstack((B, A)) * 2))", 3),
])
def test_joined_arrays_are_loops_over_their_parts(body: str, loops: int) -> None:
    """No element tests which part it is in."""
    spec = f'''[composite]
name = "Joined"
inputs = ["A{{float}}[M N]", "B{{float}}[K N]", "C{{float}}[P N]"]
outputs = ["Y{{float}}[(+ (+ M K) P) N]"]
[implementation]
lang = "python"
code = "{body}"
'''
    settings = Options(runtime="clang", opt=1)
    (op,) = load(SpecText("joined.toml", spec, "toml"), settings)
    program = driver.advance(attach(op, settings), "loop", settings)
    assert isinstance(program, LoopProgram)
    assert len([s for k in program.kernels for s in k.body]) == loops
    assert not any(isinstance(n, Op) and n.fn == "where" for n in program.kernels[0].walk())


@pytest.mark.parametrize(("code", "counts"), [
    ("return (A @ B.T) / (np.sqrt((A * A).sum(1))[:, None] * np.sqrt((B * B).sum(1))[None, :])", [1, 1, 2]),       # cosine similarity
    ("n = np.sqrt((A * A).sum(1, keepdims=True))\nreturn A @ B.T / n", [1, 2]),
    ("y = A @ B.T\nreturn y / y.sum(1, keepdims=True)", [1, 2])])
def test_what_finishes_a_product_waits_for_its_sums_and_not_for_others(code: str, counts: list[int]) -> None:
    """Members of each kernel: the map is in that of the contraction, and reductions that it reads are in kernels before."""
    text = ('[composite]\nname = "P"\ninputs = ["A{float}[M K]", "B{float}[N K]"]\noutputs = ["Y{float}[M N]"]\n'
            f"[composite.implementation]\nlang = \"python\"\ncode = '''\n{code}\n'''\n")
    (made,) = loading.loaded([SpecText("p.toml", text)], Options())
    program = driver.advance(made, "tensor", Options())
    assert isinstance(program, TensorProgram)
    assert [len(names_of(k)) for k in kernels_of(program)] == counts


@pytest.mark.parametrize(("left", "kernels"), [("(l[:, None] == np.arange(8)[None, :]).astype(np.float32).T", 2), ("np.where(A > 0, A, 0)", 2), ("np.maximum(A, 0)", 1),
                                               ("np.where(np.arange(8)[:, None] > np.arange(K)[None, :], A, 0)", 2),
                                               ("np.where(np.arange(K) < 5, A, 0)", 1), ("np.concatenate([A[:, 1:], A[:, :1]], axis=1)", 2),
                                               ("np.pad(A[:, 1:], ((0, 0), (0, 1)))", 2)])
def test_a_mask_is_computed_before_a_product(left: str, kernels: int) -> None:
    """Of elements, and a triangle, and so is what is joined: packing would choose for each element. So is
    what has a border around shifted elements. Elements under a bound, and a map that packing computes, are not."""
    text = ('[composite]\nname = "P"\ninputs = ["A{float}[8 K]", "l{int64}[K]", "X{float}[K N]"]\noutputs = ["Y{float}[8 N]"]\n'
            f"[composite.implementation]\nlang = \"python\"\ncode = '''\nreturn {left} @ X\n'''\n")
    (made,) = loading.loaded([SpecText("p.toml", text)], Options())
    program = driver.advance(made, "tensor", Options())
    assert isinstance(program, TensorProgram)
    assert len(kernels_of(program)) == kernels


@pytest.mark.parametrize("picked", ["lp[np.arange(M), L]", "np.take_along_axis(lp, L[:, None], axis=1)[:, 0]"])
def test_a_row_number_that_is_computed_is_not_another_row(picked: str) -> None:
    """The axis of `np.arange` is never negative, so it is no index from the end: the loss is one kernel with its softmax, after the check of L."""
    text = ('[composite]\nname = "P"\ninputs = ["X{float}[M N]", "L{int64}[M]"]\noutputs = ["y{float}[M]"]\n'
            "[composite.implementation]\nlang = \"python\"\ncode = '''\nZ = X - X.max(1, keepdims=True)\n"
            f"lp = Z - np.log(np.exp(Z).sum(1, keepdims=True))\nreturn -{picked}\n'''\n")
    (made,) = loading.loaded([SpecText("p.toml", text)], Options())
    program = driver.advance(made, "tensor", Options())
    assert isinstance(program, TensorProgram)
    assert [len(names_of(k)) for k in kernels_of(program)] == [1, 3]


def whole(code: str, inputs: str, output: str) -> TensorProgram:
    """The values of a body over whole arrays."""
    text = f"[composite]\nname = \"P\"\ninputs = {inputs}\noutputs = [\"{output}\"]\n[composite.implementation]\nlang = \"python\"\ncode = '''\n{code}\n'''\n"
    (made,) = loading.loaded([SpecText("p.toml", text)], Options())
    program = driver.advance(made, "tensor", Options())
    assert isinstance(program, TensorProgram)
    return program


@pytest.mark.parametrize("shape", ["G, H // G, T, D", "G, -1, T, D", "H // 4, 4, T, D", "-1, 4, T, D", "H, T, 4, -1", "H, T, D // 8, 8",
                                   "H // 7, 7, T // 7, 7, D", "H // 4, 2, 2, T // 3, 3, D // 8, 8", "-1, 7, T // 7, 7, D",
                                   "G, F, T, D"])
def test_an_axis_that_is_cut_by_a_condition_leaves_the_other_axes_alone(shape: str) -> None:
    """Heads in groups: that H is a multiple is a condition of the call, and no index is a quotient or remainder."""
    output = f"Y{{float}}[{' '.join('abcdefg'[:shape.count(',') + 1])}]"
    program = whole(f"H, T, D = Q.shape\nG, F = x.shape\nreturn Q.reshape({shape}) + x[0, 0]", '["Q{float}[H T D]", "x{float}[G F]"]', output)
    for d in program.definitions:
        reads = [n for n in d.value.unique() if isinstance(n, Read) and n.buffer == "Q"]
        assert reads
        assert not [n for r in reads for n in r.unique() if isinstance(n, Op) and n.fn in ("floordiv", "mod") and n.variables - {*program.sizes}]


@pytest.mark.parametrize("last", ["", ", N - 1"])
def test_what_costs_much_is_no_cheaper_for_a_size_in_it(last: str) -> None:
    """The places of columns are computed once, also where they end at the number of columns."""
    program = whole(f"return X * np.minimum(np.sqrt(np.arange(N) + 0.5) * 2.5{last or ', 100'})", '["X{double}[M N]"]', "Y{double}[M N]")
    assert sum(len(names_of(k)) for k in kernels_of(program)) == 2


@pytest.mark.parametrize("shape", ["H // 7, 7, T // 7, 7, D", "H // 4, 2, 2, T // 2, 2, D // 8, 8"])
def test_axes_that_are_cut_and_joined_again_are_the_same(shape: str) -> None:
    """The windows of an image and back: each element is read at its own place."""
    program = whole(f"H, T, D = Q.shape\nG = x.shape[0]\nreturn Q.reshape({shape}).reshape(H, T, D) + x[0]",
                    '["Q{float}[H T D]", "x{float}[G]"]', "Y{float}[H T D]")
    (value,) = [d.value for d in program.definitions]
    assert isinstance(value, Compute)
    (read,) = [n for n in value.unique() if isinstance(n, Read) and n.buffer == "Q"]
    assert read.index == tuple([a.var for a in value.axes])


@pytest.mark.parametrize(("shape", "conditions"), [
    ("H // 7, 7, T // 7, 7, D", ["(= H (* 7 (floordiv H 7)))", "(= T (* 7 (floordiv T 7)))"]), ("-1, 7, T, D", ["(= (mod H 7) 0)"]),
    ("G, H // G, T, D", ["(= H (* (floordiv H G) G))"]), ("G, F, T, D", ["(= H (* F G))"]), ("H, T * D", [])])
def test_each_call_checks_that_the_divisions_of_a_shape_leave_no_rest(shape: str, conditions: list[str]) -> None:
    output = f"Y{{float}}[{' '.join('abcdefg'[:shape.count(',') + 1])}]"
    text = flat(show(whole(f"H, T, D = Q.shape\nG, F = x.shape\nreturn Q.reshape({shape}) + x[0, 0]", '["Q{float}[H T D]", "x{float}[G F]"]', output)))
    assert [c for c in conditions if c not in text] == [], text


def test_the_bound_of_a_quotient_may_ask_whether_it_is_positive() -> None:
    """⌊H·T / 4·T⌋ is an extent whose upper bound needs the sign of its factors, itself among them."""
    program = whole("H, T, D = Q.shape\nreturn Q.reshape(-1, 2 * T, 2, D) + 1", '["Q{float}[H T D]"]', "Y{float}[a b c d]")
    assert any(isinstance(d.value, Compute) and len(d.value.axes) == 4 for d in program.definitions)


def test_what_a_softmax_divides_by_is_summed_up_beside_its_product() -> None:
    """Attention of groups of heads: the reader of the sums, in another order, is a later kernel, and the exponentials are not read again for them."""
    program = whole("""H, T, D = Q.shape
G = K.shape[0]
s = np.einsum('grtd,gsd->grts', Q.reshape(G, H // G, T, D), K)
e = np.exp(s - s.max(axis=-1, keepdims=True))
return np.einsum('grts,gsd->grtd', e / e.sum(axis=-1, keepdims=True), V).reshape(H, T, D)""",
                    '["Q{float}[H T D]", "K{float}[G S D]", "V{float}[G S D]"]', "Y{float}[H T D]")
    found = kernels_of(ready_for_fusion(program))
    (exponentials,) = [k for k in found if isinstance(k, Group) and any("exp" in [n.fn for n in m.value.unique() if isinstance(n, Op)] for m in k.members)]
    assert [m.value.fn for m in exponentials.members if isinstance(m.value, Reduce)] == ["max", "add"]
