"""Reports.md: the record of a run for a person. Below the provenance it depends only on the runtime's operators and on
the verdicts."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from shlex import quote

from .record import Record, Row
from .verdicts import BAD, STATUSES

BELOW = "<!-- what follows is the same from run to run -->"
# Kind of case -> heading, what its rows and columns are.
KINDS: dict[str, tuple[str, str]] = {
    "operator": ("Operators", "operator"), "conversion": ("Conversions", "from ↓ to →"),
    "bitcast": ("Bits read as another type", "from ↓ to →"),
    "feature": ("Features", "feature"),
}
# Kinds with one column per row, as lists -> heading, the columns of the list.
LISTS: dict[str, tuple[str, str, str]] = {
    "sample": ("Samples", "operator", "sample"), "library": ("The library", "operator", "family"),
    "rejection": ("Rejections", "what must be refused", "name"),
}
# From best to worst: a cell has the worst status of its cases.
WORST = ("PASS", "QUALITY", "UNSUPPORTED", "XFAIL", "NOT-RUN", "XPASS", "UNDECLARED", "VACUOUS", "TIMEOUT", "CRASH",
         "FAIL")
LEGEND = ("`ok`: all cases of the cell pass. Otherwise the worst status, with the number of cases that have it: "
          "`FAIL 2/7`. Empty: the combination does not exist.")
DECOMPOSED = ("`native`: the runtime has this operator; `decomposed`: caten writes it in terms of operators that the "
              "runtime has.")
MOST = 200                  # causes that are written out
NUMBER = re.compile(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|\binf\b|\bnan\b)j?", re.IGNORECASE)


def markdown(found: Record) -> str:
    """The whole text."""
    parts = [f"# Conformance of the runtime `{found.runtime}`", _provenance(found), BELOW, _score(found)]
    parts += [part for kind in (*KINDS, *LISTS) if (part := section(found, kind))]
    parts += [_ulps(found), _failures(found), _gap(found)]
    return "\n\n".join([p for p in parts if p]) + "\n"


def below(text: str) -> str:
    """What follows the block of provenance."""
    return text.partition(BELOW)[2]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(["| " + " | ".join([str(c).replace("|", "\\|").replace("\n", " ") for c in line]) + " |"
                      for line in lines])


def _provenance(found: Record) -> str:
    return "## Provenance\n\n" + table(("", ""), [(k, f"`{v}`") for k, v in found.provenance.items()])


def score(found: Record) -> str:
    """The score in a line, and the gap in the next one."""
    counts, total = found.counts(), len(found.rows)
    good = counts.get("PASS", 0) + counts.get("QUALITY", 0)
    gap = [f"{n} {s}" for s, n in counts.items() if s != "PASS"]
    passed = f"{counts.get('PASS', 0)} of {total} cases pass, {_percent(good, total)} % within the bounds"
    return f"{passed}\ngap: {', '.join(gap) or 'none'}"


def _percent(part: int, total: int) -> str:
    """Rounded down, so that 100 means all."""
    return f"{1000 * part // max(1, total) / 10:.1f}"


def _score(found: Record) -> str:
    first, second = score(found).split("\n")
    rows = [(s, str(n), STATUSES[s]) for s, n in found.counts().items()]
    return f"## Score\n\n**{first}.**\n**{second[0].upper()}{second[1:]}.**\n\n" + table(("status", "cases", "meaning"),
                                                                                         rows)


def cell(rows: Sequence[Row]) -> str:
    """The text of a cell: `ok`, or the worst status with its count."""
    if not rows:
        return ""
    counts = Counter([r.verdict.status for r in rows])
    worst = max(counts, key=WORST.index)
    return "ok" if worst == "PASS" else f"{worst} {counts[worst]}/{len(rows)}"


def section(found: Record, kind: str) -> str:
    """The matrix or the list of one kind of case."""
    rows = found.of_kind(kind)
    if not rows:
        return ""
    cells: dict[tuple[str, str], list[Row]] = {}
    for r in rows:
        cells.setdefault((r.row, r.column), []).append(r)
    counts = ", ".join([f"{n} {s}" for s, n in found.counts(kind).items()])
    if kind in LISTS:
        title, *head = LISTS[kind]
        listed = [(f"`{row}`", f"`{column}`", cell(cases)) for (row, column), cases in cells.items()]
        return f"## {title}\n\n{counts}.\n\n" + table((*head, "result"), listed)
    title, corner = KINDS[kind]
    names, columns = list(dict.fromkeys([r for r, _ in cells])), list(dict.fromkeys([c for _, c in cells]))
    body = [[f"`{n}`", *[cell(cells.get((n, c), [])) for c in columns]] for n in names]
    head, legend = [corner, *columns], LEGEND
    if kind == "operator" and found.decomposed is not None:
        head.insert(1, "made")
        for name, line in zip(names, body, strict=True):
            line.insert(1, "decomposed" if name in found.decomposed else "native")
        legend = f"{LEGEND} {DECOMPOSED}"
    return f"## {title}\n\n{counts}. {legend}\n\n" + table(head, body)


def _ulps(found: Record) -> str:
    """The worst error of every operator on every float type."""
    worst: dict[tuple[str, str], float] = {}
    for r in found.of_kind("operator"):
        if r.verdict.ulp is not None:
            worst[r.row, r.column] = max(worst.get((r.row, r.column), 0.0), r.verdict.ulp)
    names = [n for n in dict.fromkeys([n for n, _ in worst]) if any(u > 0 for (m, _), u in worst.items() if m == n)]
    columns = list(dict.fromkeys([c for _, c in worst]))
    if not names:
        return ""
    body = [(f"`{n}`", *[f"{worst[n, c]:.2f}" if (n, c) in worst else "" for c in columns]) for n in names]
    return ("## Worst error in units in the last place\n\nAgainst the exact value, or against the correctly rounded "
            "result where the operator "
            "promises that. Operators that are exact everywhere are left out.\n\n" + table(("operator", *columns),
                                                                                           body))


def command_of(found: Record, row: Row) -> str:
    """The command that runs one case again, with the same data, and leaves these reports alone."""
    return f"{found.provenance['again']} --filter {quote(row.id)} -o \"$(mktemp -d)\""


def causes(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows with the same status, and with notes that differ only in numbers."""
    found: dict[tuple[str, str], list[Row]] = {}
    for r in rows:
        found.setdefault((r.verdict.status, NUMBER.sub("0", r.verdict.note)), []).append(r)
    return list(found.values())


def _failures(found: Record) -> str:
    """A section for each cause, with the command of its first case."""
    alike = causes([r for r in found.rows if r.verdict.status in BAD])
    if not alike:
        return "## Failures\n\nNone."
    parts = [_cause(found, rows) for rows in alike[:MOST]]
    more = [f"… and {len(alike) - MOST} more causes, in reports.json."] if len(alike) > MOST else []
    return "\n\n".join(["## Failures", *parts, *more])


def _cause(found: Record, rows: Sequence[Row]) -> str:
    first = rows[0]
    others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    parts = [f"### {first.id}{others}: {first.verdict.status}", _plain(first.verdict.note)]
    if others:
        places: dict[str, dict[str, int]] = {}
        for r in rows:
            columns = places.setdefault(f"{r.kind}/{r.row}", {})
            columns[r.column] = columns.get(r.column, 0) + 1
        parts.append("\n".join([f"- `{place}`: " + ", ".join([f"{c} ({n})" if n > 1 else c for c, n in counts.items()])
                                for place, counts in places.items()]))
    return "\n\n".join([*parts, f"```sh\n{command_of(found, first)}\n```"])


def _plain(note: str) -> str:
    return note.replace("<", "&lt;").strip() or "(no more is known)"


def _gap(found: Record) -> str:
    """The cases that were not executed or not supported, with the reasons."""
    reasons = Counter([(r.verdict.status, r.kind, r.verdict.note) for r in found.rows
                       if r.verdict.status in ("UNSUPPORTED", "XFAIL", "NOT-RUN")])
    if not reasons:
        return "## Coverage gap\n\nNone: every case there is was executed."
    body = [(s, k, str(n), why) for (s, k, why), n in reasons.items()]
    missing = sum(reasons.values())
    return (f"## Coverage gap\n\n**{missing} of {len(found.rows)} cases say nothing about the runtime.**\n\n"
            + table(("status", "of", "cases", "why"), body))
