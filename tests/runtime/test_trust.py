"""A runtime file that is wrong is named as what is at fault, and harms no other."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten.cli.boundary import guarded
from caten.errors import CatenError
from caten.runtime import discover, plugin_checks

HEAD = """
from caten.runtime.discover import base
from caten.runtime.protocol import Flag, Unavailable
class Mine(base("numpy")):
    name = "mine"
"""
SPEC = "(composite copy ((a{float}[]) -> (s{float}[])) (setf s a))\n"


def mine(folder: Path, body: str, head: str = HEAD) -> str:
    (folder / "mine.py").write_text(head + "".join([f"    {line}\n" for line in body.split("\n")]))
    return str(folder / "mine.py")


@pytest.mark.parametrize(("body", "said", "hint"), [
    ("types = {'f23': 'float'}", "`types` has 'f23', which is no element type", "did you mean 'f32'?"),
    ("types = ['f32']", "`types` is a list, and must be a dict", None),
    ("types = {'f32': 3}", "`types` has an int for 'f32'", None),
    ("ops = {'tnah': 'tanh'}", "`ops` has 'tnah', which is no operator", "did you mean 'tanh'?"),
    ("marks = {'sideways': ''}", "`marks` has 'sideways', which is no loop mark", None),
    ("config = {'a b': Flag(False)}", "`config` has 'a b', which --config cannot name", "a key has letters, digits and _"),
    ("config = {'opt': Flag(False), 'OPT': Flag(True)}", "`config` has 'opt' and 'OPT', which are one key to --config", None),
    ("config = {'A': 3}", "'int' object has no attribute 'default'", None),
    ("skips = {3: 'known'}", "`skips` has 3, which is no pattern", None),
    ("denormals = 'no'", "`denormals` is a str, and must be a bool", None),
    ("name = 'x | y'", "`name` is 'x | y'", "a name has letters, digits, and _ . + -"),
    ("def __init__(self, a, b, c): pass", "missing 3 required positional arguments", None),
])
def test_tables_that_cannot_be_are_refused(body: str, said: str, hint: str | None, tmp_path: Path) -> None:
    with pytest.raises(CatenError) as info:
        discover.find(mine(tmp_path, body))
    first = info.value.diagnostics[0]
    assert (first.code, first.hint) == ("E603", hint)
    assert said in first.message


@pytest.mark.parametrize(("head", "said"), [
    ("import sys\nsys.exit(3)\n", r"mine\.py:2:1: E603: .* SystemExit: 3"),
    ("from caten.runtime.discover import find\nfind(__file__)\n", "derives from itself"),
])
def test_a_file_that_cannot_be_loaded_is_refused_each_time(head: str, said: str, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(CatenError, match=said):
            discover.find(mine(tmp_path, "", head))


@pytest.mark.parametrize(("body", "said"), [
    ("def render(self, *p): return None", "`render` gave None, and must give str"),
    ("def render(self, *p): return 1 // 0", "line 6, in render: ZeroDivisionError"),
    ("def render(self, *p): raise SystemExit(0)", "line 6, in render: SystemExit: 0"),
    ("def trailer(self, m): return b''", "`trailer` gave a bytes, and must give str"),
    ("def compile(self, s, o, k): o.write_text('')", "`compile` gave None, and must give CompileRecord"),
    ("def identity(self): raise BrokenPipeError", "line 6, in identity: BrokenPipeError"),
    ("def configure(self, *a): return None", "`configure` gave None, and must give Mine"),
    ("def machine(self): return super().machine().replace(vector_bytes=24)", "`machine` says vector_bytes=24"),
    ("def machine(self): return super().machine().replace(registers=0)", "`machine` says registers=0"),
    ("def load(self, a, m): raise KeyError('x')", "line 6, in load: KeyError: 'x'"),
])
def test_what_a_method_does_wrong_is_the_fault_of_its_file(body: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                           capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("copy.lisp").write_text(SPEC)
    assert guarded(["run", "copy.lisp", "--runtime", mine(tmp_path, body), "a=1"]) == (1 if "load" in body else 3)
    err = capfd.readouterr().err
    assert said in err
    assert "E605" in err


def test_results_are_checked_wherever_a_method_is_called(tmp_path: Path) -> None:
    runtime = discover.find(mine(tmp_path, "def identity(self): return 3"))
    with pytest.raises(CatenError, match="`identity` gave an int, and must give str"):
        runtime.configure().identity()
    assert isinstance(discover.find("numpy").identity(), str)


@pytest.mark.parametrize(("body", "code"), [
    ("raise ValueError('boo')", "E605"), ("raise SystemExit(0)", "E605"), ("raise Unavailable('')", "E610"), ("return None", None),
])
def test_whether_a_runtime_can_be_used(body: str, code: str | None, tmp_path: Path) -> None:
    said = plugin_checks.why_unavailable(discover.find(mine(tmp_path, f"def available(self): {body}")))
    assert (said.code if said else None) == code
    assert said is None or said.message


def test_one_that_fails_is_listed_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    mine(tmp_path, "def available(self): raise ValueError('boo')")
    monkeypatch.setenv("CATEN_RUNTIME_PATH", str(tmp_path))
    assert guarded(["runtimes"]) == 0
    out = capfd.readouterr().out
    assert "ValueError: boo" in next(line for line in out.split("\n") if line.startswith("mine       broken"))
    assert "numpy      ready" in out


def test_a_fault_of_ours_is_not_blamed_on_a_runtime() -> None:
    with pytest.raises(CatenError) as info:
        discover.find("no such runtime")
    assert plugin_checks.blamed(info.value, discover.builtin_folder()) is None


def test_the_machine_of_every_runtime_can_be() -> None:
    for listed in discover.listing():
        assert listed.runtime is not None
        assert listed.runtime.machine().vector_bytes >= 1
