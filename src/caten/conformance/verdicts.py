"""Verdicts: the statuses, and what the results of a call are judged against."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

import numpy as np

from ..core.program import Check
from ..frontend.op import OpProgram, in_loops
from ..frozen import frozen
from ..loop import bounds_checks, zero_fill
from ..loop.statements import LoopProgram
from ..semantics import comparison, interpret, oracle
from ..testing.reference import outputs_of

# Status -> what it says. Those of BAD make the exit code 1.
STATUSES: dict[str, str] = {
    "PASS": "what the language means",
    "QUALITY": "inside the hard bound on rounding errors, outside the operator's own bound in ulp",
    "FAIL": "a wrong result, a stray write, a check that does not fail, or a refusal that does not say why",
    "VACUOUS": "nothing was compared: an output has no element, or all of them lie on an edge where any value passes",
    "UNSUPPORTED": "declared as not supported by the runtime, and refused with a clear error",
    "UNDECLARED": "claimed by the runtime's tables, and refused or not compiled",
    "CRASH": "the process died",
    "TIMEOUT": "no result within the time limit",
    "XFAIL": "a fault that the runtime's file lists under `skips`",
    "XPASS": "listed under `skips`, and right",
    "NOT-RUN": "not executed",
}
BAD = ("FAIL", "VACUOUS", "CRASH", "TIMEOUT", "UNDECLARED", "XPASS")


@frozen
class Verdict:
    """What became of a case. `ulp`: the greatest error of a result without a reduction, in units in the last place."""

    status: str
    note: str = ""
    ulp: float | None = None


@frozen
class Called:
    """What became of a call: the arrays that the kernel may write, the message with which it failed, and what it did
    that it must not."""

    results: Mapping[str, np.ndarray]
    error: str = ""
    wrong: tuple[str, ...] = ()


class Judge(Protocol):
    """Says whether a call did what it should."""

    def __call__(self, op: OpProgram, arguments: Mapping[str, Any], called: Called) -> Verdict: ...


@frozen
class Oracle:
    """Against the interpreter: float64 with bounds, exact integers, the text of the check that fails."""

    def __call__(self, op: OpProgram, arguments: Mapping[str, Any], called: Called) -> Verdict:
        program, with_bounds = _checked(op)
        wide = comparison.widened(program, arguments)
        row = interpret.run(with_bounds, wide)
        if row:
            return failure(next(c.text for c in program.all(Check) if c.row == row), called)
        if called.error:
            return Verdict("FAIL", f"the call failed: {called.error}")
        return compared(op, arguments, called, {n: (wide[n], wide.get(f"{n}__bound"), wide.get(f"{n}__loose"))
                                                for n in outputs_of(op)})


@cache
def _checked(op: OpProgram) -> tuple[OpProgram, LoopProgram]:
    """An operator with its checks, and the same in float64 with bounds."""
    program = zero_fill.fill_outputs(bounds_checks.add_checks(in_loops(op)))
    return program, oracle.bounded(program)


@frozen
class Exact:
    """Against values that a formula in numpy gives: arrays by name from the arguments."""

    formula: Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]]

    def __call__(self, op: OpProgram, arguments: Mapping[str, Any], called: Called) -> Verdict:
        if called.error:
            return Verdict("FAIL", f"the call failed: {called.error}")
        return compared(op, arguments, called, {n: (v, None, None) for n, v in self.formula(arguments).items()})


@frozen
class Fails:
    """The call must fail with a message that holds this text."""

    text: str

    def __call__(self, op: OpProgram, arguments: Mapping[str, Any], called: Called) -> Verdict:
        return failure(self.text, called)


def failure(text: str, called: Called) -> Verdict:
    """The verdict on a call that must fail, and say why."""
    if not called.error:
        return Verdict("FAIL", f"the call succeeded; it must fail with '{text}'")
    if text not in called.error:
        return Verdict("FAIL", f"the call failed with '{called.error}'; expected '{text}'")
    return stray(called) or Verdict("PASS")


def stray(called: Called) -> Verdict | None:
    """The verdict where memory was touched that is not the kernel's."""
    return Verdict("FAIL", "; ".join(called.wrong)) if called.wrong else None


def compared(op: OpProgram, arguments: Mapping[str, Any], called: Called,
             wanted: Mapping[str, tuple[Any, Any, Any]]) -> Verdict:
    """Results against (value, bound, loose) by name, within the tolerance that rounding gets. An output without
    elements is meant where a size is 0."""
    nothing = []
    for name, (value, bound, loose) in wanted.items():
        got, dtype = called.results[name], op.buffers[name].type
        found = comparison.check(got, value, bound, loose, dtype)
        if not found.passed:
            at = found.worst or ()
            return Verdict("FAIL", f"{name}{list(at)} is {got[at]!r}, expected {np.asarray(value)[at]!r}")
        if not found.compared and (got.size or all(arguments[n] for n in op.sizes)):
            nothing.append(f"all {got.size} elements of {name} lie on an edge" if got.size
                           else f"{name} has no element")
    return stray(called) or (Verdict("VACUOUS", f"nothing was compared: {', '.join(nothing)}") if nothing
                             else Verdict("PASS"))
