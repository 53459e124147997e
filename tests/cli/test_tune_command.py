"""`caten tune`, its records, and what -O3 makes of them."""
from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from caten.cli import outputs
from caten.cli.boundary import guarded
from caten.runtime import tuning_records
from caten.tuning import search
from caten.tuning.candidates import Effort, Shop
from spec_texts import AXPY

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
TARGET = ("-r", "gcc", "--config", "MARCH=x86_64_v2")
TUNE = ("tune", "axpy.toml", *TARGET, "--sizes", "N=1000", "--budget", "60")                # which ends long before that
FASTER = '"maps.vectors": 4'
WITHOUT_REST = (0.0,) * len(search.RESTS)                                # times that are made up are the same after a rest


def made_up(self: Shop, builts: Mapping[str, object], number: int, effort: Effort, pages: bool = False) -> dict[str, list[float]]:
    """Seconds: with four vectors at once half of what everything else takes."""
    taken = {s: [1.0 if self._programs[s] is not self._programs[self.present.schedule] and "split i 16" in s else 2.0] * 5 for s in builts}
    self.seconds |= {(s, number): samples[0] for s, samples in taken.items()}
    return taken


@pytest.fixture(scope="session")
def after_tuning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with a record for axpy.toml: one search for all tests."""
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "axpy.toml").write_text(AXPY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CC", "gcc")
        patch.setenv("CATEN_CACHE_DIR", str(folder / "cache"))
        patch.setattr(Shop, "_sampled", made_up)
        patch.setattr(search, "RESTS", WITHOUT_REST)
        assert guarded([*TUNE, "-o", "said"]) == 0
    assert (folder / "said").read_text().startswith("Axpy  x2.00  maps.vectors = 4")
    return folder / "cache"


@pytest.fixture
def tuned(caten: Any, folder: Path, after_tuning: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder with a record for axpy.toml, in a cache of its own."""
    monkeypatch.setenv("CC", "gcc")
    monkeypatch.setattr(Shop, "_sampled", made_up)
    monkeypatch.setattr(search, "RESTS", WITHOUT_REST)
    shutil.copytree(after_tuning, folder.parent / "cache", dirs_exist_ok=True)
    return caten


@pytest.fixture
def searched(tuned: Any, folder: Path) -> Any:
    """The same without the record: a search finds every library that it asks for."""
    for path in stored(folder):
        path.unlink()
    return tuned


def c(caten: Any, *options: str) -> str:
    result = caten("render", "axpy.toml", *TARGET, *options, "-o", "-")
    assert result.code == 0
    text: str = result.out
    return text


def stored(folder: Path) -> list[Path]:
    return sorted((folder.parent / "cache" / tuning_records.FOLDER).glob("*.json"))


def test_a_tiny_search_ends_and_says_what_came_of_it(caten: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc")
    result = caten(*TUNE[:-1], "1", "--json", "out.json")
    assert result.code == 0, result.err
    (outcome,) = json.loads(Path("out.json").read_text())
    assert outcome["op"] == "Axpy"
    assert outcome["measured"] > 0
    assert result.out.count("\n") == 1


def test_o3_with_a_record_is_other_code_that_is_right(tuned: Any) -> None:
    assert c(tuned, "-O3") != c(tuned, "-O2")
    tested = tuned("test", "axpy.toml", "-O3", *TARGET)
    assert tested.code in (0, 5), tested.err                                   # a spec without tests has none to pass
    assert tuned("axpy.toml", "-O3", *TARGET, "--test", "N=1003").code == 0


def test_o3_without_a_record_is_o2_and_says_so(caten: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc")
    assert c(caten, "-O3") == c(caten, "-O2")
    assert "no record of caten tune" in caten("render", "axpy.toml", *TARGET, "-O3", "--debug", "1", "-o", "-").err


def test_the_levels_differ_in_code(tuned: Any) -> None:
    texts = [tuned("render", "gemm.toml" if level == 1 else "axpy.toml", *TARGET, f"-O{level}", "-o", "-").out for level in range(4)]
    assert len(set(texts)) == 4


@pytest.mark.parametrize("options", [("-DN=8",), ("-r", "clang"), ("--config", "MARCH=x86_64_v3")])
def test_a_record_is_for_one_kernel_and_target(tuned: Any, options: tuple[str, ...]) -> None:
    assert c(tuned, "-O3", *options) == c(tuned, "-O2", *options)


def test_remembered_builds_see_new_records(searched: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, runs = outputs.make, [0]

    def counted(*arguments: Any) -> int:
        runs[0] += 1
        return real(*arguments)
    monkeypatch.setattr(outputs, "make", counted)
    texts = []
    for place in ((), ("--beside",)):
        for _ in range(2):
            assert searched("axpy.toml", "-O3", *TARGET, "-o", "a.c").code == 0
        texts.append(Path("a.c").read_text())
        assert searched(*TUNE, *place).code == 0
        assert searched("axpy.toml", "-O3", *TARGET, "-o", "a.c").code == 0
        texts.append(Path("a.c").read_text())
        for path in stored(folder):
            path.unlink()
    assert runs[0] == 3                                          # without a record, with one, and with one beside the spec
    assert texts[0] == texts[2] != texts[1] == texts[3]


def test_records_beside_the_spec(searched: Any, folder: Path) -> None:
    assert searched(*TUNE, "--beside").code == 0
    assert stored(folder) == []
    assert FASTER in Path("axpy.tune.json").read_text()
    assert c(searched, "-O3") != c(searched, "-O2")
    assert "axpy.tune.json" in searched("axpy.toml", "-O3", *TARGET, "-o", "a.c", "-MD", "-MF", "-").out


def test_records_are_shown(tuned: Any) -> None:
    for files in ((), ("axpy.toml",)):
        shown = tuned("tune", "--show", *files).out
        assert "Axpy  gcc MARCH=x86_64_v2  x2.00  (N=1000)  maps.vectors = 4" in shown
    assert tuned("tune", "--show", "gemm.toml").out == "no records\n"
    assert json.loads(tuned("tune", "--show", "--json", "-").out)["records"][0]["op"] == "Axpy"


def test_records_travel(tuned: Any, folder: Path) -> None:
    assert tuned("tune", "--export", "out.json").code == 0
    tuned_code = c(tuned, "-O3")
    for path in stored(folder):
        path.unlink()
    assert c(tuned, "-O3") != tuned_code
    assert tuned("tune", "--merge", "out.json").out == "1 records read, 1 taken, 1 now\n"
    assert c(tuned, "-O3") == tuned_code
    assert tuned("tune", "--merge", "out.json", "out.json").out == "1 records read, 0 taken, 1 now\n"


def test_a_damaged_record_is_not_used(tuned: Any, folder: Path) -> None:
    stored(folder)[0].write_text("broken")
    result = tuned("render", "axpy.toml", *TARGET, "-O3", "-o", "-")
    assert result.out == c(tuned, "-O2")
    assert "E652" in result.err
    assert "E652" not in tuned("render", "axpy.toml", *TARGET, "-O3", "-Wno-records", "-o", "-").err


def test_a_record_that_does_not_apply_is_not_used(tuned: Any, folder: Path) -> None:
    path = stored(folder)[0]
    document = json.loads(path.read_text())
    document["records"][0]["schedule"] = "(schedule (split nothing 4))"
    path.write_text(json.dumps(document))
    result = tuned("render", "axpy.toml", *TARGET, "-O3", "-o", "-")
    assert result.code == 0
    assert result.out == c(tuned, "-O2")
    assert "E653" in result.err


def test_a_record_goes_when_nothing_is_faster_any_more(tuned: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def equal(self: Shop, builts: Mapping[str, object], number: int, effort: Effort, pages: bool = False) -> dict[str, list[float]]:
        return {s: [2.0] * 5 for s in builts}
    monkeypatch.setattr(Shop, "_sampled", equal)
    assert "nothing faster" in tuned(*TUNE).out
    assert stored(folder) == []


def test_ctrl_c_keeps_what_was_found(searched: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Shop, builts: Mapping[str, object], number: int, effort: Effort, pages: bool = False) -> dict[str, list[float]]:
        if effort is self.short and any("split i 16" in s for s, _ in self.seconds):             # it was measured, and the search goes on
            raise KeyboardInterrupt
        return made_up(self, builts, number, effort)
    monkeypatch.setattr(Shop, "_sampled", interrupted)
    monkeypatch.setattr(search, "GROUP", 1)
    result = searched(*TUNE)
    assert result.code == 130
    assert "x2.00  maps.vectors = 4" in result.out
    assert "interrupted" in result.out
    assert len(stored(folder)) == 1


def test_a_schedule_of_its_own_is_not_searched(caten: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc")
    Path("mine.lisp").write_text("(schedule (split i 8))")
    result = caten("tune", "axpy.toml", *TARGET, "-s", "mine.lisp", "--sizes", "N=8")
    assert result.code == 0
    assert "its own schedule" in result.out


def test_without_a_cache_records_have_no_place(tuned: Any) -> None:
    assert tuned("axpy.toml", "-O3", *TARGET, "--no-cache", "-o", "a.c").code == 0
    assert Path("a.c").read_text() == c(tuned, "-O2")


@pytest.mark.parametrize(("arguments", "code", "word"), [
    ((), 2, "E902"), (("--show", "--merge", "a.json"), 2, "E933"), (("--beside", "--show"), 2, "E933"), (("--merge",), 2, "E933"),
    (("--merge", "axpy.toml"), 2, "E932"), (("--merge", "missing.json"), 2, "E902"), (("--merge", "gone", "gone.json"), 2, "E902"),
    (("axpy.toml", "--no-cache", *TARGET), 2, "E933"), (("axpy.toml", "--budget", "0"), 2, "--budget"), (("axpy.toml", "--sizes", "N=-1"), 2, "E905"),
])
def test_what_cannot_be_tuned(caten: Any, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, word: str) -> None:
    monkeypatch.setenv("CC", "gcc")
    result = caten("tune", *arguments)
    assert result.code == code
    assert word in result.err
    assert "Traceback" not in result.err


def test_a_later_stage_is_not_tuned(caten: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc")
    Path("axpy.lisp").write_text(caten("schedule", "axpy.toml", *TARGET, "-O0", "-o", "-").out)
    assert "E934" in caten("tune", "axpy.lisp").err
