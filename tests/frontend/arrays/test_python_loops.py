"""Bodies in Python with loops over elements: what caten computes is what Python and numpy compute."""
from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
import pytest
from python_programs import PROGRAMS, PythonProgram

import caten
from caten import driver, loading
from caten.core.dtypes import DTYPES, SPELLINGS
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.values import Define

NAMES = {name: f"P{n}" for n, name in enumerate(PROGRAMS)}


def quoted(declared: str) -> str:
    return ", ".join([f'"{d.strip()}"' for d in declared.split(";")])


def spec(name: str, program: PythonProgram) -> str:
    return (f'[[composite]]\nname = "{name}"\ninputs = [{quoted(program.inputs)}]\noutputs = [{quoted(program.outputs)}]\n'
            f"[composite.implementation]\nlang = \"python\"\ncode = '''\n{program.code}\n'''\n")


def sizes_of(program: PythonProgram) -> dict[str, Any]:
    return {name: float(value) if "." in value else int(value) for name, value in (each.split("=") for each in program.sizes.split())}


def arrays_of(declared: str, sizes: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays; integers are small, and not negative."""
    rng, made = np.random.default_rng(seed), {}
    for each in declared.split(";"):
        name, dtype, shape = re.fullmatch(r"\s*(\w+)\{(\w+)\}\[(.*)\]", each).groups()          # type: ignore[union-attr]
        extents = [eval(re.sub(r"\(([-+]) (\w+) (\w+)\)", r"(\2\1\3)", e), {}, sizes) for e in re.findall(r"\([^)]*\)|\w+", shape)]
        kind = DTYPES[SPELLINGS[dtype]]
        if name in sizes:
            continue
        if name == "ptr":
            made[name] = np.array([0, 2, 2, 5])
        elif kind.kind in ("int", "uint"):
            made[name] = rng.integers(0, 4, extents).astype(kind.numpy)
        else:
            made[name] = rng.standard_normal(extents).astype(kind.numpy)
    return made


def by_python(program: PythonProgram, given: dict[str, np.ndarray], outputs: dict[str, np.ndarray], sizes: dict[str, Any]) -> list[np.ndarray]:
    """What Python makes of the code: its outputs."""
    wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a.copy() for n, a in (given | outputs).items()}
    names = [n.split("{")[0].strip() for n in program.outputs.split(";")]
    code = program.code if "return" in program.code.splitlines()[-1] else f"{program.code}\nreturn {', '.join(names)}"
    scope: dict[str, Any] = {"np": np}
    exec(f"def body({', '.join(dict.fromkeys([*wide, *sizes]))}):\n{textwrap.indent(code, '    ')}\n", scope)
    found = scope["body"](**wide, **sizes)
    return [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]


@pytest.fixture(scope="module", params=[("gcc", 0), pytest.param(("gcc", 2), marks=pytest.mark.nightly)], ids=["O0", "O2"])
def operators(request: pytest.FixtureRequest) -> Any:
    runtime, opt = request.param
    text = "\n".join([spec(NAMES[name], program) for name, program in PROGRAMS.items()])
    return caten.compile(text, runtime=runtime, opt=opt, config={"OPT": "0"})


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_python_computes(name: str, tool: Any, operators: Any) -> None:
    tool("gcc")
    program = PROGRAMS[name]
    sizes = sizes_of(program)
    given = arrays_of(program.inputs, sizes, seed=len(name))
    outputs = {n: np.zeros_like(a) for each in program.outputs.split(";") if "{" in each for n, a in arrays_of(each, sizes).items()}
    expected = by_python(program, given, outputs, sizes)
    scalars = {n: v for n, v in sizes.items() if re.search(rf"\b{n}\{{\w+\}}\[\]", program.inputs)}
    found = operators[NAMES[name]](**{n: a.copy() for n, a in given.items()}, **scalars)
    tolerance = 1e-2 if "half" in program.inputs else 2e-4
    for got, want in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "from_the_end"), [("variables that are never negative", False), ("a negative number from a function", True)])
def test_an_index_that_is_never_negative_is_not_asked_whether_it_is(name: str, from_the_end: bool) -> None:
    (op,) = loading.load_programs(SpecText("t.toml", spec("P", PROGRAMS[name])), Options())
    assert ("(where (<" in show(op)) == from_the_end


# code of a body over x and y -> the error: code, line, column, message
REFUSED = {
    "for i in range(N):\n    if x[i] > 1:\n        break\nelse:\n    return y": "E240 1:1 a loop that is left with 'break' has no 'return'",
    "for i in range(N):\n    y[i] = 1\n    return y * 2": "E240 1:1 a loop that elements decide to leave returns numbers only",
    "def f(v):\n    for d in (1, 2):\n        if v < d:\n            return -v\n    return v\nfor i in range(N):\n    y[i] = f(x[i])": "E240 3:9 one branch returns 1 value, and the other no value",
    "if x[0] > 0:\n    return x, z\nreturn x": "E240 1:1 one branch returns 2 values, and the other 1 value",
    "for i in range(N):\n    for d in (1, 2):\n        if x[i] > 0:\n            break\n    y[i] = 1": "E240 4:13 elements decide about this 'break'",
    "for i in range(N):\n    y[i] = 1\nz = y\ny = y * 2\nfor i in range(N):\n    y[i] += z[i]": "E245 4:1 'y' and 'z' share their elements",
    "for i in range(N):\n    y[i] = 1\nz = y[::-1]\ny = y * 2\nfor i in range(N):\n    y[i] += z[i]": "E245 4:1 'y' and 'z' share their elements",
    "p = x * 1\nq = x * 2\nfor i in range(N):\n    p[0] = 1\n    p = q\ny[...] = p": "E245 5:9 'p' and 'q' would share their elements",
    "p = x * 1\nfor i in range(N):\n    q = p + 1\n    p = q\n    p[0] = 5\n    p[1] += q[0]\ny[...] = p": "E245 4:9 'p' and 'q' would share their elements",
    "p = x * 1\nq = x * 1\nfor i in range(N):\n    q = p + 1\n    p = q\n    p[0] = 5\ny[...] = p + q": "E245 5:9 'p' and 'q' would share their elements",
    "p = x * 1\nq = x * 2\nfor i in range(N):\n    p[0] = 1\n    p, q = q, q\ny[...] = p": "E245 5:12 'p' and 'q' would share their elements",
    "parts = [x * 1]\nt = parts[0]\nparts[0] += 1\ny[...] = t": "E245 3:1 'parts' and 't' share their elements",
    "parts = [x * 1] * 2\nparts[0] += 1\ny[...] = parts[1]": "E245 2:1 'parts' has this array twice",
    "t = x * 1\nz = t\nfor i in range(3):\n    t = t * 2\n    t[0] = 1\nfor i in range(N):\n    y[i] = t[i] + z[i]": "E245 4:11 't' and 'z' share their elements",
    "while N > 0:\n    y[0] = 1\nfor i in range(N):\n    y[i] = 1": "E240 1:1 there is no 'while'",
    "for i in range(N):\n    y[i] = xx[i]": "E220 2:12 there is no 'xx' here",
    "for i in range(N):\n    y[i] = w\n    w = x[i]": "E220 2:12 there is no 'w' here",
    "for i in range(N):\n    t = x[i]\n    y[i] = t\ny[0] = t": "E220 4:8 't' may not be set here: it is assigned in a loop, which may have no iteration",
    "for i in range(N):\n    if x[i] > 0:\n        t = x[i]\n    y[i] = t": "E220 4:12 't' may not be set here: it is assigned in one branch of an 'if'",
    "for i in range(N):\n    x[i] = 1": "E225 2:5 'x' is an input and no output",
    "z = x[1:]\nfor i in range(N - 1):\n    z[i] = 1.0\ny[...] = x": "E225 3:5 'x' is an input and no output",
    "for i in range(N):\n    N = 3": "E226 2:5 'N' is a size",
    "for i in range(N):\n    y[i] += x[i]": "E227 2:7 this reads the output 'y'",
    "s = 0.0\nfor i in range(N):\n    s += x[i]": "E228 1:1 the output 'y' is never written",
    "for i, j in range(N):\n    y[i] = 1": "E229 1:5 the items of a range are numbers",
    "for i in range(0, N, 0):\n    y[i] = 1": "E231 1:1 the step of this loop is 0",
    "for i in range(N):\n    try:\n        y[i] = 1\n    except: pass": "E244 2:5 a body cannot use 'try'",
    "s = 0\nfor i in range(N):\n    s += x[i]\n    s += 1j * z[i]\ny[...] = s": "E310 5:10 'y' is float, but the value is complex128",
    "for i in range(N):\n    y[i] = x[x[i]]": "E306 2:14 an index is an integer",
    "for i in range(x[0]):\n    y[i] = 1": "E306 1:10 the end of the loop is a float",
    "for i in range(N):\n    y[i] = x[i, 0]": "E307 2:14 [N] has 1 axis, but 2 indices are given",
    "k = np.zeros(N, dtype=np.int64)\nfor i in range(N):\n    k[i] = z[i]\n    y[i] = k[i]": "E310 3:12 'k' is int64, but the value is double",
    "for i in range(N):\n    t = np.zeros(i * i)\n    y[i] = t.sum()": "E313 2:9 an array of",
    "for i in range(N):\n    y[i] = x": "E320 2:5 a value of the shape [N] does not fit into []",
    "t = x\nfor i in range(N):\n    t = t[1:]\ny[...] = t[0]": "E320 3:9 't', which is from before this loop, has the shape [N]",
    "for i in range(N):\n    y[i] = x[N]": "E323 2:14 the index N is outside axis 0 of [N]",
    "for i in range(N):\n    y[i] = x[i:i + 3].sum()": "E326 2:14 this needs (<= (+ i 3) N), which is not known to hold in every iteration",
    "for i in range(N):\n    if x[i] > 0:\n        f = lambda v: v\n    else:\n        f = lambda v: 2 * v\n    y[i] = f(x[i])": "E326 2:5 what 'f' is depends on a condition",
    "for i in range(N):\n    y[i] = np.unique(x)[i]": "E328 2:12 how many elements np.unique makes is not known",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals_have_a_place(code: str) -> None:
    text = spec("Op", PythonProgram("x{float}[N]; z{double}[N]", "y{float}[N]", "", code))
    with pytest.raises(CatenError) as caught:
        caten.compile(text, runtime="gcc")
    found = caught.value.diagnostics[0]
    assert found.place is not None
    assert f"{found.code} {found.place.line - 7}:{found.place.column} {found.message}".startswith(REFUSED[code])


def test_an_argument_has_the_place_of_its_use() -> None:
    text = spec("Op", PythonProgram("x{float}[N]; count{float}[]", "y{float}[N]", "", "for i in range(N):\n    y[i] = x[i] * 2.0 + x[count]"))
    with pytest.raises(CatenError, match=r"9:27: E306: an index is an integer, a slice"):
        caten.compile(text, runtime="gcc")


@pytest.mark.slow
def test_an_index_that_is_outside_fails_the_call(tool: Any) -> None:
    tool("gcc")
    run = caten.compile(spec("Op", PythonProgram("x{float}[N]; k{int}[N]", "y{float}[N]", "", "for i in range(N):\n    y[i] = x[k[i]]")), runtime="gcc")
    x = np.arange(4, dtype=np.float32)
    assert list(run(x, np.array([0, -1, -4, 3]))) == [0, 3, 0, 3]
    for bad in (4, -5):
        with pytest.raises(CatenError, match="outside"):
            run(x, np.array([0, bad, 0, 0]))


def values_of(text: str) -> list[str]:
    options = Options(runtime="gcc")
    (program,) = loading.load_programs(SpecText("t.toml", text, "toml"), options)
    return [str(d) for d in driver.advance(program, "tensor", options).all(Define)]


@pytest.mark.parametrize(("loops", "whole"), [
    ("for i in range(N):\n    y[i] = 0\n    for j in range(M):\n        y[i] += X[j, i]", "y = X.sum(axis=0)"),
    ("for i in range(N):\n    y[i] = np.exp(X[:, i]).max()", "y = np.exp(X).max(axis=0)"),
    ("for j in range(N):\n    total = 0.0\n    for row in X:\n        total += row[j] * 2\n    y[j] = total if total > 0 else 0.0", "s = (X * 2).sum(axis=0)\ny = np.where(s > 0, s, 0.0)"),
    ("c = X - X.mean(axis=0)\nfor i in range(N):\n    y[i] = (c[:, i] * c[:, i]).sum()", "c = X - X.mean(axis=0)\ny = (c * c).sum(axis=0)"),
])
def test_loops_are_the_values_of_whole_arrays(loops: str, whole: str) -> None:
    first, second = [values_of(spec("Op", PythonProgram("X{float}[M N]", "y{float}[N]", "", code))) for code in (loops, whole)]
    assert first == second


def test_nested_loops_with_constant_bounds_are_the_values_of_whole_arrays() -> None:
    """They are not written out, though each is short."""
    first, second = [values_of(spec("Op", PythonProgram("X{float}[5 6]", "Y{float}[5 6]", "", code))) for code in (
        "for i in range(5):\n    for j in range(6):\n        Y[i, j] = np.where(X[i, j] < 1.0, X[i, j], 0.25)", "Y = np.where(X < 1.0, X, 0.25)")]
    assert first == second


@pytest.mark.slow
def test_a_body_in_lisp_calls_one_in_python(tool: Any) -> None:
    tool("gcc")
    text = spec("Running", PythonProgram("x{float}[N]", "y{float}[N]", "", "s = 0.0\nfor i in range(N):\n    s += x[i]\n    y[i] = s"))
    text += ('[[composite]]\nname = "Twice"\ninputs = ["x{float}[N]"]\noutputs = ["y{float}[N]"]\n[composite.implementation]\n'
             'code = "(array t float (N)) (call Running x t) (call Running t y)"\n')
    text += spec("Also", PythonProgram("x{float}[N]", "y{float}[N]", "", "return Running(Running(x)) * 2"))
    made = caten.compile(text, runtime="gcc")
    x = np.arange(5, dtype=np.float32)
    assert np.allclose(made["Twice"](x), np.cumsum(np.cumsum(x)))
    assert np.allclose(made["Also"](x), 2 * np.cumsum(np.cumsum(x)))


@pytest.mark.slow
def test_conditions_of_a_call_may_be_joined_where_loops_unroll() -> None:
    code = """
rest = np.int64(N)
for p in range(2, 5):
    if rest % p == 0 and rest > 1:
        rest = rest // p
if 1 < rest < 4 or rest == 7:
    rest = rest * 100
return x * rest.astype(np.float32)"""
    factor = caten.compile(f"[composite]\nname = 'Factor'\ninputs = ['x{{float}}[N]']\noutputs = ['y{{float}}[N]']\n"
                           f"[composite.implementation]\nlang = 'python'\ncode = \'\'\'{code}\'\'\'\n")
    for n, rest in ((1, 1), (2, 1), (3, 1), (4, 200), (7, 700), (9, 300), (11, 11), (24, 1), (48, 200)):
        assert factor(np.ones(n, np.float32)).tolist() == [rest] * n
