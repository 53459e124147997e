"""gcc's spellings on the raw command line."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten.cli.argv import normalise, split_words
from caten.errors import UsageError


@pytest.mark.parametrize(("given", "expected"), [
    (["-DM=1"], ["-D", "M=1"]), (["-D", "M=1"], ["-D", "M=1"]), (["-Ifoo"], ["-I", "foo"]), (["-ogemm.so"], ["-o", "gemm.so"]),
    (["-O2"], ["-O", "2"]), (["-O", "0", "a"], ["-O", "0", "a"]), (["-O", "a.toml"], ["-O", "1", "a.toml"]),
    (["-O"], ["-O", "1"]), (["-lm", "-L/opt"], ["-l", "m", "-L", "/opt"]), (["-MFx.d"], ["-MF", "x.d"]),
    (["-MD", "-MP"], ["-MD", "-MP"]), (["-march=native"], ["-march=native"]), (["-fstrided=A"], ["-fstrided=A"]),
    (["-fno-bounds-check"], ["-fno-bounds-check"]), (["-fno-reassociate"], ["-fno-reassociate"]),
    (["-Werror", "-Wno-cache"], ["-W", "error", "-W", "no-cache"]), (["-xlisp", "-"], ["-x", "lisp", "-"]), (["-o", "-"], ["-o", "-"]),
    (["-###"], ["-###"]), (["-E", "-S", "-c", "-g", "-v"], ["-E", "-S", "-c", "-g", "-v"]),
    (["-t", "-1"], ["-t", "-1"]), (["--test", "M=1"], ["--test", "M=1"]), (["--", "-DM=1", "@x"], ["--", "-DM=1", "@x"]),
    (["-fPIC", "-shared", "-MMD", "-g3", "-Wall", "-Wextra"], ["-MD", "-g", "-W", "all", "-W", "extra"]), (["-ss.txt"], ["-s", "s.txt"]),
    (["-save-temps", "--save-temps"], ["--save-temps", "--save-temps"]), (["-dumpmachine", "-dumpversion"], ["--print=target", "--print=version"]),
])
def test_options_are_taken_apart_as_gcc_does(given: list[str], expected: list[str]) -> None:
    assert normalise(given) == expected


@pytest.mark.parametrize(("word", "hint"), [
    ("-fopenm", "-fopenmp"), ("-O7", "-O0"), ("-march", "-march=VALUE"), ("-fbogus", "-fno-bounds-check"), ("-Q", "--help"), ("-MX", "-MP"),
    ("-std=c99", "C11"), ("-Wl,-z,now", "$LDFLAGS"), ("-ffast-math", "reassociate"), ("-static", "-o NAME.a"), ("-isystem", "-I DIR"), ("-mtune=k8", "-march="),
])
def test_an_unknown_option_is_refused_with_a_hint(word: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        normalise([word])
    assert refused.value.diagnostics[0].code == "E901"
    assert word in refused.value.diagnostics[0].message
    assert hint in str(refused.value.diagnostics[0].hint)


def test_a_response_file_stands_for_its_words(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text("-DN=2 'a b'\n")
    outer.write_text(f"-O0 @{inner} -o \"x y.so\"")
    assert normalise([f"@{outer}", "@nowhere"]) == ["-O", "0", "-D", "N=2", "a b", "-o", "x y.so", "@nowhere"]


def test_a_response_file_that_names_itself_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.write_text(f"@{loop}")
    with pytest.raises(UsageError, match="nested deeper"):
        normalise([f"@{loop}"])


def test_a_response_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="E908"):
        normalise([f"@{tmp_path}/bytes"])


@pytest.mark.parametrize(("text", "words"), [
    ("a b\n\tc", ["a", "b", "c"]), ("'a b' \"c d\"", ["a b", "c d"]), (r"a\ b", ["a b"]), ("''", [""]), ("", []), ("a'b'c", ["abc"]),
    (r'"\""', ['"']),
])
def test_words_of_a_response_file(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_an_open_quote_is_refused() -> None:
    with pytest.raises(UsageError, match="quote"):
        split_words("'a")


def test_a_response_file_with_a_nul_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nul").write_bytes(b"gemm.toml -o x\0y")
    with pytest.raises(UsageError, match="NUL"):
        normalise([f"@{tmp_path}/nul"])
