"""The tables of files of results: `python -m benchmarks.table build/bench-*.json [--write docs/performance.md]`.

A file is what one of `python -m benchmarks`, `benchmarks.build_times`, `benchmarks.levels` and `benchmarks.forms`
wrote; all but the first make their tables themselves.

A ratio is the time of the best peer by that of caten: of every run by itself, then the median of the runs, with the
interval that a bootstrap over the rounds gives. On one thread all peers took turns in one process, so rounds are
resampled as they were; else the samples of both by themselves.
"""
from __future__ import annotations

import argparse
import json
import statistics as plain
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from caten.benchmarking import statistics
from caten.benchmarking.limits import limits_from
from caten.benchmarking.statistics import Estimate

from . import build_times, forms, levels
from .worker import KERNEL

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
Facts = list[dict[str, Any]]           # of one peer on one workload: an entry for each run


@dataclass(frozen=True)
class Line:
    """One workload. `best`: the fastest peer of those in every run; `times`: the median seconds of everybody, of the
    fastest first; `failed`: why others have none; `kernel`: of the C function alone; `ratio` is None where caten or
    every peer is missing."""

    workload: str
    odd: bool
    flops: int
    bytes: int
    best: str | None
    times: dict[str, float]
    failed: dict[str, str]
    kernel: float | None
    ratio: Estimate | None

    def as_json(self) -> dict[str, Any]:
        return {"workload": self.workload, "odd": self.odd, "best": self.best, "times": self.times,
                "failed": self.failed, "kernel": self.kernel,
                "ratio": self.ratio.as_json() if self.ratio else None}


def lines(result: dict[str, Any]) -> list[Line]:
    """One line for each workload of a file that `python -m benchmarks` wrote."""
    runs = [_merged(parts) for parts in result["runs"]]
    # a process may have crashed on the way
    names = [name for name in runs[0] if all(name in run for run in runs)]
    return [_line(name, [run[name] for run in runs], result["threads"] == 1) for name in names]


def _merged(parts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The processes of one run as one: by workload, the facts of all peers."""
    merged: dict[str, dict[str, Any]] = {}
    for part in parts:
        for row in part["rows"]:
            merged.setdefault(row["workload"], row | {"peers": {}})["peers"].update(row["peers"])
    return merged


def _line(name: str, rows: list[dict[str, Any]], together: bool) -> Line:
    peers = list(dict.fromkeys([peer for row in rows for peer in row["peers"]]))
    facts: dict[str, Facts] = {peer: [row["peers"][peer] for row in rows if peer in row["peers"]] for peer in peers}
    measured = {peer: found for peer in peers if (found := [f for f in facts[peer] if "seconds" in f])}
    failed = {peer: next(f["failed"] for f in facts[peer] if "failed" in f) for peer in peers if peer not in measured}
    medians = {peer: plain.median([plain.median(_clean(fact)) for fact in found]) for peer, found in measured.items()}
    kernel = medians.pop(KERNEL, None)
    times = {peer: medians[peer] for peer in sorted(medians, key=medians.__getitem__)}
    # slow ones are in the first run only
    best = next((peer for peer in times if peer != "caten" and len(measured[peer]) == len(rows)), None)
    whole = "caten" in measured and len(measured["caten"]) == len(rows)
    ratio = _ratio(measured[best], measured["caten"], together) if best and whole else None
    return Line(name, rows[0]["odd"], rows[0]["flops"], rows[0]["bytes"], best, times, failed, kernel, ratio)


def _ratio(peer: Facts, own: Facts, together: bool) -> Estimate:
    if not together:
        return statistics.ratio([_clean(f) for f in peer], [_clean(f) for f in own])
    pairs = [_pairs(a, b) for a, b in zip(peer, own, strict=True)]
    return statistics.paired_ratio([[a for a, _ in run] for run in pairs], [[b for _, b in run] for run in pairs])


def _pairs(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[float, float]]:
    """The samples of two peers by round, as far as both were measured: those of clean rounds, or all where no round
    is clean for both."""
    # a slow peer has fewer rounds
    rounds = list(zip(a["seconds"], b["seconds"], a["clean"], b["clean"], strict=False))
    return [(x, y) for x, y, p, q in rounds if p and q] or [(x, y) for x, y, _, _ in rounds]


def _clean(fact: dict[str, Any]) -> list[float]:
    return [s for s, clean in zip(fact["seconds"], fact["clean"], strict=True) if clean] or fact["seconds"]


def mean(found: list[Line]) -> Estimate | None:
    """The geometric mean of the ratios of the workloads that count."""
    ratios = [line.ratio for line in found if line.ratio and not line.odd]
    return statistics.geometric_mean(ratios) if ratios else None


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """What a file of results comes to."""
    found = lines(result)
    overall = mean(found)
    return {"geometric_mean": overall.as_json() if overall else None, "workloads": [line.as_json() for line in found]}


def markdown(result: dict[str, Any]) -> str:
    """A table, and above it where the figures come from."""
    found, overall = lines(result), mean(lines(result))
    threads = "one thread" if result["threads"] == 1 else f"{result['threads']} threads"
    text = [f"### {threads[0].upper()}{threads[1:]}", "", *_provenance(result), ""]
    if overall:
        text += [f"Geometric mean of the ratios, without odd sizes: **{overall.value:.2f}** ({overall.low:.2f} … "
                 f"{overall.high:.2f}).", ""]
    for title, odd in (("workload", False), ("odd size or edge", True)):
        rows = [line for line in found if line.odd == odd]
        if rows:
            text += [f"| {title} | best peer | ms | caten, ms | ratio | 95 % interval | caten's rate | others, ms |",
                     "|---|---|--:|--:|--:|---|--:|---|",
                     *[_row(line) for line in rows], ""]
    return "\n".join(text)


def percentiles(result: dict[str, Any]) -> str:
    """How the ratios to the best peer are spread, by family: a table."""
    families: dict[str, list[float]] = {}
    for line in lines(result):
        if line.ratio:
            families.setdefault(line.workload.split(" ")[0], []).append(line.ratio.value)
    text = ["| family | sizes | 5 % | 25 % | median | below 0.7 |", "|---|--:|--:|--:|--:|--:|"]
    for family, ratios in families.items():
        at = [np.quantile(ratios, q) for q in (0.05, 0.25, 0.5)]
        text.append(f"| {family} | {len(ratios)} | {at[0]:.2f} | {at[1]:.2f} | {at[2]:.2f} | "
                    f"{sum(r < 0.7 for r in ratios)} |")
    return "\n".join([*text, ""])


def _row(line: Line) -> str:
    best, own = line.best, line.times.get("caten")
    others = ", ".join([*[f"{name} {_ms(t)}" for name, t in line.times.items() if name not in (best, "caten")],
                        *[f"{name}: {_cell(why)}" for name, why in line.failed.items() if name != "caten"]])
    time = _cell(line.failed.get("caten", "-")) if own is None else _ms(own) + (f" (kernel {_ms(line.kernel)})"
                                                                                if line.kernel else "")
    work, unit = (line.flops, "GFLOP/s") if line.flops else (line.bytes, "GB/s")
    rate = "-" if own is None else f"{work / own / 1e9:.1f} {unit}"
    ratio = (f"{line.ratio.value:.2f}", f"{line.ratio.low:.2f} … {line.ratio.high:.2f}") if line.ratio else ("-", "-")
    cells = (line.workload, best or "-", _ms(line.times[best]) if best else "-", time, ratio[0], ratio[1], rate, others)
    return f"| {' | '.join(map(str, cells))} |"


def _cell(why: str) -> str:
    """Why there is no figure, in a few words: of an exception its name."""
    return why.partition(":")[0].replace("|", "/")


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def _provenance(result: dict[str, Any]) -> list[str]:
    machine, first = result["machine"], result["runs"][0]
    versions = {name: v for part in first for name, v in part["versions"].items()}
    missing = {name: why for part in first for name, why in part["missing"].items()}
    own = next((part for part in first if part.get("compiler")), None)
    found = [limits_from(part["limits"]) for parts in result["runs"] for part in parts if part.get("limits")]
    listed = [f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['system']}, huge pages: "
              f"{machine['huge_pages'] or 'not told'}; {machine['date']}; "
              f"{len(result['runs'])} runs of {result['rounds']} rounds."]
    if result.get("cpu_time"):
        listed.append("The times are CPU times.")
    if found:
        line = max(found, key=lambda f: f.flops).line()
        listed.append(f"{line[0].upper()}{line[1:]}.")
    if own:
        listed.append(f"Compiled by {own['compiler']}: `{' '.join([f for f in own['flags'] if '/' not in f])}`.")
    listed.append(", ".join([f"{name} {version}" for name, version in versions.items()]) + ".")
    return listed + [f"Without {name}: {why}." for name, why in missing.items()]


def shown(document: dict[str, Any]) -> str:
    """The tables of any file of results."""
    made_by = {"levels": levels.markdown, "forms": forms.markdown, "building": build_times.markdown}
    return made_by.get(document.get("kind", ""), markdown)(document)


def write(path: Path, text: str) -> None:
    """Put the text between the marks of a page."""
    page = path.read_text()
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    parser.add_argument("--write", type=Path, metavar="PAGE.md",
                        help="put the tables into this page, between its marks")
    options = parser.parse_args()
    text = "\n".join([shown(json.loads(file.read_text())) for file in options.files])
    if options.write:
        write(options.write, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
