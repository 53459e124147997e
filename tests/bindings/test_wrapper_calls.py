"""The written wrapper treats arguments as caten does: the same results, copies, new outputs and error texts."""
from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from caten.bindings.wrapper_support import support
from caten.core import size_formula

SPECS = """
(composite Scale ((a{float}[], x{float}[N](where N > 0)) -> (y{float}[N])) (dotimes (i N) (setf (aref y i) (* a (aref x i)))))
(composite Add ((X{float}[M N]) -> (X, Y{float}[M N]<1 0>, s{double}[]))
  (setf s 0) (dotimes (i M) (dotimes (j N) (incf (aref X i j) 1) (setf (aref Y i j) (aref X i j)) (incf s (cast double (aref X i j))))))
(composite Pairs ((X{int}[(* 2 N) (+ N K)], c{int}[]) -> (Y{int}[N K])) (dotimes (i N) (dotimes (j K) (setf (aref Y i j) (+ c (aref X i j))))))
(composite Fill ((v{int8}[], b{bool}[], z{complex64}[], h{half}[]) -> (X{int8}[N], B2{bool}[N], Z2{complex64}[N], H2{half}[N]))
  (dotimes (i N) (setf (aref X i) v) (setf (aref B2 i) b) (setf (aref Z2 i) z) (setf (aref H2 i) h)))
(composite max ((X{float}[N], sum{float}[N]) -> (out{float}[N])) (dotimes (i N) (setf (aref out i) (+ (aref X i) (aref sum i)))))
"""

# Every call is made by both; `ops` has the operators.
CALLS = r"""
ops.Scale(2.0, x)
ops.Scale(a=2.0, x=x)
ops.Scale(2, np.arange(8, dtype="f4")[::2])
ops.Scale(2, np.arange(4, dtype="f4")[::-1])
ops.Scale(2, frozen(x))
ops.Scale(2, memoryview(x))
ops.Scale(2, unaligned(x))
ops.Scale(np.float32(2), x, y)
ops.Scale(2, x, y=y), y
ops.Scale(2, x, out=y), y
ops.Scale(2, x, out=(y,))
ops.Scale(2, x, out={"y": y})
ops.Scale(2, x, out=(None,))
ops.Scale(2, x, out={})
ops.Scale(2, x, x), x
(lambda m: (ops.Scale(2, m[:4], m[2:6]), m))(np.arange(6, dtype="f4"))
(lambda m: (ops.Scale(2, x, m[::2]), m))(np.zeros(8, "f4"))
(lambda m: (ops.Scale(2, x, m[::-1]), m))(np.zeros(4, "f4"))
ops.Scale(2, x, N=4)
ops.Scale(2, x, N=5)
ops.Scale(2, x, N=-1)
ops.Scale(2, x, N=1.5)
ops.Scale(2, x, y, out=y)
ops.Scale(2, x, out=(y, y))
ops.Scale(2, x, out={"x": y})
ops.Scale(2, x, out={"Y": y})
ops.Scale(2, x, Y=y)
ops.Scale(2, x, z=None)
ops.Scale(2, x[:0])
ops.Scale("2", x)
ops.Scale(1e300, x)
ops.Scale([2], x)
ops.Scale(np.ones(3), x)
ops.Scale(2, None)
ops.Scale(2, [1, 2])
ops.Scale(2, x.astype("f8"))
ops.Scale(2, x.astype(">f4"))
ops.Scale(2, x.reshape(2, 2))
ops.Scale(2, np.ma.masked_array(x))
ops.Scale(2, x, np.ma.masked_array(x))
ops.Scale(2, x, y[:3])
ops.Scale(2, x, frozen(y))
ops.Scale(2, x, np.broadcast_to(y[:1], 4))
ops.Scale(2, x, np.lib.stride_tricks.as_strided(y, (4,), (0,)))
ops.Add(X), X
ops.Add(X[:, ::2]), X
ops.Add(X.T), X
ops.Add(X, np.zeros((2, 4), "f4"))
ops.Add(X, out=(np.zeros((2, 4), "f4", "F"), None))
ops.Add(X, X)
ops.Add(X, out={"s": np.zeros(())})
ops.Add(X, s=np.zeros((1,)))
ops.Add(frozen(X))
ops.Pairs(np.arange(20).reshape(4, 5), 3)
ops.Pairs(np.arange(20).reshape(5, 4), 3)
ops.Pairs(np.arange(8).reshape(8, 1), 3)
ops.Pairs(np.arange(20).reshape(4, 5), 3, K=2)
ops.Pairs(np.arange(20).reshape(4, 5), 1 << 70)
ops.Fill(1, True, 1j, 0.5, N=3)
ops.Fill(1, True, 1j, 0.5, np.zeros(3, "i1"))
ops.Fill(1, True, 1j, 0.5, N=3, out=(None, None, np.zeros(3, "c8"), None))
ops.Fill(1, True, 1j, 0.5)
ops.Fill(1, True, 1j, 0.5, N=1 << 41)
ops.Fill(1, True, 1j, 0.5, N=1 << 40)
ops.Fill(128, True, 1j, 0.5, N=3)
ops.Fill(1.0, True, 1j, 0.5, N=3)
ops.Fill(1, 1, 1j, 0.5, N=3)
ops.Fill(1, True, "1", 0.5, N=3)
ops.Fill(1, True, 1j, 1e6, N=3)
ops.Fill(np.array(1, "i1"), np.True_, np.array(1j), np.float16(0.5), N=2)
add(x, x)
add(x, x, out=y), y
add(x, x, out=(y,)), y
add(X=x, sum=x, out={"out": y})
add(x, x, y)
"""

ARRAYS = """
import json, sys
import numpy as np

def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array

def unaligned(array):
    memory = np.zeros(array.nbytes + 1, "u1")[1:]
    memory[:] = array.view("u1")
    return memory.view(array.dtype)

def shown(value):
    if isinstance(value, tuple):
        return [shown(v) for v in value]
    return [str(value.dtype), value.shape, value.strides, str(value.tolist())] if isinstance(value, np.ndarray) else repr(value)

def results(ops, add, calls):
    for call in calls.strip().splitlines():
        x, y = np.arange(4, dtype="f4"), np.zeros(4, "f4")
        given = {"ops": ops, "add": add, "np": np, "frozen": frozen, "unaligned": unaligned,
                 "x": x, "y": y, "X": np.arange(8, dtype="f4").reshape(2, 4)}
        try:
            yield [call, shown(eval(call, given))]
        except Exception as problem:
            yield [call, str(problem)]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrapper")
    (folder / "ops.lisp").write_text(SPECS)
    (folder / "calls.txt").write_text(CALLS)
    subprocess.run([sys.executable, "-m", "caten", "ops.lisp", "-O0", "-fstrided=X", "--emit=so,python", "-o", "ops.so"], cwd=folder, check=True)
    return folder


def run(folder: Path, imports: str, add: str, *options: str) -> dict[str, object]:
    code = (f"import sys; sys.path.insert(0, '.')\n{ARRAYS}\n{imports}\n"
            f"print(json.dumps([list(results(ops, {add}, open('calls.txt').read())), sys.modules.get('caten') is not None]))")
    done = subprocess.run([sys.executable, *options, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, has_caten = json.loads(done.stdout)
    assert has_caten == (not options)
    return dict(found)


def test_a_wrapper_answers_every_call_as_caten_does(folder: Path) -> None:
    ours = run(folder, "import caten; ops = caten.load_library('ops.so')", "ops['max']")
    wrapped = run(folder, "sys.modules['caten'] = None          # cannot be imported\nimport ops_numpy as ops", "ops.max_", "-I")
    assert len(ours) == len(CALLS.strip().splitlines())
    different = {call: (ours[call], wrapped[call]) for call in ours if ours[call] != wrapped[call]}
    assert different == {}


def test_missing_and_surplus_arguments_are_those_of_a_python_function(folder: Path) -> None:
    code = ("import inspect, pickle, ops_numpy as ops\nimport numpy as np\nx = np.ones(2, 'f4')\n"
            "for call in (lambda: ops.Scale(2), lambda: ops.Scale(2, x, x, x)):\n"
            "    try: call()\n    except TypeError as problem: print(problem)\n"
            "print(inspect.signature(ops.Fill), inspect.signature(ops.max_), pickle.loads(pickle.dumps(ops.Scale)) is ops.Scale)\n"
            "try: ops.Scale(2, x[:0])\nexcept ValueError as problem: print(repr(pickle.loads(pickle.dumps(problem))) == repr(problem))")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "Scale() missing 1 required positional argument: 'x'",
        "Scale() takes from 2 to 3 positional arguments but 4 were given",
        "(v, b, z, h, X=None, B2=None, Z2=None, H2=None, *, N=None, **_named) (X, sum, out=None, **_named) True", "True"], done.stderr


@pytest.mark.parametrize("text", [
    "(* 2 M)", "(+ M (- N 1))", "(floordiv (- 0 M) N)", "(mod (- 0 M) N)", "(floordiv M Z)", "(truncdiv (- 0 M) N)",
    "(max M N)", "(min M (neg N))", "(where (< M N) 1 2)", "(and (< 0 M) (not (= M N)))", "(or (<= M N) (/= M N))",
    "(cast i64 (abs (neg M)))", "(>= M 7)", "(> M 7:i32)", "5", "true"])
def test_formulas_in_a_wrapper_mean_what_they_mean_in_caten(text: str) -> None:
    scope: dict[str, Any] = {"re": re, "Any": Any, "Mapping": Mapping, "cache": cache}
    exec(support().partition("\n\n\ndef did_you_mean")[0], scope)
    sizes = {"M": 7, "N": 3, "Z": 0}
    assert scope["evaluate"](scope["formula"](text), sizes) == size_formula.evaluate(size_formula.formula(text), sizes)
    if "cast" not in text and ":" not in text and text != "true":
        assert str(scope["spell"](scope["formula"](text))) == text
