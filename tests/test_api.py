"""caten from Python: compile, load, call."""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError
from caten.kernels.known_kernels import LOADED
from caten.runtime.call import Operators
from spec_texts import GEMM

SCALE = '''
[composite]
name = "Scale"
inputs  = ["X{double}[N]", "a{double}[]"]
outputs = ["Y{double}[N]"]

[implementation]
code = "(dotimes (i N) (setf (aref Y i) (* a (aref X i))))"
'''
TAKE = '''
[composite]
name = "Take"
inputs  = ["X{float}[N]", "I{int64}[M]"]
outputs = ["Y{float}[M]"]

[implementation]
code = "(dotimes (i M) (setf (aref Y i) (aref X (aref I i))))"
'''


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CC", "CFLAGS", "LDFLAGS", "CATEN_RUNTIME_PATH"):
        monkeypatch.delenv(name, raising=False)


def compiled(spec: Any, *args: Any, **options: Any) -> Any:
    return caten.compile(spec, *args, **{"runtime": "gcc", "opt": 0, **options})


def refused(code: str, text: str, call: Any) -> None:
    with pytest.raises(CatenError) as caught:
        call()
    assert [d.code for d in caught.value.diagnostics] == [code], caught.value
    assert text in str(caught.value)


def matrices() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    return tuple(rng.integers(-4, 5, s).astype(np.float32) for s in ((5, 4), (4, 3), (5, 3)))  # type: ignore[return-value]


@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 1, 2, 3])
def test_a_spec_is_compiled_and_called(opt: int) -> None:
    gemm = compiled(GEMM, opt=opt)
    a, b, c = matrices()
    want = a @ b + c
    assert gemm(a, b, c) is c
    np.testing.assert_array_equal(c, want)
    assert gemm.name == "Gemm"
    assert "C <- A @ B + C" in gemm.__doc__
    assert "int32_t ct_gemm(" in gemm.source
    assert gemm.schedule.startswith("(schedule")
    assert gemm.manifest["runtime"] == "gcc"
    assert gemm.signature == "Gemm(A{float}[M K]<0 1>(), B{float}[K N]<0 1>(), C{float}[M N]<0 1>()) -> C"


def test_a_file_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "scale.toml").write_text(SCALE)
    for name in (tmp_path / "scale.toml", str(tmp_path / "scale.toml")):
        np.testing.assert_array_equal(compiled(name)(np.arange(3.0), 2), [0, 2, 4])


def test_the_one_line_form_is_compiled() -> None:
    double = compiled("(composite Double ((X{float}[N]) -> (Y{float}[N])) (dotimes (i N) (setf (aref Y i) (+ (aref X i) (aref X i)))))")
    np.testing.assert_array_equal(double(np.arange(3, dtype=np.float32)), [0, 2, 4])


def test_several_specs_make_one_library() -> None:
    ops = compiled([GEMM, SCALE])
    assert isinstance(ops, Operators)
    assert list(ops) == ["Gemm", "Scale"]
    np.testing.assert_array_equal(ops.Scale(np.ones(2), a=3), [3, 3])
    assert "ct_gemm" in ops.Scale.source
    both = "".join([t.replace("[composite]", "[[composite]]").replace("[implementation]", "[composite.implementation]") for t in (GEMM, SCALE)])
    assert list(compiled(both)) == ["Gemm", "Scale"]
    assert compiled(both, only=["Scale"]).name == "Scale"


def test_a_list_of_specs_makes_a_library_even_of_one_operator(tmp_path: Path) -> None:
    ops = caten.compile([SCALE], "gcc", opt=0)
    assert isinstance(ops, caten.Operators)
    assert (list(ops), ops.Scale.name, ops.manifest["op"]) == (["Scale"], "Scale", "Scale")
    assert isinstance(caten.compile(SCALE, "gcc", opt=0), caten.Operator)
    [library] = (tmp_path / "cache").glob("*/*.so")
    np.testing.assert_array_equal(caten.load_library(library).Scale(np.ones(2), 3), [3, 3])


def test_an_operator_describes_its_arguments() -> None:
    shift = compiled("(composite Shift ((x{float}[N 3]<1 0>, by{int}[]) -> (y{float}[M](where M = N - by))) (dotimes (i M) (setf (aref y i) (aref x i 0))))")
    assert shift.arguments == (caten.Argument("x", "tensor", "float32", ("N", 3), (1, 0), "in"), caten.Argument("by", "scalar", "int64", (), (), "in"),
                               caten.Argument("y", "tensor", "float32", ("M",), (0,), "out"))
    assert (shift.outputs, shift.sizes) == (("y",), ("N", "M"))


def test_sizes_are_fixed() -> None:
    gemm = compiled(GEMM, sizes={"K": np.int64(4)})
    a, b, c = matrices()
    np.testing.assert_array_equal(gemm(a, b, c.copy()), a @ b + c)
    refused("E705", "the size K is 4 as compiled, and 3 by axis 1 of A", lambda: gemm(a[:, :3].copy(), b[:3], c))


def test_strided_arrays() -> None:
    scale = compiled(GEMM, strided=["A"])
    a, b, c = matrices()
    np.testing.assert_array_equal(scale(a[:, 1:3], b[:2], c.copy()), a[:, 1:3] @ b[:2] + c)


def test_without_reassociation_a_sum_has_the_bits_of_the_nest_as_written() -> None:
    code = "(dotimes (i M) (set s 0.0) (dotimes (j N) {step}) (setf (aref Y i) s))"
    x = np.random.default_rng(1).standard_normal((9, 1999), dtype=np.float32)
    for step in ("(incf s (aref X i j))", "(set s (+ (aref X i j) s))"):
        spec = f"(composite Sum ((X{{float}}[M N]) -> (Y{{float}}[M])) {code.replace('{step}', step)})"
        written = caten.compile(spec, opt=0)(x)
        np.testing.assert_array_equal(caten.compile(spec, reassociate=False)(x), written)
        assert (caten.compile(spec)(x) != written).any()


def test_accesses_are_checked() -> None:
    take = compiled(TAKE)
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(take(x, np.array([4, 0])), [4, 0])
    refused("E711", "Take: ", lambda: take(x, np.array([1, 5])))
    refused("E711", "Take: ", lambda: take(x, np.array([-1])))
    assert len(compiled(TAKE, bounds_check=False).manifest["checks"]) < len(take.manifest["checks"])


@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize(("loop", "k", "runs"), [
    ("(i 5 10 (aref k 0))", 2**63 - 4, 0), ("(i 5 10 (aref k 0))", 2**61, 1), ("(i 10 5 (aref k 0))", -2**63, 0), ("(i 10 5 (aref k 0))", -1, 5),
    ("(i (aref k 0) 7 4)", -2**63, 0), ("(i 0 (aref k 0) 3)", 2**63 - 1, 0), ("(i 0 (aref k 0) 3)", 7, 3)])
def test_a_loop_that_would_pass_the_greatest_integer_is_refused(loop: str, k: int, runs: int, opt: int) -> None:
    """Its variable would wrap: it would never end, or leave the array."""
    spec = f"(composite Loop ((k{{int64}}[1], x{{int}}[20]) -> (x)) (loop {loop} (incf (aref x (mod i 20)))))"
    kernel = compiled(spec, opt=opt)
    x = np.zeros(20, np.int64)
    if runs:
        assert kernel(k=np.array([k]), x=x).sum() == runs
    else:
        refused("E711", "outside [-2^61, 2^61]", lambda: kernel(k=np.array([k]), x=x))


@pytest.mark.parametrize("spec", [
    "(composite K ((B{float}[N], C{float}[N], k{int}[N]) -> (C)) (dotimes (i N) (incf (aref C (mod (mod (aref k i) 4) N)) (aref B 3))))",
    """(composite K ((A{int8}[N M], C{int8}[M], kk{int64}[K], q{int}[]) -> (C))
       (loop (i 1 (min (aref kk 2) 12)) (incf (aref C (mod (floordiv i 4) M)) (aref A (mod q N) 0))))"""])
def test_indices_of_what_was_loaded_are_seen_to_be_inside(spec: str) -> None:
    for opt in (1, 2):
        compiled(spec, opt=opt, verify=True)


@pytest.mark.parametrize("runtime", ["clang", "numpy"])
@pytest.mark.parametrize("opt", [0, 2])
def test_an_index_wraps_as_every_integer_does_and_what_comes_of_it_is_checked(opt: int, runtime: str) -> None:
    gather = caten.compile("(composite Even ((x{float}[N], k{int}[M]) -> (y{float}[M])) (dotimes (i M) (setf (aref y i) (aref x (* 2 (aref k i))))))",
                           runtime, opt=opt)
    x = np.arange(10, dtype=np.float32)
    assert gather(x, np.array([4, -1 << 63])).tolist() == [8, 0]
    for outside in (5, -1, 1 << 62, (1 << 63) - 1):
        with pytest.raises(CatenError, match="outside"):
            gather(x, np.array([outside]))


def test_the_second_compilation_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(SCALE)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a process was started")
    for where, what in ((subprocess, "Popen"), (os, "fork"), (os, "posix_spawn")):
        monkeypatch.setattr(where, what, refuse)
    np.testing.assert_array_equal(compiled(SCALE)(np.ones(2), 3), [3, 3])
    with pytest.raises(AssertionError):
        compiled(SCALE, cache=False)


def test_a_damaged_cache_is_repaired(tmp_path: Path) -> None:
    compiled(SCALE)
    [library] = (tmp_path / "cache").glob("*/*.so")
    torn = library.read_bytes()[:1000]
    library.unlink()                                         # cutting a file that this process has loaded would kill it
    library.write_bytes(torn)
    LOADED.clear()                                           # as in a process that has not loaded it
    with pytest.warns(caten.CatenWarning, match="E651") as told:
        scale = compiled(SCALE)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(scale(np.ones(2), 3), [3, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(SCALE)


def test_a_cache_that_is_not_trusted_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.warns(caten.CatenWarning, match="E650.*others may write"):
        scale = compiled(SCALE)
    np.testing.assert_array_equal(scale(np.ones(2), 3), [3, 3])


def test_a_library_is_loaded(tmp_path: Path) -> None:
    compiled(SCALE)
    [library] = (tmp_path / "cache").glob("*/*.so")
    (tmp_path / "scale.so").write_bytes(library.read_bytes())
    scale = caten.load(tmp_path / "scale.so")
    np.testing.assert_array_equal(scale(np.ones(2), 3), [3, 3])
    assert scale.source == ""
    assert list(caten.load_library(tmp_path / "scale.so")) == ["Scale"]
    (tmp_path / "scale.c").write_text("int x;")
    assert caten.load(str(tmp_path / "scale.so")).source == "int x;"
    (tmp_path / "torn.so").write_bytes(library.read_bytes()[:-1])
    refused("E660", "incomplete", lambda: caten.load(tmp_path / "torn.so"))
    refused("E661", "No such file", lambda: caten.load(tmp_path / "nowhere.so"))
    refused("E668", "load: path is '', a str; it takes the file of a library", lambda: caten.load(""))


def test_wrong_options_are_refused() -> None:
    refused("E668", "opt is 9, an int; it takes 0, 1, 2 or 3", lambda: compiled(SCALE, opt=9))
    refused("E668", "sizes['N'] is -1, an int; it takes an integer from 0 to 2^40", lambda: compiled(SCALE, sizes={"N": -1}))
    refused("E668", "sizes['N'] is 1.5, a float", lambda: compiled(SCALE, sizes={"N": 1.5}))
    refused("E921", "no size called 'Q'", lambda: compiled(SCALE, sizes={"Q": 1}))
    refused("E602", "nowhere", lambda: compiled(SCALE, runtime="nowhere"))
    refused("E600", "MARSH", lambda: compiled(SCALE, config={"MARSH": "native"}))
    refused("E001", "nowhere.toml", lambda: compiled("nowhere.toml"))


class Hostile:
    """What fails in every way."""

    def __repr__(self) -> str:
        raise ZeroDivisionError

    def __index__(self) -> int:
        raise ZeroDivisionError


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"spec.toml"


NOTHING_TAKES = (0, 1, -1, 2.5, float("nan"), b"spec.toml", bytearray(b"x"), object(), object, Hostile(), BytesPath(), {1}, (n for n in "ab"), range(3),
                 np.zeros(3), np.float32(2), 1j, len, ..., {"a": 1}, {3: 4}, ["a"], [0], "", "\x1b[2J", [b"x"], ("a",), [None], [[]], None, True, "x", 10**5000)
# Parameter -> what it takes, as the message says, and which of the values above.
TAKES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "spec": ("it takes the file of a spec", (["a"], "\x1b[2J", ("a",), "x")),
    "runtime": ("it takes the name of a runtime", ("\x1b[2J", "x")),
    "config": ("it takes a dict of options by key", ({"a": 1}, None)),
    "opt": ("it takes 0, 1, 2 or 3", (0, 1)),
    "sizes": ("it takes a dict of sizes by name", ({"a": 1}, None)),
    "strided": ("it takes a", (["a"], ("a",))),
    "bounds_check": ("it takes True or False", (True,)),
    "reassociate": ("it takes True or False", (True,)),
    "rewrite": ("it takes True or False", (True,)),
    "only": ("it takes a", (["a"], ("a",))),
    "schedule": ("it takes a text", ("\x1b[2J", "x", None)),
    "include_dirs": ("it takes a", (["a"], ("a",))),
    "cache": ("it takes True or False", (True,)),
    "verify": ("it takes True or False", (True,)),
}


def taken(value: Any, of: tuple[Any, ...]) -> bool:
    return any(type(value) is type(one) and value == one for one in of)


@pytest.mark.parametrize("parameter", TAKES)
def test_every_parameter_says_what_it_takes(parameter: str) -> None:
    takes, right = TAKES[parameter]
    for value in NOTHING_TAKES:
        with pytest.raises(CatenError) as caught:
            caten.compile(**{"spec": "nowhere.toml", parameter: value})  # type: ignore[arg-type]
        said = caught.value.diagnostics[0]
        if taken(value, right):
            assert said.code in ("E001", "E602"), (value, said)
        else:
            assert said.code == "E668", (type(value), said)
            assert said.message.startswith(f"caten.compile: {parameter}"), said.message
            assert takes in said.message, said.message
            assert len(said.message) < 250
            assert said.message.isprintable()
            assert caught.value.exit_code == 2


def test_the_table_has_every_parameter() -> None:
    import inspect
    assert list(TAKES) == list(inspect.signature(caten.compile).parameters)
    assert list(inspect.signature(caten.load).parameters) == ["path"]
    assert list(inspect.signature(caten.load_library).parameters) == ["path"]
    assert set(dir(caten)) >= set(caten.__all__)
    for parameter in TAKES:
        assert f"`{parameter}" in str(caten.compile.__doc__)


@pytest.mark.parametrize("value", [v for v in NOTHING_TAKES if not isinstance(v, str) or not v], ids=lambda v: type(v).__name__)
def test_load_takes_a_file(value: Any) -> None:
    refused("E668", "caten.load: path is ", lambda: caten.load(value))


def test_what_is_inside_an_option_is_looked_at() -> None:
    refused("E668", "config['OMP'] is <object", lambda: compiled(SCALE, config={"OMP": object()}))
    refused("E668", "config['OMP'] is 1.5, a float; it takes a text", lambda: compiled(SCALE, config={"OMP": 1.5}))
    refused("E668", "sizes['N'] is True", lambda: compiled(SCALE, sizes={"N": True}))
    refused("E668", "sizes['N'] is 1099511627777, an int", lambda: compiled(SCALE, sizes={"N": (1 << 40) + 1}))
    refused("E668", "strided[1] is 3, an int; it takes a text", lambda: compiled(SCALE, strided=["X", 3]))
    refused("E668", "spec[1] is 0, an int", lambda: compiled([SCALE, 0]))
    refused("E668", "spec is [], a list", lambda: compiled([]))
    refused("E668", "spec is '-', a str", lambda: compiled("-"))
    refused("E668", "path is 'a\\x00b', a str", lambda: caten.load("a\0b"))
    refused("E001", "nowhere", lambda: compiled(Path("nowhere.toml")))
    assert compiled(SCALE, opt=np.int64(0), sizes={"N": np.int8(4)}, config={"OPT": np.int32(1)}, include_dirs=(Path(),)).name == "Scale"


def test_calls_refuse_what_they_do_not_take() -> None:
    scale = compiled(SCALE)
    x = np.ones(3)
    refused("E700", "has no argument b", lambda: scale(x, 2.0, b=1))
    refused("E700", "takes 3 arguments, X, a, Y; 4 were given", lambda: scale(x, 2.0, x.copy(), 3))
    refused("E701", "Y must be an array", lambda: scale(x, 2.0, 3))
    refused("E700", "a was given twice", lambda: scale(x, 2.0, a=2))
    refused("E700", "a missing", lambda: scale(x))
    refused("E700", "has no argument b", lambda: scale.bind(x, 2.0, b=1))
    refused("E713", "out= takes 1 array,", lambda: scale(x, 2.0, out=(x, x)))
    for call in (scale, scale.bind):
        for wrong in ("x", b"x", None, object(), {}, [[1], [2, 3]], 10**5000, len):
            for arguments in ({"X": wrong, "a": 2.0}, {"X": x, "a": wrong}, {"X": x, "a": 2.0, "out": wrong}, {"X": x, "a": 2.0, "N": wrong}):
                if "out" not in arguments or (wrong is not None and wrong != {}):       # no output is given
                    with pytest.raises(CatenError):
                        call(**arguments)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "complex64", "half", "float", "int4"])
def test_numbers_that_nobody_spells_are_refused(dtype: str) -> None:
    filled = compiled(f"(composite Filled ((a{{{dtype}}}[]) -> (Y{{{dtype}}}[N])) (dotimes (i N) (setf (aref Y i) a)))")
    for number in (10**5000, -10**5000):
        with pytest.raises(CatenError):
            filled(number, N=3)
        with pytest.raises(CatenError, match=r"N is about -?10\^5000"):
            filled(False if dtype == "bool" else 0, N=number)


def test_a_message_has_its_place_and_what_to_do() -> None:
    with pytest.raises(CatenError) as caught:
        compiled(SCALE.replace("(aref X i)", "(aref X i i)"))
    line = 'code = "(dotimes (i N) (setf (aref Y i) (* a (aref X i i))))"'
    assert str(caught.value) == "\n".join([
        "<string>:8:46: E307: 'X' has 1 axis, [N], but 2 indices are given", f"    8 | {line}", "      | " + " " * 45 + "^",
        "  hint: write one index for each axis, separated by spaces: (aref X i)"])


def test_a_traceback_has_the_users_lines_and_one_of_ours() -> None:
    def frames(call: Any) -> list[str]:
        with pytest.raises(CatenError) as caught:
            call()
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        found = [str(frame.path) for frame in caught.traceback]
        return [name for name in found if str(Path(caten.__file__).parent) in name]
    scale, take = compiled(SCALE), compiled(TAKE)
    x, one = np.ones(3), np.ones(1, np.float32)
    for call in (lambda: caten.compile("nowhere.toml"), lambda: caten.compile(SCALE.replace("aref X i", "aref X i i")), lambda: caten.compile(SCALE, opt=7),
                 lambda: caten.load("nowhere.so"), lambda: caten.load_library("nowhere.so"), lambda: scale.bind(x), lambda: scale(x),
                 lambda: take(one, np.array([7]))):
        assert len(frames(call)) == 1
    scale(x, 2.0)
    take(one, np.array([0]))
    for call in (lambda: scale(x), lambda: scale(x, 2.0, out=x[:2]), lambda: take(one, np.array([7]))):       # from the second call on
        assert len(frames(call)) == 1


def test_a_spec_is_checked(tmp_path: Path) -> None:
    scale, take = caten.check([SCALE, TAKE], "gcc")
    assert (scale.name, scale.in_loops) == ("Scale", {})
    assert (take.name, len(take.in_loops)) == ("Take", 1)
    assert not list((tmp_path / "cache").glob("*/*.so"))
    with pytest.raises(CatenError) as caught:
        caten.check([SCALE.replace("aref X i", "aref X i i"), TAKE.replace("aref I i", "aref I")], "gcc")
    assert len(caught.value.diagnostics) == 2
    refused("E668", "caten.check: opt is 9", lambda: caten.check(SCALE, opt=9))


def test_an_error_can_be_pickled() -> None:
    with pytest.raises(CatenError) as caught:
        compiled(SCALE, opt=9)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.diagnostics) == (type(caught.value), str(caught.value), caught.value.diagnostics)


def test_a_condition_with_a_number_of_the_call_gives_a_size() -> None:
    shift = compiled("(composite Shift ((x{float}[N], by{int}[]) -> (y{float}[M](where M = N - by))) (dotimes (i M) (setf (aref y i) (aref x i))))")
    x = np.arange(5, dtype=np.float32)
    assert [shift(x, by).tolist() for by in (1, 3, 3, 1)] == [[0, 1, 2, 3], [0, 1], [0, 1], [0, 1, 2, 3]]
    refused("E710", "the size M is -1", lambda: shift(x, 6))


def test_the_second_argument_is_the_runtime() -> None:
    assert caten.compile(SCALE, "gcc", {"OPT": 1}, 0).manifest["runtime"] == "gcc"


def test_kinds_of_errors() -> None:
    for kind, call in ((caten.UsageError, lambda: caten.compile(SCALE, opt=9)),
                       (caten.NothingMatched, lambda: caten.test(SCALE, only=["nothing"]))):
        with pytest.raises(kind) as caught:
            call()
        assert isinstance(caught.value, caten.CatenError)
    assert issubclass(caten.OutOfMemory, MemoryError)
    assert issubclass(caten.ToolError, caten.CatenError)


def test_import_is_light() -> None:
    code = "import sys, caten; bad = {'numpy', 'cffi', 'islpy', 'click'} & set(sys.modules); assert not bad, bad; caten.compile; caten.CatenError; dir(caten)\n" \
           "bad = {'numpy', 'cffi', 'islpy', 'click'} & set(sys.modules); assert not bad, bad\ncaten.nothing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("AttributeError: module 'caten' has no attribute 'nothing'\n")


@pytest.mark.slice(2)
@pytest.mark.parametrize(("narrow", "wide"), [("bfloat16", "float"), ("half", "double"), ("int32", "int64"), ("uint8", "int32"), ("int16", "int64")])
def test_what_is_left_of_a_row_stays_in_the_row(narrow: str, wide: str) -> None:
    """With AVX-512, clang 22 stores two lanes where it sees that a vector was narrowed and one lane of it is to be stored."""
    rows = f"(loop (i 3 -1 -1) (dotimes (j 17) (setf (aref C i j) (cast {narrow} (+ (aref A i j) 1)))))"
    narrowed = caten.compile(f"(composite Narrowed ((A{{{wide}}}[4 17]) -> (C{{{narrow}}}[4 17])) {rows})", config={"MARCH": "native"})
    a = np.arange(68).reshape(4, 17).astype({"float": np.float32, "double": np.float64}.get(wide, wide))
    assert (narrowed(a).astype(np.float64) == a + 1).all()
