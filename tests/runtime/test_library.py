"""Opening libraries: whole ones load, anything else is refused before the loader sees it."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.errors import CatenError
from caten.runtime.call import callables
from caten.runtime.library import c_arguments, check_whole, open_library, sha256

ADD = "(loop Add-One (size N) (buffer X i32 (N) (0) inout) (check 1 \"N is 7\") (kernel k))"
ADD_C = "int32_t ct_add_one(int32_t *X, int64_t N) { if (N == 7) return 1; for (int64_t i = 0; i < N; i++) X[i] += 1; return 0; }\n"
Make = Callable[[Path, str, dict[str, Any]], Path]


@pytest.fixture
def library(tmp_path: Path, make_library: Make, describe: Callable[..., dict[str, Any]]) -> Path:
    return make_library(tmp_path / "add.so", ADD_C, describe(ADD))


def refused(code: str, call: Callable[[], Any]) -> str:
    with pytest.raises(CatenError) as caught:
        call()
    assert caught.value.diagnostics[0].code == code, caught.value
    return caught.value.diagnostics[0].message


def test_the_manifest_comes_back(library: Path, describe: Callable[..., dict[str, Any]]) -> None:
    assert open_library(library).manifest == describe(ADD)
    assert open_library(library, expected_sha256=sha256(library)).manifest == describe(ADD)


def test_a_manifest_of_any_characters_comes_back(tmp_path: Path, make_library: Make, describe: Callable[..., dict[str, Any]]) -> None:
    text = 'C ← A·B "quoted" \\ ??/ \n\t' + "x" * 300
    manifest = describe(ADD) | {"documentation": text}
    assert open_library(make_library(tmp_path / "a.so", ADD_C, manifest)).manifest["documentation"] == text


def test_a_torn_library_is_refused_wherever_it_is_torn(library: Path, tmp_path: Path) -> None:
    data = library.read_bytes()
    check_whole(library)
    torn = tmp_path / "torn.so"
    for length in [0, 3, 17, 63, 64, 500, len(data) // 2, len(data) - 1]:
        torn.write_bytes(data[:length])
        refused("E660", lambda: open_library(torn))
    assert refused("E661", lambda: open_library(tmp_path / "nowhere.so")).endswith("No such file or directory")
    torn.write_text("#!/bin/sh\nexit 1\n" * 10)
    assert "is not a shared library" in refused("E660", lambda: open_library(torn))


def test_the_address_sanitizer_cannot_come_late(tmp_path: Path, make_library: Make, describe: Callable[..., dict[str, Any]]) -> None:
    text = ADD_C + "void __asan_init(void); void __asan_init(void) {}\n"            # what every library made with it asks for
    message = refused("E664", lambda: open_library(make_library(tmp_path / "a.so", text, describe(ADD))))
    assert "must be in the process from its start" in message


def test_another_file_than_expected_is_refused(library: Path) -> None:
    refused("E662", lambda: open_library(library, expected_sha256="0" * 64))


def test_libraries_that_are_not_ours(tmp_path: Path, library: Path, make_library: Make, describe: Callable[..., dict[str, Any]]) -> None:
    source = tmp_path / "x.c"
    source.write_text("int x(void) { return 1; }")
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "x.so")], check=True)
    refused("E663", lambda: open_library(tmp_path / "x.so"))
    later = make_library(tmp_path / "later.so", ADD_C, describe(ADD) | {"abi_version": 99})
    assert "99" in refused("E665", lambda: open_library(later))
    other = make_library(tmp_path / "other.so", ADD_C, describe(ADD) | {"schema_version": 98})
    assert "98" in refused("E665", lambda: open_library(other))
    lying = describe(ADD)
    lying["symbols"] = lying["symbols"] | {"call": "ct_other"}
    refused("E663", lambda: open_library(library, lying))
    source.write_text("extern int nowhere(void); int x(void) { return nowhere(); }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-z,now", str(source), "-o", str(tmp_path / "y.so")], check=True)
    assert "nowhere" in refused("E664", lambda: open_library(tmp_path / "y.so"))


def test_a_replaced_file_is_not_taken_for_the_old_one(library: Path, tmp_path: Path, make_library: Make,
                                                     describe: Callable[..., dict[str, Any]]) -> None:
    first = callables(open_library(library))
    for step in (10, 100):
        other = make_library(tmp_path / f"other{step}.so", ADD_C.replace("+= 1", f"+= {step}"), describe(ADD))
        os.replace(other, library)
        second = callables(open_library(library))
        np.testing.assert_array_equal(second(np.zeros(2, np.int32)), [step] * 2)  # type: ignore[operator]
        np.testing.assert_array_equal(first(np.zeros(2, np.int32)), [1] * 2)  # type: ignore[operator]


def test_check_texts_come_from_the_manifest_and_else_from_the_library(library: Path, describe: Callable[..., dict[str, Any]]) -> None:
    entry = open_library(library).entries["Add-One"]
    assert entry.check(1) == "N is 7"
    assert entry.check(5) == "check 5"


def test_arguments_follow_the_interface(describe: Callable[..., dict[str, Any]]) -> None:
    text = ("(loop F (size N) (buffer X f32 (N N) (0 1) in X_stride0 1) (scalar a bool) (scalar z c128) (buffer Y i8 (N) (0) out) (scalar X_stride0 i64))")
    assert c_arguments(describe(text)) == ["void *", "uint8_t", "ct_c128", "void *", "int64_t", "int64_t"]


def test_opening_needs_no_numpy(library: Path) -> None:
    code = f"import sys; from pathlib import Path; from caten.runtime.library import open_library; open_library(Path({str(library)!r})); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
