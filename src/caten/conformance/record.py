"""The record of a run, reports.json: where it comes from, and the verdict on every case. `reports.schema.json` is
the published schema."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from .. import documents
from ..errors import Diagnostic, UsageError
from ..frozen import frozen
from .verdicts import STATUSES, Verdict

SCHEMA_VERSION = 1


@frozen
class Row:
    """One case: where it stands in the report, and its verdict."""

    kind: str
    row: str
    column: str
    name: str
    verdict: Verdict

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.row}/{self.column}/{self.name}"


@frozen
class Record:
    """One run. `provenance`: facts by name; `decomposed`: the operators that the runtime lacks, and that are written in
    terms of others (None in a record that does not say)."""

    provenance: Mapping[str, Any]
    rows: tuple[Row, ...]
    decomposed: tuple[str, ...] | None = None

    @property
    def runtime(self) -> str:
        return str(self.provenance["runtime"])

    def counts(self, kind: str | None = None) -> dict[str, int]:
        """How many cases have each status, in the order of the table of statuses."""
        found = Counter([r.verdict.status for r in self.rows if kind in (None, r.kind)])
        return {s: found[s] for s in STATUSES if found[s]}

    def of_kind(self, kind: str) -> tuple[Row, ...]:
        return tuple([r for r in self.rows if r.kind == kind])


def to_json(found: Record) -> str:
    """The text of the file, a cell of the report on each line: the same bytes for the same record."""
    cells: dict[tuple[str, str, str], dict[str, Any]] = {}
    for r in found.rows:
        cells.setdefault((r.kind, r.row, r.column), {})[r.name] = _said(r.verdict)
    facts: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "provenance": found.provenance, "counts": found.counts()}
    if found.decomposed is not None:
        facts["decomposed"] = found.decomposed
    head = json.dumps(facts, indent=1, ensure_ascii=False)
    lines = [json.dumps({"kind": k, "row": r, "column": c, "cases": cases}, ensure_ascii=False) for (k, r, c),
             cases in cells.items()]
    return head.removesuffix("\n}") + ',\n "cells": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def _said(verdict: Verdict) -> Any:
    """A status alone where there is nothing else to say."""
    if not verdict.note and verdict.ulp is None:
        return verdict.status
    said: dict[str, Any] = {"status": verdict.status}
    if verdict.note:
        said["note"] = verdict.note
    if verdict.ulp is not None:
        said["ulp"] = verdict.ulp if verdict.ulp < float("inf") else "infinite"
    return said


def read(path: str) -> Record:
    """The record that a file holds. UsageError E850 where it holds none."""
    try:
        content = documents.read(Path(path), schema())
    except (OSError, ValueError) as problem:
        raise UsageError(Diagnostic("E850",
                                    f"{path} is no record of caten test-runtime: "
                                    f"{getattr(problem, 'strerror', None) or problem}",
                                    hint="name a reports.json")) from None
    return Record(content["provenance"],
                  tuple([Row(c["kind"], c["row"], c["column"], name, _verdict(said)) for c in content["cells"]
                         for name, said in c["cases"].items()]),
                  tuple(content["decomposed"]) if "decomposed" in content else None)


def _verdict(said: Any) -> Verdict:
    status, note, ulp = (said, "", None) if isinstance(said, str) else (said["status"], said.get("note", ""),
                                                                        said.get("ulp"))
    return Verdict(status, note, float("inf") if ulp == "infinite" else ulp)


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema."""
    loaded: dict[str, Any] = json.loads(resources.files("caten").joinpath("reports.schema.json").read_text("utf-8"))
    return loaded
