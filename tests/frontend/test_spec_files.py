"""Spec files: reading them, and including others."""
import pytest
from loading import only, refusals, toml

from caten.core.text import show
from caten.errors import CatenError, UsageError
from caten.frontend.spec import load, read_file
from caten.options import Options
from spec_texts import GEMM


def test_a_missing_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="E001: cannot read"):
        read_file(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="E001"):
        read_file(tmp_path)
    with pytest.raises(UsageError, match="E001"):
        read_file("a\0b")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("caten.frontend.spec_files.MAX_BYTES", 1 << 20)
    (tmp_path / "big.toml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(CatenError, match=r"E002.*larger than 1 MiB"):
        read_file(tmp_path / "big.toml")
    with pytest.raises(CatenError, match="E002"):
        load(toml("#" * ((1 << 20) + 1)), Options())


def test_bytes_that_are_not_utf_8(tmp_path):
    (tmp_path / "f.toml").write_bytes(b'[composite]\nname = "\xc3\xa9\xff"\n')
    with pytest.raises(CatenError) as caught:
        read_file(tmp_path / "f.toml")
    found = caught.value.diagnostics[0]
    assert (found.code, found.place.line, found.place.column, found.message) == ("E003", 2, 10, "byte 0xff is not UTF-8")


def test_the_language_of_a_file_is_seen_from_its_text(tmp_path):
    (tmp_path / "a").write_text("; a comment\n(composite …)")
    (tmp_path / "b").write_text(GEMM)
    assert [read_file(tmp_path / n).lang for n in "ab"] == ["lisp", "toml"]


RELU = '''\
[composite]
name = "Relu"
inputs = ["X{float}[N]"]
outputs = ["Y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref Y i) (max (aref X i) 0.0)))"
'''
CALLER = '''\
[composite]
name = "Caller"
inputs = ["A{float}[M]", "B{float}[M]"]
outputs = ["B"]
[implementation]
code = "(call Relu A B)"
'''


def test_included_specs_can_be_called_but_are_not_compiled(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "relu.toml").write_text(RELU)
    (tmp_path / "main.toml").write_text('include = ["lib/relu.toml"]\n' + CALLER)
    program = only(read_file(tmp_path / "main.toml"))
    assert program.name == "Caller"
    assert "max (aref A" in show(program)


def test_specs_on_the_include_path_are_found_by_name(tmp_path):
    (tmp_path / "relu.toml").write_text(RELU)
    assert only(CALLER, Options(include_dirs=(str(tmp_path),))).name == "Caller"


@pytest.mark.parametrize("name", ["none.toml", "../outside.toml", "/etc/passwd", "lib", "a\\u0000b", "link.toml"])
def test_includes_stay_below_the_folders(tmp_path, name):
    (tmp_path / "outside.toml").write_text(RELU)
    (tmp_path / "here" / "lib").mkdir(parents=True)
    (tmp_path / "here" / "link.toml").symlink_to(tmp_path / "outside.toml")
    (tmp_path / "here" / "main.toml").write_text(f'include = ["{name}"]\n{GEMM}')
    assert refusals(read_file(tmp_path / "here" / "main.toml"))[0][:3] == ("E016", 1, 12)


def test_an_include_path_opens_another_folder(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "relu.toml").write_text(RELU)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "main.toml").write_text('include = ["relu.toml"]\n' + CALLER)
    assert only(read_file(tmp_path / "here" / "main.toml"), Options(include_dirs=(str(tmp_path / "lib"),))).name == "Caller"


def test_loops_of_includes(tmp_path):
    (tmp_path / "a.toml").write_text('include = ["b.toml"]\n' + GEMM)
    (tmp_path / "b.toml").write_text('include = ["a.toml"]\n' + RELU)
    (tmp_path / "c.toml").write_text('include = ["c.toml"]\n' + RELU)
    assert refusals(read_file(tmp_path / "a.toml"))[0][0] == "E017"
    assert refusals(read_file(tmp_path / "c.toml"))[0][0] == "E017"
