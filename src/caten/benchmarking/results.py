"""Benchmark results: the JSON file and the text table."""
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ..documents import Malformed
from ..documents import read as read_document
from ..errors import Diagnostic, UsageError
from ..frozen import frozen
from . import statistics
from .limits import Limits, limits_from
from .statistics import Estimate

SCHEMA_VERSION = 1
MOST = 1e30                               # limit of every number in a file, so that arithmetic does not overflow
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": MOST}
_POSITIVE: dict[str, Any] = {"type": "number", "minimum": 1 / MOST, "maximum": MOST}
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


SCHEMA: dict[str, Any] = _object(
    schema_version={"const": SCHEMA_VERSION},
    machine={"type": "object", "additionalProperties": {"type": ["string", "number"]}},
    limits={"oneOf": [{"type": "null"}, _object(threads={"type": "integer", "minimum": 1}, flops=_POSITIVE,
                                                read=_POSITIVE, copy=_POSITIVE,
                                                triad=_POSITIVE)]},
    rows={"type": "array", "items": _object(
        op={"type": "string"}, runtime={"type": "string"}, sizes={"type": "object",
                                                                  "additionalProperties": {"type": "number"}},
        seconds=_object(value=_POSITIVE, low=_POSITIVE, high=_POSITIVE), flops=_COUNT, bytes=_COUNT,
        samples={"type": "array", "items": _POSITIVE},
        clean=_COUNT, taken=_COUNT, compiler={"type": "string"}, flags=_TEXTS)})


@frozen
class BenchRow:
    """The measurement of one operator at some sizes, compiled by one runtime. `seconds`: the median time of a call in
    seconds, with its 95 % confidence interval; `flops`: the floating-point operations of a call; `bytes`: the bytes of
    arrays that a call reads and writes at least; `samples`: the times of a call, in seconds, of which `seconds` is the
    median; `clean` of `taken` samples were not disturbed by other processes."""

    op: str
    runtime: str
    sizes: dict[str, int | float]
    seconds: Estimate
    flops: int
    bytes: int
    samples: tuple[float, ...] = ()
    clean: int = 0
    taken: int = 0
    compiler: str = ""
    flags: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What the same measurement has in another file."""
        return self.op, self.runtime, self.settings

    @property
    def settings(self) -> str:
        return ",".join([f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
                         for name, value in self.sizes.items()])

    def attainable(self, limits: Limits) -> float:
        """The seconds that the machine's limits allow for this work: the roofline of S. Williams, A. Waterman and D.
        Patterson (2009)."""
        return max(self.flops / limits.flops, self.bytes / limits.bandwidth)

    def as_json(self) -> dict[str, Any]:
        return {"op": self.op, "runtime": self.runtime, "sizes": self.sizes, "seconds": self.seconds.as_json(),
                "flops": self.flops,
                "bytes": self.bytes, "samples": list(self.samples), "clean": self.clean, "taken": self.taken,
                "compiler": self.compiler,
                "flags": list(self.flags)}


@frozen
class BenchResults:
    """The content of a results file: the rows, a description of the machine, and its peak FLOP/s and memory bandwidth
    if they were measured."""

    rows: tuple[BenchRow, ...]
    machine: dict[str, Any] = field(default_factory=dict)
    limits: Limits | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that `caten bench --json` writes."""
        return {"schema_version": SCHEMA_VERSION, "machine": self.machine,
                "limits": self.limits.as_json() if self.limits else None, "rows": [row.as_json() for row in self.rows]}

    def text(self) -> str:
        """The JSON text."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"


def read(path: str) -> BenchResults:
    """Read a results file. UsageError E902 if it cannot be read, E931 if it has another format."""
    try:
        document = read_document(Path(path), SCHEMA)
    except OSError as problem:
        raise UsageError(Diagnostic("E902", f"cannot read {path}: {problem.strerror}")) from None
    except Malformed as problem:
        raise UsageError(Diagnostic("E931", f"{path} is not a results file of caten bench: {problem}",
                                    hint="caten bench --json FILE writes them")) from None
    limits = document["limits"]
    return BenchResults(tuple([_row(row) for row in document["rows"]]), document["machine"],
                   limits_from(limits) if limits else None)


def _row(json: dict[str, Any]) -> BenchRow:
    return BenchRow(json["op"], json["runtime"], json["sizes"], statistics.estimate_from(json["seconds"]),
                    json["flops"], json["bytes"], tuple([float(s) for s in json["samples"]]), json["clean"],
                    json["taken"], json["compiler"], tuple(json["flags"]))


def table(results: BenchResults) -> list[str]:
    """The results as lines of text, one per row, with aligned columns."""
    head = ("operator", "sizes", "runtime", "time", "95 % interval", "GFLOP/s", "GB/s", "% of peak")
    cells = [head, *[_cells(row, results.limits) for row in results.rows]]
    widths = [max([len(line[n]) for line in cells]) for n in range(len(head))]
    lines = ["  ".join([c.ljust(w) if n < 3 else c.rjust(w) for n,
                        (c, w) in enumerate(zip(line, widths, strict=True))]).rstrip() for line in cells]
    if results.limits:
        lines.append(results.limits.line())
    disturbed = [row for row in results.rows if row.clean < row.taken]
    if disturbed:
        lines.append(f"other processes used the CPU: {sum([r.taken - r.clean for r in disturbed])} of "
                     f"{sum([r.taken for r in disturbed])} samples of {len(disturbed)} "
                     f"row{'s' * (len(disturbed) > 1)} were disturbed, even after retakes")
    return lines


def _cells(row: BenchRow, limits: Limits | None) -> Sequence[str]:
    seconds = row.seconds.value
    rate = f"{row.flops / seconds / 1e9:.1f}" if row.flops else "-"
    share = f"{row.attainable(limits) / seconds:.0%}" if limits else "-"
    return (row.op, row.settings, row.runtime, spelled(seconds),
            f"{spelled(row.seconds.low)} … {spelled(row.seconds.high)}", rate,
            f"{row.bytes / seconds / 1e9:.1f}", share)


def spelled(seconds: float) -> str:
    """The time with three significant digits and a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds * scale:.0f} {unit}"
    return f"{seconds * 1e9:.3g} ns"
