"""Records of caten tune: their keys, their files, and what is made of damaged ones."""
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from caten import attach, driver, loading
from caten.errors import CatenError, Diagnostic
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.runtime import tuning_records
from caten.runtime.tuning_records import Record
from spec_texts import GEMM

RECORD = Record("a" * 64, "Gemm", "clang", "OMP=1", "Some CPU", "clang-19", {"gemm.rows": 4}, "(schedule (unroll i))", ({"M": 3, "a": 0.5},),
                (2.0,), (1.0,), 2.0, "2024-01-01T00:00:00+00:00")
LATER = replace(RECORD, date="2024-01-02T00:00:00+00:00", gain=3.0)
OTHER = replace(RECORD, key="b" * 64, op="Axpy")


def key(text: str = GEMM, **changes: object) -> str:
    options = replace(Options(use_cache=False, cc="gcc"), **changes)  # type: ignore[arg-type]
    program = loading.load_programs(SpecText("gemm.toml", text, "toml"), options)[0]
    return tuning_records.key(driver.unscheduled(program, options), attach.runtime_for([program], options))


def silent(_: Diagnostic) -> None:
    raise AssertionError("nothing is wrong with these files")


def test_what_does_not_change_the_code_does_not_change_the_key() -> None:
    assert key(GEMM) == key("\n\n# the same\n" + GEMM) == key(GEMM, opt=3) == key(GEMM, seed=7)


@pytest.mark.parametrize("changes", [{"binds": (("M", 8),)}, {"config": (("MARCH", "x86_64_v2"),)}, {"runtime": "gcc"}, {"config": (("OPT", "1"),)},
                                     {"cflags": ("-O1",)}, {"strided": ("A",)}])
def test_what_changes_the_code_changes_the_key(changes: dict[str, object]) -> None:
    assert key(**changes) != key()


def test_another_cpu_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(tuning_records.cpu, "model", lambda: "another")
    assert key() != before


def test_a_collection_reads_back(tmp_path: Path) -> None:
    tuning_records.write(tmp_path / "a.json", [RECORD, OTHER])
    assert tuning_records.read(tmp_path / "a.json") == [RECORD, OTHER]
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_the_later_of_two_counts() -> None:
    assert tuning_records.merged([LATER, RECORD, OTHER]) == [OTHER, LATER]
    assert tuning_records.merged([RECORD, LATER]) == [LATER]


def test_the_later_of_two_places_is_found(tmp_path: Path) -> None:
    tuning_records.keep(RECORD, tmp_path)
    tuning_records.write(tmp_path / "g.tune.json", [OTHER, LATER])
    assert tuning_records.find(RECORD.key, tmp_path, tmp_path / "g.tune.json", silent) == LATER
    assert tuning_records.find(RECORD.key, tmp_path, None, silent) == RECORD
    assert tuning_records.find("c" * 64, tmp_path, tmp_path / "g.tune.json", silent) is None
    assert tuning_records.find(RECORD.key, None, tmp_path / "missing", silent) is None


def test_a_record_is_removed_from_both_places(tmp_path: Path) -> None:
    tuning_records.keep(RECORD, tmp_path)
    tuning_records.write(tmp_path / "g.tune.json", [OTHER, LATER])
    tuning_records.forget(RECORD.key, tmp_path, tmp_path / "g.tune.json")
    assert tuning_records.stored(tmp_path, silent) == []
    assert tuning_records.read(tmp_path / "g.tune.json") == [OTHER]
    tuning_records.forget(OTHER.key, tmp_path, tmp_path / "g.tune.json")
    assert not (tmp_path / "g.tune.json").exists()


GOOD = json.loads(tuning_records.text([RECORD]))


@pytest.mark.parametrize("document", [
    "", "[]", "null", "{}", '{"schema_version": 9, "records": []}', '{"schema_version": 1, "records": [{}]}', '{"schema_version": 1, "records": 3}',
    *[json.dumps(GOOD | {"records": [GOOD["records"][0] | change]}) for change in (
        {"key": "../../etc/passwd"}, {"key": 3}, {"gain": "fast"}, {"sizes": 3}, {"choices": [1]}, {"schedule": None})],
])
def test_other_files_are_refused_and_not_used(tmp_path: Path, document: str) -> None:
    path = tmp_path / tuning_records.FOLDER / f"{RECORD.key}.json"
    path.parent.mkdir()
    path.write_text(document)
    with pytest.raises(CatenError, match="E932"):
        tuning_records.read(path)
    heard: list[Diagnostic] = []
    assert tuning_records.find(RECORD.key, tmp_path, None, heard.append) is None
    assert [d.code for d in heard] == ["E652"]


def test_what_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(CatenError, match="E902"):
        tuning_records.read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CatenError, match="E903"):
        tuning_records.write(tmp_path / "file" / "a.json", [RECORD])
