"""What came of a test run: the verdict on each output and on the whole, as a person and as a program read it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.program import Case
from ..core.text import flat, form_of
from ..errors import Diagnostic, Place
from ..frontend.op import OpProgram
from ..frozen import frozen
from ..loop.statements import Aref, Incf, Setf
from ..semantics import comparison
from ..semantics.comparison import TOLERANCE
from .reference import Expected, outputs_of

EMPTY = "empty"                        # what a case expects that means an output without elements


@frozen
class OutputReport:
    """One output: the greatest error as a fraction of what rounding allows, and where; how many elements it has, how
    many of them were compared, and how many lie on an edge, where any value passes."""

    name: str
    passed: bool
    ratio: float
    worst: tuple[int, ...]
    loose: int
    detail: str
    elements: int = 0
    compared: int = 0

    @property
    def why_nothing(self) -> str:
        """Why nothing of it was compared."""
        return f"{self.name} has no element" if not self.elements else (
            f"all {self.elements} elements of {self.name} lie on an edge, where any value passes" if self.elements > 1
            else
            f"{self.name} lies on an edge, where any value passes")


@frozen
class Report:
    """The outcome of one test run. `status`: ok, wrong, vacuous (nothing of an output was compared), failed (a check
    of the kernel), crash, timeout, error."""

    op: str
    case: str
    arguments: dict[str, Any]
    status: str
    reference: str
    outputs: tuple[OutputReport, ...] = ()
    seconds: float | None = None
    flops: int = 0
    bytes: int = 0
    note: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    unreached: tuple[str, ...] = ()        # what is stored nowhere in this run, and where that is written

    @property
    def passed(self) -> bool:
        return self.status == "ok"

    def lines(self) -> list[str]:
        """The report for a person."""
        arguments = ", ".join(f"{k}={_short(v)}" for k, v in self.arguments.items())
        what = f"{self.op}{f' [{self.case}]' if self.case else ''}({arguments})"
        if self.status in ("ok", "wrong") and not self.note:
            worst = max((o.ratio for o in self.outputs), default=0.0)
            lines = [f"{what}: {'ok' if self.passed else 'WRONG'}{_error(worst / TOLERANCE)}, compared with "
                     f"{self.reference}"]
        else:
            lines = [f"{what}: {'ok' if self.passed else self.status.upper()}{f': {self.note}' if self.note else ''}"]
        if self.status in ("ok", "wrong"):
            lines += [f"  {o.name}: {o.detail}" for o in self.outputs if o.detail]
        if self.unreached:
            lines.append(f"  never stored to: {', '.join(self.unreached)}; give sizes and scalars at which it is, in a "
                         "[[test.case]] or --test")
        if self.seconds is not None:
            rates = [f"{self.flops / self.seconds / 1e9:.1f} GFLOP/s"] if self.flops else []
            rates.append(f"{self.bytes / self.seconds / 1e9:.1f} GB/s")
            lines.append(f"  time {_time(self.seconds)}, {', '.join(rates)}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """The report for a program."""
        return {"op": self.op, "case": self.case, "arguments": {k: _plain(v) for k, v in self.arguments.items()},
                "status": self.status, "reference": self.reference, "seconds": self.seconds, "flops": self.flops,
                "bytes": self.bytes,
                "outputs": [{"name": o.name, "passed": o.passed, "ratio": o.ratio, "worst": list(o.worst),
                             "loose": o.loose, "elements": o.elements,
                             "compared": o.compared} for o in self.outputs],
                "note": self.note}


def _plain(number: Any) -> Any:
    """A number as JSON has it; a complex one is a pair."""
    if isinstance(number, (complex, np.complexfloating)):
        return [float(number.real), float(number.imag)]
    return float(number) if isinstance(number, (float, np.floating)) else int(number)


def _error(part: float) -> str:
    """The largest error as a part of the tolerance, in words; nothing where there is no such part, as of integers
    that differ."""
    if part == 0:
        return ": no error beyond the last digit"
    if part > 1:
        return f": largest error {part:.2g} times the tolerance" if np.isfinite(part) else ""
    return f": largest error {'less than 1' if part < 0.01 else round(100 * part)} % of the tolerance"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def compared(op: OpProgram, name: str, got: np.ndarray, expected: Expected) -> OutputReport:
    """An output against what it should be."""
    c = comparison.check(got, expected.values[name], expected.bounds[name], expected.loose[name], op.buffers[name].type)
    worst = c.worst or ()
    detail = ""
    if not c.passed and got.size:
        detail = f"at {list(worst)}: {got[worst]}, the reference says {expected.values[name][worst]}"
    edge = f"{c.loose} of {got.size} elements lie on an edge, where any value passes" if c.loose else ""
    edge += ": more than half of it is not tested" if 2 * c.loose > got.size else ""
    wide = (f"the bounds of {c.wide} of {got.size} elements are more than an eighth of the greatest value: "
            "this says little of them")
    parts = (detail, edge, wide if c.passed and 2 * c.wide > got.size else "")
    return OutputReport(name, c.passed, c.ratio, worst, c.loose, "; ".join(p for p in parts if p), int(got.size),
                        c.compared)


def outputs_compared(op: OpProgram, results: dict[str, np.ndarray], expected: Expected) -> tuple[OutputReport, ...]:
    """Every output against what it should be."""
    return tuple([compared(op, n, results[n], expected) for n in outputs_of(op)])


def verdict(op: OpProgram, case: Case | None,
            outputs: Sequence[OutputReport]) -> tuple[str, str, tuple[Diagnostic, ...]]:
    """(status, note, diagnostics) of a run in which every output was compared: `ok` says that something of each was,
    or that the case means an output without elements."""
    if not all(o.passed for o in outputs):
        return "wrong", "", ()
    empty = [o for o in outputs if not o.elements]
    means_empty = case is not None and case.expect == EMPTY
    if means_empty and not empty:
        return "wrong", 'the case expects an output without elements (expect = "empty"), and every output has some', ()
    nothing = [o for o in outputs if not o.compared and not (means_empty and o in empty)]
    if not nothing:
        others = "nothing else is there to compare" if len(empty) == len(outputs) else "the others are right"
        names = ", ".join([o.name for o in empty])
        return "ok", f"{names} has no element, as the case expects; {others}" if empty else "", ()
    why = ", ".join([o.why_nothing for o in nothing])
    hint = "give an input for which the decisions in the body are clear, or test what leads to them by itself"
    if not nothing[0].elements:
        hint = ("give sizes at which it has some, in --test or a [[test.case]]; "
                'a case that means it says expect = "empty"')
    return "vacuous", f"nothing was compared: {why}", (
        Diagnostic("E837", f"the test of {op.name}{f', {case.name},' if case else ''} says nothing: {why}",
                   op.place_of(case.spot()) if case is not None else _stored(op, nothing[0].name), hint),)


def _stored(op: OpProgram, name: str) -> Place | None:
    """Where an array is stored to first."""
    stores = [s.ref for stmt in op.body for s in stmt.walk() if isinstance(s, Setf | Incf) and isinstance(s.ref, Aref)
              and s.ref.buffer == name]
    return op.place_of(flat(form_of(stores[0]))) if stores else None
