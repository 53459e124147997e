"""A program that differs from another one in a constant plans, compiles and verifies again only what has the constant."""
from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten import compiler, loading
from caten.api import options_of, read
from caten.driver import ignore
from caten.kernels import known_build
from caten.kernels.known_kernels import LOADED
from caten.options import Options
from caten.render import compiled_parts
from caten.runtime import object_files, own_code
from caten.runtime.kept_objects import FILE, folder_of
from caten.runtime.library_cache import HASHES
from caten.schedule import autoscheduler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="object files are kept where libraries are ELF")
STEP = re.sub(r"(?m)^  \(target .*\n", "", (Path(__file__).parent.parent / "schedule" / "training_step.lisp").read_text("utf-8"))
BIAS = "(compute f32 ((i 5) (j size0)) (+ (read v4 i j) (read in6 i)))"
assert BIAS in STEP
OTHER = STEP.replace(BIAS, BIAS.replace("(read in6 i)", "(* (read in6 i) 0.5)"))
KERNELS, LEAST = 13, 5_000
CONFIG = {"OPT": 0, "MARCH": "x86-64-v2"}              # whose plans take half as long as those of longer vectors


class Seen:
    """The nests that were planned, the kernels that were compiled, and the object files that were found."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all of it, with the libraries that this process has loaded."""
        self.planned, self.compiled, self.found = list[str](), list[str](), 0
        LOADED.clear()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    made = Seen()
    plan, bundles = autoscheduler.planned_apart, object_files._bundles
    monkeypatch.setattr(autoscheduler.planning_processes, "count_for", lambda nests: 0)
    monkeypatch.setattr(autoscheduler, "planned_apart", lambda task: (made.planned.append(task.name), plan(task))[1])

    def compiling(kernels: list[compiled_parts.Kernel]) -> Any:
        made.compiled += [k.name for k in kernels]
        return bundles(kernels)
    monkeypatch.setattr(object_files, "_bundles", compiling)
    monkeypatch.setattr(compiled_parts, "LEAST", LEAST)
    yield made
    LOADED.clear()


def options_in(folder: Path) -> Options:
    return replace(options_of("compile", config=CONFIG), cache_dir=str(folder))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the first program."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_parts, "LEAST", LEAST)
        patch.setattr(object_files.cores, "available", lambda: 4)                       # as many bundles of kernels
        loaded(STEP, options_in(folder))
    return folder


@pytest.fixture
def options(filled: Path, tmp_path: Path) -> Options:
    return options_in(shutil.copytree(filled, tmp_path / "cache"))


@pytest.fixture(scope="module")
def plain() -> compiler.Built:
    """The other program, built without a cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_parts, "LEAST", LEAST)
        return built(OTHER, replace(options_of("compile", config=CONFIG), use_cache=False))


def loaded(text: str, options: Options) -> Any:
    return known_build.loaded(loading.loaded([read(text)], options), options, "", ignore)


def built(text: str, options: Options, reuses: bool = False) -> compiler.Built:
    return compiler.Compilation(loading.loaded([read(text)], options), options, reuses=reuses).artifact()


def results(library: Any) -> list[np.ndarray]:
    draw = np.random.default_rng(1)
    sizes = [(7, 100), (10, 100), (10,), (10, 10), (10,), (5, 10), (5,)]
    return list(library(*[draw.standard_normal(s).astype(np.float32) for s in sizes], draw.integers(0, 5, 7)))


def assert_same(library: Any, plain: compiler.Built) -> None:
    for one, other in zip(results(plain.runtime.load(plain.artifact, plain.manifest)), results(library), strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_constant_misses_one_kernel(seen: Seen, options: Options, plain: compiler.Built) -> None:
    library = loaded(OTHER, options)
    assert len(seen.planned) == 1
    assert len(seen.compiled) == 1
    assert library.source == plain.source
    assert_same(library, plain)
    assert any((one != other).any() for one, other in zip(results(loaded(STEP, options)), results(library), strict=True))


def test_kernels_of_other_flags_are_not_taken(seen: Seen, options: Options) -> None:
    loaded(OTHER, replace(options, cflags=("-fno-inline",)))
    assert len(seen.planned) == 1
    assert len(seen.compiled) == KERNELS


def test_objects_of_other_code_are_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = folder_of(tmp_path, "plans", 1 << 20)
    assert kept is not None
    kept.keep((1, "a"), "what", "determines it")
    assert kept.find("what", "determines it") == (1, "a")
    assert kept.find("whatdetermines it") is None
    with monkeypatch.context() as patch:
        patch.setattr(own_code, "identity", lambda: "another version")
        assert kept.find("what", "determines it") is None
    (file,) = tmp_path.glob("plans/*/object.pickle")
    file.write_bytes(b"\x80garbage")
    assert kept.find("what", "determines it") is None
    for content in (b"", b"\x80garbage"):                                   # with a hash that fits
        kept.keep((1, "a"), "what", "determines it")
        file.write_bytes(content)
        file.with_name(HASHES).write_text(json.dumps({FILE: hashlib.sha256(content).hexdigest()}))
        assert kept.find("what", "determines it") is None
    monkeypatch.setattr(own_code, "_imported", 0.0)
    assert folder_of(tmp_path, "plans", 1 << 20) is None


def test_what_is_left_of_another_library_is_not_in_it(seen: Seen, options: Options, plain: compiler.Built) -> None:
    reused, whole = [made.artifact.read_bytes() for made in (built(OTHER, options, reuses=True), plain)]
    assert reused != whole
    assert len(reused) < len(whole) + 2048


def test_a_library_for_a_file_is_compiled_from_its_text_alone(seen: Seen, options: Options, plain: compiler.Built) -> None:
    """Its bytes do not depend on what is in the cache."""
    loaded(OTHER, options)
    for _ in range(2):
        seen.clear()
        made = known_build.built(compiler.Compilation(loading.loaded([read(OTHER)], options), options))
        assert made.artifact.read_bytes() == plain.artifact.read_bytes()
        assert not seen.planned + seen.compiled
    loaded(OTHER, options)
    assert not seen.planned + seen.compiled


def object_files_in(options: Options) -> list[Path]:
    assert options.cache_dir is not None
    return sorted((Path(options.cache_dir) / "objects").glob("*/library.o"))


def test_damaged_and_lost_object_files_are_made_again(seen: Seen, options: Options, plain: compiler.Built) -> None:
    kept = object_files_in(options)
    assert len(kept) == KERNELS
    for file in kept[:3]:
        file.write_bytes(b"\x7fELFgarbage")
    shutil.rmtree(kept[3].parent)
    library = loaded(OTHER, options)
    assert 4 <= len(seen.compiled) <= 5
    assert_same(library, plain)


def test_several_object_files_may_have_the_same_kernel(seen: Seen, options: Options, plain: compiler.Built) -> None:
    """Where some were lost, or two processes have made them at once."""
    kept = object_files_in(options)
    assert len({file.read_bytes() for file in kept}) > 2
    for file in kept[::2]:
        shutil.rmtree(file.parent)
    library = loaded(OTHER, options)
    assert 1 < len(seen.compiled) < KERNELS
    assert_same(library, plain)


def test_versions_of_a_long_kernel_are_kept_for_others(seen: Seen, tmp_path: Path) -> None:
    gemm = (Path(__file__).parents[2] / "samples" / "gemm.toml").read_text("utf-8")
    options = replace(options_of("compile", config={**CONFIG, "MARCH": "x86-64-v3"}), cache_dir=str(tmp_path))      # it has more versions there
    draw = np.random.default_rng(1)
    a, b, c = [draw.standard_normal(shape).astype(np.float32) for shape in ((7, 9), (9, 20), (7, 20))]
    np.testing.assert_allclose(loaded(gemm, options)(a, b, c.copy()), a @ b + c, rtol=1e-4, atol=1e-4)
    first = list(seen.compiled)
    assert len(first) > 4
    seen.clear()
    twice = gemm.replace("(incf (aref C i j) (*", "(incf (aref C i j) (* 2.0")
    np.testing.assert_allclose(loaded(twice, options)(a, b, c.copy()), 2 * a @ b + c, rtol=1e-4, atol=1e-4)
    assert "ct_gemm_gemm" in seen.compiled                                # it calls other versions, under the same names
    seen.clear()
    LOADED.clear()
    for entry in [tmp_path / "kernels", *[e for e in tmp_path.iterdir() if len(e.name) == 64]]:
        shutil.rmtree(entry)
    np.testing.assert_allclose(loaded(gemm, options)(a, b, c.copy()), a @ b + c, rtol=1e-4, atol=1e-4)
    assert not seen.compiled


def test_the_key_of_a_kernel_covers_the_functions_that_it_calls() -> None:
    helpers = {"ct_a": "static float ct_a(float x) { return ct_b(x); }", "ct_b": "static float ct_b(float x) { return x; }", "ct_c": "static int ct_c;"}
    kernel = "static void ct_k(float *p)\n{\n    *p = ct_a(*p);\n}\n"
    key = compiled_parts.key_of(kernel, helpers, {})
    assert compiled_parts.key_of(kernel.replace("ct_k", "ct_other"), helpers | {"ct_c": "static long ct_c;"}, {}) == key
    assert compiled_parts.key_of(kernel, helpers | {"ct_b": "static float ct_b(float x) { return -x; }"}, {}) != key
    assert compiled_parts.key_of(kernel.replace("static void", "static int32_t"), helpers, {}) != key
    assert compiled_parts.key_of(kernel.replace("*p =", "*p +="), helpers, {}) != key


def test_the_key_of_a_kernel_covers_its_versions_under_any_name() -> None:
    kernel = "static void ct_k(float *p)\n{\n    ct_k_v1(p);\n}\n"
    key = compiled_parts.key_of(kernel, {}, {"ct_k_v1": "12ab"})
    assert compiled_parts.key_of(kernel.replace("ct_k", "ct_other"), {}, {"ct_other_v1": "12ab"}) == key
    assert compiled_parts.key_of(kernel, {}, {"ct_k_v1": "34cd"}) != key


def test_equal_kernels_of_a_file_are_compiled_once() -> None:
    bodies = [f"static void ct_{name}(float *p)\n{{\n    *p = {value};\n{'    *p += 1;' * 4000}\n}}\n" for name, value in (("a", 1), ("b", 1), ("c", 2))]
    text = compiled_parts.apart(bodies, ["void ct_x(float *p) { ct_a(p); ct_b(p); ct_c(p); }\n"], lambda k, keys: compiled_parts.key_of(k, {}, keys))
    assert text is not None
    a, b, c = compiled_parts.kernels_in(text)
    assert a.key == b.key != c.key
    some = compiled_parts.only(text, [a, c], entries=False)
    assert len(compiled_parts.kernels_in(some)) == 2
    assert f"#define ct_b ct_{a.key}\n" in some
    assert "#define CT_ENTRIES 0\n" in some
