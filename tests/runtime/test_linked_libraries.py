"""A library file that a build is linked with has an identity of its own in the cache's keys."""
from __future__ import annotations

from pathlib import Path

from caten.runtime.discover import find
from caten.runtime.library_cache import file_identity
from caten.runtime.linked_libraries import library_identities
from caten.runtime.protocol import Host


def test_libraries_by_path_by_name_and_by_file_name(tmp_path: Path) -> None:
    shared, static = tmp_path / "libmine.so", tmp_path / "libmine.a"
    shared.touch()
    static.touch()
    both = [file_identity(shared), file_identity(static)]
    assert library_identities([f"-L{tmp_path}", "-lmine", "-lm"]) == both
    assert library_identities(["-L", str(tmp_path), "-lmine"]) == both
    assert library_identities([f"-L{tmp_path}", "-l:libmine.a"]) == both[1:]
    assert library_identities([str(shared)]) == both[:1]
    assert library_identities(["-lmine"]) == []


def test_the_folders_of_the_compiler_are_searched(tmp_path: Path) -> None:
    compiler = tmp_path / "bin/cc"
    for file in (compiler, tmp_path / "lib/libomp.so", tmp_path / "lib/gcc/x/12/libgomp.so"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = library_identities(["-lomp", "-lgomp"], str(compiler))
    assert file_identity(tmp_path / "lib/libomp.so") in found
    assert file_identity(tmp_path / "lib/gcc/x/12/libgomp.so") in found


def test_another_library_is_another_build(tmp_path: Path) -> None:
    library = tmp_path / "libmine.a"
    library.write_text("one")
    gcc = find("gcc").configure((), Host(ldflags=(f"-L{tmp_path}", "-lmine")))
    before = gcc.identity()
    assert gcc.identity() == before
    library.write_text("another")
    assert gcc.identity() != before
