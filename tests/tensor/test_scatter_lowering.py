"""Scatters into small targets on threads: each part of the iterations adds to a copy, and the copies are added in order."""
from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.program import Check, resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.loop import verifier
from caten.loop.bounds_checks import add_checks
from caten.loop.statements import Fail, For, If, Local, LoopProgram
from caten.options import Options
from caten.semantics import interpret
from caten.tensor import scatter_lowering
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.lower import lower
from caten.tensor.raising import raise_op
from caten.tensor.values import Nest, TensorProgram

THREADS = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true () true))'
ONE = THREADS.replace("() true", "() false")
INDEX = "(max 0 (min (- B 1) (read k i)))"
SCATTERS = {
    "add": f"(scatter f32 h (B) ((i N)) add ({INDEX}) true (read x i))",
    "max": f"(scatter f32 h (B) ((i N)) max ({INDEX}) true (read x i))",
    "of some elements": f"(scatter f32 h (B) ((i N)) add ({INDEX}) (< 0.0 (read x i)) (read x i))",
    "of two axes": "(scatter f32 h (B) ((i N) (j N)) add ((max 0 (min (- B 1) (+ (read k i) (read k j))))) true (* (read x i) (read x j)))",
}


def lowered(value: str, facts: str = THREADS) -> LoopProgram:
    return lower(resolve(read(
        f"(tensor T (size N) (size B) (buffer k i64 (N) (0) in) (buffer x f32 (N) (0) in) (buffer h f32 (B) (0) inout) {facts} "
        f"(ensure 1 (<= 1 B)) (check 1 \"no element\") (define v0 {value}) (output h v0))")[0]))


def copies(program: LoopProgram) -> list[Local]:
    return [n for k in program.kernels for n in k.walk() if isinstance(n, Local) and n.shape]


@pytest.mark.parametrize("name", SCATTERS)
def test_parts_and_the_loop_as_it_is_add_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many iterations as the condition wants and with fewer; parts that are short, and empty ones."""
    monkeypatch.setattr(scatter_lowering, "ITERATIONS", 2)
    shared, plain = lowered(SCATTERS[name]), lowered(SCATTERS[name], ONE)
    verifier.verify(shared)
    assert len(copies(shared)) == 1
    assert not copies(plain)
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 5, 15, 16, 17, 31, 40):
        for b in (1, 3, 7):
            found = []
            for program in (shared, plain):
                rng = np.random.default_rng(n)
                values: dict[str, Any] = {"N": n, "B": b, "k": rng.integers(-1, 9, n), "x": np.round(9 * rng.standard_normal(n)).astype(np.float32),
                                          "h": np.ones(b, np.float32)}
                assert interpret.run(program, values) == 0
                found.append(values["h"])
            np.testing.assert_array_equal(*found)


def test_the_condition() -> None:
    """32 iterations for each element, and a quarter of the last private cache."""
    (choice,) = lowered(SCATTERS["add"]).kernels[0].body
    assert isinstance(choice, If)
    assert show(choice.cond) == "(and (<= B 32768) (<= B (floordiv N 32)))"
    assert [type(s) for s in choice.otherwise] == [For]
    assert not copies(lowered("(scatter f32 h (B) ((i B)) add (i) true 1.0)"))                     # iterations that never meet
    assert not copies(lowered(SCATTERS["add"], THREADS.replace("opt 2", "opt 1")))
    assert copies(lowered(SCATTERS["of two axes"]))
    rows = "(for i 0 N 1 serial (for j 0 D 1 serial (incf (aref t (max 0 (min (- B 1) (aref k i))) j) (aref x i))))"
    columns = "(for j 0 D 1 serial (for i 0 N 1 serial (incf (aref t (max 0 (min (- B 1) (aref k i))) j) (aref x i))))"
    for body, is_cut in ((rows, True), (columns, False)):                                          # one column is one thread's
        assert bool(copies(lower(raise_op(resolve(read(f"(op T {PARAMS} {THREADS} (body {body}))")[0]))))) == is_cut


def test_a_large_target_has_no_copies() -> None:
    text = SCATTERS["add"].replace("(B)", "(40000)").replace("(- B 1)", "39999")
    program = lower(resolve(read(
        f"(tensor T (size N) (buffer k i64 (N) (0) in) (buffer x f32 (N) (0) in) (buffer h f32 (40000) (0) inout) {THREADS} (define v0 {text}) (output h v0))")[0]))
    assert not copies(program)


SPEC = '''[composite]
name = "Weights"
inputs = ["k{uint8}[N]", "x{float}[N]"]
outputs = ["h{float}[256]"]
[implementation]
code = """
(dotimes (b 256) (setf (aref h b) 1.0))
(dotimes (i N) (incf (aref h (aref k i)) (aref x i)))
"""
'''


def arguments(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.integers(0, 256, n).astype(np.uint8), rng.standard_normal(n).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 8191, 8192, 8200, 100003])
def test_a_histogram_on_threads(n: int, tool: Callable[[str], str]) -> None:
    tool("gcc")
    k, x = arguments(n)
    want = np.ones(256)
    np.add.at(want, k, x.astype(np.float64))
    np.testing.assert_allclose(caten.compile(SPEC, runtime="gcc", config={"OMP": "1"})(k, x), want, rtol=1e-4, atol=1e-4)


def on_threads(spec: str, arguments: str, count: str) -> str:
    """The bits of the results of a spec of this file, in a process with so many threads."""
    code = (f"import caten, hashlib, test_scatter_lowering as t; made = caten.compile({spec}, runtime='gcc', config={{'OMP': '1', 'OPT': '0'}})({arguments}); "
            "print([hashlib.sha256(a.tobytes()).hexdigest() for a in (made if isinstance(made, tuple) else (made,))])")
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=os.path.dirname(__file__),
                          env={**os.environ, "OMP_NUM_THREADS": count}).stdout


@pytest.mark.slow
@pytest.mark.nightly                      # by day with checks
def test_the_number_of_threads_changes_no_bit(tool: Callable[[str], str]) -> None:
    tool("gcc")
    assert on_threads("t.SPEC", "*t.arguments(50000)", "1") == on_threads("t.SPEC", "*t.arguments(50000)", "2")


# -- checks in the loop ------------------------------------------------------------------------------------------------
PARAMS = ("(size N) (size B) (size D) (buffer k i64 (N) (0) in) (buffer q i64 (N) (0) in) (buffer x f32 (N) (0) in) "
          "(buffer h f32 (B) (0) inout) (buffer t f32 (B D) (0 1) inout) (require (<= 1 B))")
CHECKED = {
    "one index": "(for i 0 N 1 serial (incf (aref h (aref k i)) (aref x i)))",
    "from the end": "(for i 0 N 1 serial (incf (aref h (where (< (aref k i) 0) (+ (aref k i) B) (aref k i))) (aref x i) max))",
    "under a condition": "(for i 0 N 1 serial (if (< 0.0 (aref x i)) ((incf (aref h (aref k i)) (aref x i)))))",
    "computed": "(for i 0 N 1 serial (incf (aref h (- (aref k i) (floordiv (aref k i) 100))) 1.0))",
    "two indices": "(for i 0 N 1 serial (incf (aref t (aref k i) (aref q i)) (aref x i)))",
    "rows": "(for i 0 N 1 serial (for j 0 D 1 serial (incf (aref t (aref k i) j) (aref x i))))",
    "with a gather": "(for i 0 N 1 serial (incf (aref h (aref k i)) (aref x (aref q i))))",
    "some loops": "(for i 0 (- N 1) 1 serial (for j 0 N 1 serial (if (< i j) ((incf (aref h (aref k (+ i 1))) (aref x j))))))",
}


def checked(body: str, facts: str = THREADS) -> tuple[OpProgram, LoopProgram]:
    op = add_checks(resolve(read(f"(op T {PARAMS} {facts} (body {body}))")[0]))
    program = raise_op(op)
    assert not any(isinstance(d.value, Nest) for d in program.definitions)
    assert program.checks
    made = lower(program)
    verifier.verify(made)
    return op, made


@pytest.mark.parametrize("name", CHECKED)
def test_checks_in_the_loop_find_what_loops_find(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In copies and in one loop: with an index outside at the first place, in the middle, at the last, or nowhere."""
    monkeypatch.setattr(scatter_lowering, "ITERATIONS", 1)
    (op, shared), (_, plain) = checked(CHECKED[name]), checked(CHECKED[name], ONE)
    assert copies(shared)
    assert not copies(plain)
    texts = {c.row: c.text for c in op.all(Check)}
    rng = np.random.default_rng(3)
    for n, b, d in ((0, 2, 3), (1, 2, 1), (5, 3, 2), (20, 4, 20), (37, 5, 6), *([(20, 4, 0)] if name == "rows" else [])):
        for bad in ((), (0,), (n // 2,), (n - 1,), (0, n - 1)):
            for value in (-b - 1, b + 40):
                values: dict[str, Any] = {"N": n, "B": b, "D": d, "k": rng.integers(0, min(n, b) or 1, n),
                                          "q": rng.integers(0, min(n, b, d) or 1, n),
                                          "x": np.round(9 * rng.standard_normal(n)).astype(np.float32),
                                          "h": np.ones(b, np.float32), "t": np.ones((b, d), np.float32)}
                if n:
                    values["k"][list(bad)] = value
                want, *found = [{a: np.copy(v) if isinstance(v, np.ndarray) else v for a, v in values.items()} for _ in range(3)]
                row = interpret.run(op, want)
                for program, own in zip((shared, plain), found, strict=True):
                    assert texts.get(interpret.run(program, own)) == texts.get(row)
                    if row == 0:
                        np.testing.assert_array_equal(own["h"], want["h"])
                        np.testing.assert_array_equal(own["t"], want["t"])


def drawn(rng: random.Random) -> str:
    """Loops that accumulate at indices, one after the other, under conditions, of what they gather or have accumulated before."""
    index = ["(aref k i)", "(aref q i)", "(- (aref k i) 1)", "(where (< (aref q i) 0) (+ (aref q i) B) (aref q i))", "(* (aref k i) (aref q i))", "i"]
    values = ["1.0", "(aref x i)", "(aref x (aref q i))", "(aref h (aref k i))", "(* (aref x i) (aref x (- (- N i) 1)))"]
    conds = ["", "(< 0.0 (aref x i))", "(< i D)", "(and (< 2 i) (< (aref k i) B))", "(< (aref x (aref k i)) 1.0)"]

    def loop(n: int) -> str:
        target = rng.choice([f"(aref h {rng.choice(index)})", f"(aref t {rng.choice(index[:5])} j)", f"(aref t {rng.choice(index[:5])} {rng.choice(index[:5])})"])
        value = rng.choice(values[:4 if "aref h" not in target else 3])
        stmt = f"(incf {target} {value} {rng.choice(['add', 'max', 'min'])})"
        cond = rng.choice(conds)
        stmt = f"(if {cond} ({stmt}))" if cond else stmt
        if " j)" in target:
            stmt = f"(for j 0 D 1 serial {stmt})"
        if rng.random() < 0.2:
            stmt = f"(for o 0 {rng.choice(['3', 'D'])} 1 serial {stmt})"
        text = f"(for i 0 {rng.choice(['N', 'N', '(- N 1)'])} 1 serial {stmt})"
        for name in "ijo":
            text = text.replace(f"(for {name} ", f"(for {name}_{n} ")
            text = re.sub(rf"(?<=[ (]){name}(?=[ )])", f"{name}_{n}", text)
        return text
    return " ".join(loop(n) for n in range(2, 2 + rng.choice((1, 1, 2, 3))))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(0, 60, 2), *[pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 60, 2)], 291, 406, 418, 493, 550, 616])
def test_drawn_scatters_are_the_loops_as_written(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter_lowering, "ITERATIONS", 1)
    body = drawn(random.Random(seed))
    op, one = [add_checks(resolve(read(f"(op T {PARAMS} {facts} (body {body}))")[0])) for facts in (THREADS, ONE)]
    programs = [lower(raise_op(op)), lower(raise_op(one))]
    for program in programs:
        verifier.verify(program)
    rng, failed = np.random.default_rng(seed), 0
    for n, b, d in ((0, 2, 3), (1, 1, 1), (6, 3, 3), (30, 7, 4), (30, 4, 0)):
        for least, most in ((0, 1), (0, min(b, d, n)), (-1, b + 1)):
            values: dict[str, Any] = {"N": n, "B": b, "D": d, "k": rng.integers(least, max(most, 1), n), "q": rng.integers(least, max(most, 1), n),
                                      "x": np.round(9 * rng.standard_normal(n)).astype(np.float32),
                                      "h": np.ones(b, np.float32), "t": np.ones((b, d), np.float32)}
            want, *found = [{a: np.copy(v) if isinstance(v, np.ndarray) else v for a, v in values.items()} for _ in range(3)]
            row = interpret.run(op, want)
            failed += row > 0
            for program, own in zip(programs, found, strict=True):
                assert (interpret.run(program, own) > 0) == (row > 0), body
                for name in ("h", "t") if row == 0 else ():
                    np.testing.assert_allclose(own[name], want[name], rtol=1e-5, atol=1e-3, err_msg=body)
    assert failed < 15


def test_where_the_checks_are() -> None:
    """In the loop that reads the indices, which are in bounds after it; not before, and in no reduction."""
    (loop,) = checked(CHECKED["two indices"], ONE)[1].kernels[0].body
    assert [type(s).__name__ for s in loop.body] == ["Let", "If", "Let", "If", "Incf"]
    assert not any(fn in show(loop) for fn in ("(min ", "(max "))
    (loop,) = checked(CHECKED["rows"], ONE)[1].kernels[0].body
    assert [type(s).__name__ for s in loop.body][-2:] == ["Let", "For"]
    assert isinstance(loop.body[0], If)
    assert isinstance(loop.body[0].then[0], Fail)


def test_an_index_that_is_gathered_stays_in_the_loop() -> None:
    program = raise_op(add_checks(resolve(read(
        f"(op T {PARAMS} {THREADS} (body (for i 0 N 1 serial (incf (aref h (aref q (aref k i))) 1.0))))")[0])))
    assert isinstance(program.definitions[-1].value, Nest)
    assert not program.checks


def test_a_check_in_other_loops_is_before_the_scatter() -> None:
    """A column of the target for each index: the index is read by the inner loop."""
    body = "(for j 0 D 1 serial (for i 0 N 1 serial (incf (aref t (aref k i) j) 1.0)))"
    _, made = checked(body, ONE)
    assert [type(s).__name__ for s in made.kernels[0].body] == ["Local", "Setf", "If", "If", "For"]
    assert "(min " in show(made.kernels[0].body[-1])


WHOLE = '''[composite]
name = "Rows"
inputs = ["T{float}[V D]", "K{int}[N]", "L{int}[N]", "G{float}[N D]", "W{double}[N]"]
outputs = ["T", "H{double}[50]", "M{float}[V 9]"]
[implementation]
lang = "python"
code = """
np.add.at(T, K, G)
H = np.bincount(L, weights=W, minlength=50)
M = np.zeros((V, 9), np.float32)
np.maximum.at(M, (K, L % 9), G[:, 0])
"""
'''


def whole(n: int, v: int = 7, d: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {"T": np.ones((v, d), np.float32), "K": rng.integers(-v, v, n), "L": rng.integers(0, 50, n),
            "G": rng.standard_normal((n, d)).astype(np.float32), "W": rng.standard_normal(n)}


@pytest.mark.slow
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("omp", ["0", "1"])
def test_scatters_with_checks_are_those_of_numpy(opt: int, omp: str, tool: Callable[[str], str]) -> None:
    tool("gcc")
    rows = caten.compile(WHOLE, runtime="gcc", opt=opt, config={"OMP": omp})
    for n in (0, 1, 100, 9000):
        given = whole(n)
        t, h, m = rows(**{name: array.copy() for name, array in given.items()})
        np.add.at(given["T"], given["K"], given["G"])
        np.testing.assert_allclose(t, given["T"], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(h, np.bincount(given["L"], given["W"], 50), rtol=1e-9, atol=1e-9)
        want = np.zeros((7, 9), np.float32)
        np.maximum.at(want, (given["K"], given["L"] % 9), given["G"][:, 0])
        np.testing.assert_array_equal(m, want)
        for name, value, said in (("K", 7, r"T: index 1 \(= \(aref K i\)\) is outside \[-V, V\)"), ("K", -8, r"T: index 1"), ("L", 50, r"outside \[0, 50\)"), ("L", -1, r"outside \[0, 50\)")):
            for at in {0, n // 2, n - 1} if n else ():
                given = whole(n)
                given[name][at] = value
                with pytest.raises(CatenError, match=said):
                    rows(**given)


def test_the_number_of_threads_changes_no_bit_of_checked_scatters(tool: Callable[[str], str]) -> None:
    tool("gcc")
    assert on_threads("t.WHOLE", "**t.whole(60000)", "1") == on_threads("t.WHOLE", "**t.whole(60000)", "2")


@pytest.mark.slow
@pytest.mark.parametrize("body", ["return Z + A.T @ B", "return A.T @ B + Z"])
def test_a_product_adds_to_what_a_scatter_has_made(body: str) -> None:
    """There is no array for the product, and many small terms are not added one by one to its large sum."""
    text = ('[composite]\nname = "Sums"\ninputs = ["K{u8}[N]", "G{f32}[N D]", "A{f32}[M 256]", "B{f32}[M D]"]\noutputs = ["Y{f32}[256 D]"]\n'
            f"[composite.implementation]\nlang = \"python\"\ncode = '''\nZ = np.zeros((256, D), np.float32)\nnp.add.at(Z, K, G)\n{body}\n'''\n")
    (op,) = loading.loaded([SpecText("sums.toml", text)], Options())
    values = driver.advance(op, "tensor", Options())
    assert isinstance(values, TensorProgram)
    assert not copies(lower(values, BLOCKS))
    index, g = np.full(1000, 3, np.uint8), np.ones((1000, 4), np.float32)
    a, b = np.full((1, 256), 4096, np.float32), np.full((1, 4), 4096, np.float32)
    for opt in (0, 2):
        made = caten.compile(text, opt=opt)(index, g, a, b)
        np.testing.assert_array_equal(made[2:4] - np.float32(2 ** 24), [[0] * 4, [1000] * 4])
