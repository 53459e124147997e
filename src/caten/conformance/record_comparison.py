"""Two records compared: the cases that became worse. Several runtimes in one table."""
from __future__ import annotations

from collections.abc import Sequence

from .markdown_report import KINDS, LEGEND, LISTS, cell, score, table
from .record import Record, Row
from .verdicts import BAD

GOOD = ("PASS", "QUALITY")


def regressions(old: Record, new: Record, ran: frozenset[str] | None = None) -> list[str]:
    """A line for every case that became worse: that passed and does not, or that is at fault and was not. `ran`: the
    cases that were selected."""
    before = {r.id: r.verdict.status for r in old.rows}
    lines = []
    for r in new.rows:
        was, now = before.get(r.id), r.verdict.status
        if was is None or was == now or (ran is not None and r.id not in ran):
            continue
        if was == "PASS" or (was in GOOD and now not in GOOD) or (now in BAD and was not in BAD):
            lines.append(f"{r.id}: was {was}, is {now}" + (f": {r.verdict.note}" if r.verdict.note else ""))
    return lines


def merged(records: Sequence[Record]) -> str:
    """Several runtimes side by side, in one Markdown table."""
    names = [r.runtime for r in records]
    legend = f"{LEGEND} `(d)`: the runtime lacks the operator, which is decomposed."
    lines = [f"# Conformance of {', '.join([f'`{n}`' for n in names])}", "", legend, ""]
    lines += [f"- `{r.runtime}`: " + score(r).replace("\n", "; ") for r in records] + [""]
    body: list[tuple[str, ...]] = []
    titles = {kind: title for kind, (title, *_) in (*KINDS.items(), *LISTS.items())}
    for kind, title in titles.items():
        by_row: list[dict[str, list[Row]]] = [_rows(r, kind) for r in records]
        rows = list(dict.fromkeys([name for found in by_row for name in found]))
        if rows:
            body.append((f"**{title}**", *[cell(r.of_kind(kind)) for r in records]))
        for name in rows:
            marks = [" (d)" if kind == "operator" and name in (r.decomposed or ()) else "" for r in records]
            body.append((f"`{name}`", *[f"{text}{mark}" if (text := cell(found.get(name, []))) else ""
                                        for found, mark in zip(by_row, marks, strict=True)]))
    return "\n".join(lines) + "\n" + table(("", *names), body) + "\n"


def _rows(found: Record, kind: str) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for r in found.of_kind(kind):
        rows.setdefault(r.row, []).append(r)
    return rows
