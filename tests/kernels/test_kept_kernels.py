"""Kernels that were built before, found under other names, by this process and by others."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten import compiler, driver, loading
from caten.api import CatenWarning, read
from caten.core.program import Buffer, Case, Reference
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend import structure
from caten.frontend.op import OpProgram
from caten.kernels import kernel_key as keys
from caten.kernels import known_build, known_kernels
from caten.kernels.known_kernels import LOADED, Loaded
from caten.loop.statements import Incf
from caten.options import Options
from caten.runtime import own_code
from caten.runtime.library_cache import Cache
from caten.testing import data
from renamed import other_names, renamed
from spec_texts import AXPY, GEMM

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
PRODUCT = '''[composite]
documentation = "a product of matrices"
name = "Product"
inputs = ["left{float}[rows inner]", "right{float}[inner columns]", "sum{float}[rows columns]"]
outputs = ["sum"]
[implementation]
code = """
(dotimes (y rows)
  (dotimes (x columns)
    (dotimes (k inner)
      (incf (aref sum y x) (* (aref left y k) (aref right k x))))))
"""
'''
GATHER = "(composite Gather ((X{float}[N], I{int64}[M]) -> (Y{float}[M])) (dotimes (i M) (setf (aref Y i) (aref X (aref I i)))))"
SUMS = """[composite]
name = "Sums"
inputs = ["X{float}[M N]"]
outputs = ["Y{float}[M]"]
[implementation]
lang = "python"
code = "Y[:] = X.sum(axis=1)"
"""
PICK = "(composite Pick ((from{float}[all], which{int64}[n]) -> (to{float}[n]))\n (dotimes (e n) (setf (aref to e) (aref from (aref which e)))))"


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of its own, and nothing loaded."""
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    LOADED.clear()
    yield
    LOADED.clear()


@pytest.fixture
def makes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operators that were scheduled, as they are."""
    found: list[str] = []

    def advance(program: Any, *args: Any, **named: Any) -> Any:
        found.extend([program.name] if isinstance(program, OpProgram) else [])
        return usual(program, *args, **named)
    usual = driver.advance
    monkeypatch.setattr(driver, "advance", advance)
    return found


def matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return (rng.random((5, 7), np.float32), rng.random((7, 3), np.float32), rng.random((5, 3), np.float32))


def compile_(spec: str | Path | list[str], **options: Any) -> Any:
    return caten.compile(spec, **{"runtime": "gcc", "opt": 1, **options})  # type: ignore[arg-type]


# -- what is found --------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("again", [False, True], ids=["same process", "another process"])
def test_a_kernel_is_found_under_other_names(makes: list[str], again: bool) -> None:
    gemm, (A, B, C) = compile_(GEMM), matrices()
    if again:
        LOADED.clear()
    product = compile_(PRODUCT)
    assert makes == ["Gemm"]
    expected = gemm(A, B, C.copy())
    np.testing.assert_array_equal(product(A, B, C.copy()), expected)
    np.testing.assert_array_equal(product(left=A, right=B, sum=C.copy()), expected)
    np.testing.assert_array_equal(product(A, B, sum=C.copy()), expected)             # the second call, and on, goes to the library directly
    np.testing.assert_array_equal(product.bind(A, right=B, sum=C.copy())(), expected)
    np.testing.assert_array_equal(gemm(A=A, B=B, C=C.copy()), expected)
    assert makes == ["Gemm"]


def test_it_speaks_of_its_own_names(makes: list[str]) -> None:
    gemm, (A, B, C) = compile_(GEMM), matrices()
    product = compile_(PRODUCT)
    assert (product.name, product.__name__, gemm.name) == ("Product", "Product", "Gemm")
    assert product.signature.startswith("Product(left{float}[rows inner]")
    assert str(product.__doc__).startswith("a product of matrices")
    with pytest.raises(CatenError, match=r"E705: Product: the size inner is 7 by axis 1 of left, and 5 by axis 0 of right"):
        product(A, B[:5], C)
    with pytest.raises(CatenError, match="E700: Product has no argument A"):
        product(A=A, right=B, sum=C)
    assert makes == ["Gemm"]
    assert product.manifest["symbols"]["call"] == "ct_gemm"                            # the function that is called
    assert makes == ["Gemm", "Product"]                                              # what it says at length is rendered when it is asked for
    assert [a["name"] for a in product.manifest["arguments"]] == ["left", "right", "sum", "rows", "inner", "columns"]
    LOADED.clear()
    alone = compile_(PRODUCT, cache=False)
    assert product.source == alone.source
    assert product.schedule == alone.schedule
    assert product.manifest == alone.manifest | {key: gemm.manifest[key] for key in ("symbol", "symbols")}
    assert gemm.source == compile_(GEMM, cache=False).source
    assert caten.compile(GEMM, "gcc", opt=1, schedule=gemm.schedule)(A, B, C.copy()).shape == C.shape


@pytest.mark.parametrize("again", [False, True], ids=["same process", "another process"])
def test_failed_checks_speak_of_its_own_names(again: bool) -> None:
    gather, x = compile_(GATHER), np.arange(3, dtype=np.float32)
    if again:
        LOADED.clear()
    pick = compile_(PICK)
    for _ in range(2):
        with pytest.raises(CatenError, match=r"E711: Pick: <string>:2:\d+: \(aref from \(aref which e\)\): index 1") as told:
            pick(x, np.array([7]))
    assert told.value.diagnostics[0].notes == (("called with all = 3, n = 1", None),)
    with pytest.raises(CatenError, match=r"E711: Gather: .*\(aref X \(aref I i\)\)"):
        gather(x, np.array([7]))
    assert pick(x, np.array([2])) == [2]


def test_the_same_text_elsewhere_has_its_own_places(tmp_path: Path, makes: list[str]) -> None:
    for name, before in (("one.toml", ""), ("two.toml", "# moved\n\n")):
        (tmp_path / name).write_text(before + '[composite]\nname = "G"\ninputs = ["X{float}[N]", "I{int64}[M]"]\noutputs = ["Y{float}[M]"]\n'
                                     '[implementation]\ncode = "(dotimes (i M) (setf (aref Y i) (aref X (aref I i))))"\n')
    found = [compile_(tmp_path / name) for name in ("one.toml", "two.toml")]
    assert makes == ["G"]
    for operator, place in zip(found, ("one.toml:6:", "two.toml:8:"), strict=True):
        with pytest.raises(CatenError, match=place):
            operator(np.zeros(1, np.float32), np.array([1]))
    assert found[0].manifest["spec_sha256"] == loading.digest([read(tmp_path / "one.toml")])
    assert found[1].manifest["spec_sha256"] == loading.digest([read(tmp_path / "two.toml")])


def test_sizes_that_are_known_and_strides(makes: list[str]) -> None:
    A, B, C = matrices()
    compile_(GEMM, sizes={"M": 5}, strided=["A"])
    product = compile_(PRODUCT, sizes={"rows": 5}, strided=["left"])
    assert makes == ["Gemm"]
    wide = np.zeros((5, 20), np.float32)
    wide[:, :7] = A
    np.testing.assert_allclose(product(wide[:, :7], B, C.copy()), C + A @ B, rtol=1e-5)
    with pytest.raises(CatenError, match="rows is 5 as compiled"):
        product(A[:4], B, C[:4])
    for other in ({"sizes": {"columns": 5}, "strided": ["left"]}, {"sizes": {"rows": 6}, "strided": ["left"]}, {"sizes": {"rows": 5}}):
        makes.clear()
        compile_(PRODUCT, **other)
        assert makes == ["Product"]


def test_several_operators(makes: list[str]) -> None:
    compile_([GEMM, AXPY])
    both = compile_([PRODUCT, AXPY.replace("Axpy", "Add").replace("X{", "x{").replace("aref X", "aref x")])
    assert makes == ["Gemm", "Axpy"]
    A, B, C = matrices()
    np.testing.assert_allclose(both.Product(A, B, C.copy()), C + A @ B, rtol=1e-5)
    assert both.Add(2, x=np.ones(2, np.float32), Y=np.ones(2, np.float32)).tolist() == [3, 3]
    assert list(both) == ["Product", "Add"]
    assert [op["op"] for op in both.manifest["ops"]] == ["Product", "Add"]
    assert both.manifest["ops"][1]["symbol"] == "ct_axpy"
    compile_([AXPY, GEMM])
    assert makes == ["Gemm", "Axpy", *["Product", "Add"], "Axpy", "Gemm"]            # the order is a part of it
    with pytest.raises(CatenError, match=r"E666.*same symbol"):
        compile_([PRODUCT.replace("Product", "A_b"), AXPY.replace("Axpy", "A-b")])


@pytest.mark.slice(2)
@pytest.mark.parametrize("change", [
    {"opt": 0}, {"runtime": "clang"}, {"config": {"OPT": 1}}, {"config": {"SIMD_LEN": 1}}, {"bounds_check": False}, {"reassociate": False},
    {"sizes": {"N": 4}}, {"strided": ["A"]}, {"schedule": "(schedule)"}, {"cache": False}], ids=str)
def test_what_changes_code_changes_the_key(makes: list[str], change: dict[str, Any]) -> None:
    compile_(GEMM)
    compile_(GEMM, **change)
    assert makes == ["Gemm", "Gemm"]


def test_every_option_is_looked_at_or_known_to_change_nothing() -> None:
    # One that is added is a part of the key until it is listed.
    changed = {"runtime_path": ("/nowhere",), "cc": "gcc", "cflags": ("-DX",), "ldflags": ("-lm",), "cc_timeout": 1.0, "strict": False, "opt": 0,
               "unchecked": True, "in_order": True, "lines": True, "config": (("OPT", "1"),), "runtime": "gcc",
               "asked": frozenset({"E944"}), "no_rewrite": True}
    plain = Options()
    assert set(vars(plain)) == changed.keys() | keys.NO_PART | keys.IN_PROGRAMS
    for name, value in changed.items():
        assert keys._options(plain) != keys._options(Options(**{name: value})), name
    for name in keys.NO_PART | keys.IN_PROGRAMS:
        assert not any(word.startswith(f"{name}=") for word in keys._options(plain))


def test_the_flags_of_the_environment_too(makes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compile_(AXPY)
    monkeypatch.setenv("CFLAGS", "-DW=1")
    for _ in range(2):
        compile_(AXPY)
    assert makes == ["Axpy", "Axpy"]
    with pytest.raises(CatenError, match="E623"):            # a macro is a name
        compile_(AXPY.replace("X", "W"))


def test_a_schedule_speaks_of_loops_by_name(makes: list[str]) -> None:
    steps = "(schedule (split i 4))"
    compile_(AXPY, opt=2, schedule=steps)
    compile_(AXPY, opt=2, schedule=steps)
    assert makes == ["Axpy"]
    other = AXPY.replace("(i N)", "(j N)").replace("aref X i", "aref X j").replace("aref Y i", "aref Y j")
    with pytest.raises(CatenError, match="E50"):
        compile_(other, opt=2, schedule=steps)
    compile_(other, opt=2, schedule=steps.replace(" i ", " j "))
    assert makes == ["Axpy"] * 3


def test_records_of_tuning_change_the_key(makes: list[str], tmp_path: Path) -> None:
    spec = tmp_path / "axpy.toml"
    spec.write_text(AXPY)
    compile_(spec, opt=3)
    compile_(spec, opt=3)
    assert makes == ["Axpy"]
    (tmp_path / "axpy.tune.json").write_text('{"schema_version": 1, "records": []}')
    compile_(spec, opt=3)
    assert makes == ["Axpy"] * 2
    (tmp_path / "cache/records").mkdir()
    (tmp_path / "cache/records/x.json").write_text('{"schema_version": 1, "records": []}')
    compile_(spec, opt=3)
    compile_(spec, opt=3)
    assert makes == ["Axpy"] * 3


def test_caten_itself_is_a_part_of_the_key(makes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(Path(driver.__file__)) in own_code.identity()
    assert "clang.py" in own_code.identity()
    compile_(AXPY)
    monkeypatch.setattr(own_code, "identity", lambda: "another version")
    compile_(AXPY)
    assert makes == ["Axpy"] * 2


def test_what_was_edited_since_this_process_began_is_left_for_no_other(makes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_code, "_imported", 0.0)
    compile_(AXPY)
    LOADED.clear()
    compile_(AXPY)
    assert makes == ["Axpy"] * 2


def test_a_runtime_of_someone_else_keeps_its_names_and_is_left_for_no_other(makes: list[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from caten.runtime.discover import base\n\n\nclass Mine(base('gcc')):\n    api_version, name = 1, 'mine'\n")
    compile_(GEMM, runtime=str(file))
    compile_(GEMM, runtime=str(file))
    assert makes == ["Gemm"]
    compile_(PRODUCT, runtime=str(file))
    LOADED.clear()
    compile_(GEMM, runtime=str(file))
    assert makes == ["Gemm", "Product", "Gemm"]
    file.write_text(file.read_text() + "    extra = 1\n")
    os.utime(file, (1, 1))
    compile_(GEMM, runtime=str(file))
    assert makes == ["Gemm", "Product", "Gemm", "Gemm"]


def test_runtimes_that_find_more_than_symbols_keep_their_names(makes: list[str]) -> None:
    x = np.ones(2, np.float32)
    for _ in range(2):
        assert compile_(AXPY, runtime="numpy")(2, x, x.copy()).tolist() == [3, 3]
    assert makes == ["Axpy"]
    assert compile_(AXPY.replace("Axpy", "Add"), runtime="numpy")(2, x, x.copy()).tolist() == [3, 3]
    assert makes == ["Axpy", "Add"]


# -- what is kept ---------------------------------------------------------------------------------------------------------------------------

def test_another_process_schedules_nothing(tmp_path: Path) -> None:
    (tmp_path / "gemm.toml").write_text(GEMM)
    (tmp_path / "product.toml").write_text(PRODUCT)
    call = ("import sys, caten, numpy as np; f = caten.compile(sys.argv[1], 'gcc', opt=2, config={'OPT': 0})\n"
            "assert f(np.ones((2, 3), 'f'), np.ones((3, 4), 'f'), np.ones((2, 4), 'f')).tolist() == [[4] * 4] * 2\n")

    def run(spec: str, before: str = "") -> int:
        return subprocess.run([sys.executable, "-c", before + call, str(tmp_path / spec)], capture_output=True, timeout=300).returncode
    without = "from caten import driver; driver.advance = driver.render = None\n"
    assert run("gemm.toml", without) == 1
    assert run("gemm.toml") == 0
    assert run("gemm.toml", without) == 0
    assert run("product.toml", without) == 0


@pytest.mark.parametrize("damage", ["kernel.json", "library", "both"])
def test_a_damaged_entry_is_made_again(tmp_path: Path, makes: list[str], damage: str) -> None:
    compile_(AXPY)
    LOADED.clear()
    for file in (tmp_path / "cache").glob("kernels/*/kernel.json"):
        if damage != "library":
            file.write_text(file.read_text()[:100])
    for file in (tmp_path / "cache").glob("*/*.so"):
        if damage != "kernel.json":
            text = file.read_bytes()
            file.unlink()                                    # cutting a file that this process has loaded would kill it
            file.write_bytes(text[:1000])
    with pytest.warns(CatenWarning, match="E651"):
        axpy = compile_(AXPY)
    assert axpy(2, np.ones(2, np.float32), np.ones(2, np.float32)).tolist() == [3, 3]
    assert makes == ["Axpy"] * 2
    LOADED.clear()
    compile_(AXPY)
    assert makes == ["Axpy"] * 2


def test_a_library_that_is_gone_is_made_again(tmp_path: Path, makes: list[str]) -> None:
    compile_(AXPY)
    LOADED.clear()
    library, = (tmp_path / "cache").glob("*/*.so")
    for file in library.parent.iterdir():
        file.unlink()
    library.parent.rmdir()
    compile_(AXPY)
    compile_(AXPY)
    assert makes == ["Axpy"] * 2


def test_what_was_warned_of_is_said_again(monkeypatch: pytest.MonkeyPatch, makes: list[str]) -> None:
    usual = compiler.render_programs

    def warns(programs: Any, options: Any, sha: str = "", warn: Any = None, due: Any = None) -> Any:
        warn(compiler.Diagnostic("E943", "something", severity="warning"))
        return usual(programs, options, sha, warn, due)
    monkeypatch.setattr(compiler, "render_programs", warns)
    for _ in range(2):
        with pytest.warns(CatenWarning, match="E943"):
            compile_(AXPY)
    assert makes == ["Axpy"] * 2


def test_the_cache_counts_libraries_and_cleans_all(tmp_path: Path, makes: list[str]) -> None:
    compile_(AXPY)
    cache = Cache(tmp_path / "cache", lambda _: None)
    assert cache.stats().entries == 1
    files = [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]
    assert "kernel.json" in {f.name for f in files}
    assert cache.stats().bytes == sum(f.stat().st_size for f in files if "probes" not in f.parts)
    cache.clean()
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_least_recently_used_are_forgotten() -> None:
    loaded, found = Loaded(2), [known_kernels.Found(known_kernels.Kept(str(n), "", {}, "", (), (), ""), Path()) for n in range(3)]
    loaded.put(None, "0", found[0])
    loaded.put(None, "1", found[1])
    assert loaded.get(None, "0") is found[0]
    loaded.put(None, "2", found[2])
    assert (len(loaded), loaded.get(None, "1"), loaded.get(None, "0"), loaded.get(Path("/x"), "0")) == (2, None, found[0], None)


def test_threads_share_what_is_loaded() -> None:
    A, B, C = matrices()
    expected = C + A @ B

    def work(n: int) -> list[bool]:
        specs = [PRODUCT.replace("Product", f"P{n}_{turn}").replace("left", f"l{n}{turn}") for turn in range(8)]
        return [np.allclose(compile_(spec)(A, B, C.copy()), expected, rtol=1e-5) for spec in specs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[True] * 8] * 4
    assert len(LOADED) == 1


# -- --verify -------------------------------------------------------------------------------------------------------------------------------

def test_verified_builds_are_made_anew(makes: list[str], nightly: bool) -> None:
    opt = 2 if nightly else 1
    compile_(GEMM, opt=opt)
    product = compile_(PRODUCT, opt=opt, verify=True)
    assert makes == ["Gemm", "Product", "Gemm"]              # the last one under the names that it was found under
    assert "Product" in product.source
    assert "ct_product" in product.manifest["symbol"]


@pytest.mark.parametrize("loaded", [True, False], ids=["same process", "another process"])
def test_a_wrong_key_is_found(monkeypatch: pytest.MonkeyPatch, loaded: bool) -> None:
    usual = structure._Writer._parts

    def blind(self: Any, node: Any) -> Any:
        return usual(self, node.replace(fn="add") if isinstance(node, Incf) else node)
    monkeypatch.setattr(structure._Writer, "_parts", blind)
    compile_(GEMM)
    if not loaded:
        LOADED.clear()
    other = PRODUCT.replace("(incf (aref sum y x) (*", "(mulcf (aref sum y x) (*")
    compile_(other)                                          # wrong, and nobody has asked
    with pytest.raises(CatenError, match="E491: the key of Product belongs to another kernel, Gemm"):
        compile_(other, verify=True)
    compile_(PRODUCT, verify=True)


# -- for commands ---------------------------------------------------------------------------------------------------------------------------

def test_commands_get_what_was_made_of_the_same_text(makes: list[str]) -> None:
    options = Options(runtime="gcc", opt=1, cache_dir=os.environ["CATEN_CACHE_DIR"])

    def made(text: str) -> compiler.Built:
        sources = [read(text)]
        return known_build.built(compiler.Compilation(loading.loaded(sources, options), options, loading.digest(sources)))
    first, second = made(GEMM), made(GEMM)
    assert makes == ["Gemm"]
    assert (first.from_cache, second.from_cache) == (False, True)
    assert second == compiler.Built(first.ops, (), first.source, first.manifest, first.artifact, first.record, second.runtime, True)
    other = made(PRODUCT)
    assert made(PRODUCT).manifest == other.manifest
    assert other.manifest["symbol"] == "ct_product"
    assert makes == ["Gemm", "Product"]
    sources = [read(PRODUCT)]
    known_build.loaded(loading.loaded(sources, options), options, loading.digest(sources), lambda warning: None)
    assert makes == ["Gemm", "Product"]


def test_a_program_of_values_is_found_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its values, names included: what graphs of lazy tensors become, and the text of a stage."""
    options, drafted = Options(runtime="gcc", opt=1, cache_dir=str(tmp_path / "cache")), list[int]()

    def loaded_from(spec: str) -> Any:
        LOADED.clear()
        (program,) = loading.load_programs(read(spec), options)
        values = driver.advance(program, "tensor", options)
        return known_build.loaded([values], options, "", lambda warning: None)
    usual = compiler.render_programs
    monkeypatch.setattr(compiler, "render_programs", lambda *args: (drafted.append(1), usual(*args))[1])
    X = np.arange(12, dtype=np.float32).reshape(3, 4)
    for spec, made in ((SUMS, 1), (SUMS, 1), (SUMS.replace(".sum(", ".max("), 2), (SUMS, 2)):
        np.testing.assert_array_equal(loaded_from(spec)(X), X.max(1) if "max" in spec else X.sum(1))
        assert len(drafted) == made


# -- all samples ----------------------------------------------------------------------------------------------------------------------------

SMALL = ("gemm", "softmax", "histogram", "conv2d", "mlp", "quantize")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sample" in metafunc.fixturenames:
        every = metafunc.config.getoption("--nightly")
        metafunc.parametrize("sample", [p for p in sorted(SAMPLES.glob("*.toml")) if every or p.stem in SMALL], ids=lambda p: p.stem)


@pytest.mark.slice(2)
def test_samples_compute_under_other_names(sample: Path, nightly: bool, makes: list[str]) -> None:
    options = Options(runtime="gcc", opt=1)
    for program in [p for p in loading.load_programs(read(sample), options) if isinstance(p, OpProgram)]:
        op = program.without(Reference, Case)                     # whose names would be others
        one, other = compile_(show(op)), compile_(show(renamed(op)))
        assert makes == [op.name]
        makes.clear()
        names = other_names(op)
        values = data.arguments(op, dict.fromkeys(op.sizes, 6), 1)
        written = [b.name for b in op.all(Buffer) if b.access == "inout"]
        given = [{n: v.copy() if n in written else v for n, v in values.items() if n in [a["name"] for a in one._arguments.inputs]} for _ in range(2)]
        sizes = {n: values[n] for n in one._keywords}
        results = [f(**{rename(n): v for n, v in (mine | sizes).items()})
                   for f, rename, mine in ((one, str, given[0]), (other, names.__getitem__, given[1]))]
        for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in results], strict=True):
            np.testing.assert_array_equal(a, b)
        assert makes == []
        if nightly:
            compile_(show(renamed(op)), verify=True)
            makes.clear()
