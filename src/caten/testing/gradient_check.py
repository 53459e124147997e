"""The gradients of an operator, compared with central differences.

Both are computed in float64, whatever the types of the spec, with the arguments of a test case. The derivative along
one element x is (f(x - 2h) - 8 f(x - h) + 8 f(x + h) - f(x + 2h)) / 12h, whose error is of the order h^4; f is the sum
of the outputs that change, each element times a random number. Where the differences to the left and to the right
disagree, or are not finite, there is an edge, and nothing to compare.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler import Compilation
from ..core.expr import Bitcast, Const
from ..core.node import Node
from ..core.numpy_types import numpy_dtype
from ..core.program import Buffer, Case, GradientBody, GradientSteps, InOrder, Opt, Scalar
from ..differentiation import gradient_of
from ..driver import advance
from ..errors import CatenError, Diagnostic, NothingMatched, error
from ..frontend.op import OpProgram
from ..options import Options
from ..runtime.protocol import Runtime
from ..tensor.values import TensorProgram
from . import data, isolate
from .case_arrays import arrays_of
from .case_selection import selected_cases
from .outcomes import OutputReport, Report
from .reference import TIMEOUT, caller
from .sizes_and_scalars import case_values

POINTS = 20                            # elements of each input along which the derivative is measured
STEP = 1e-4                            # the distance h, times max(1, |x|)
TOLERANCE = 1e-6                       # relative to the greatest derivative of the input, and at least absolute
NOTHING = "E677"                       # neither inputs of floats nor outputs
KINK = 1e-2                            # the greatest part by which both one-sided differences may disagree


def reports_of(ops: Sequence[OpProgram], options: Options, tags: tuple[str, ...] = (),
               names: tuple[str, ...] = ()) -> Iterator[Report]:
    """The reports of the cases of each operator, as of `runner.reports_of`: `ok` if all gradients are those of the
    differences, or there is nothing to differentiate; `wrong` with one that is not; `vacuous` where no difference could
    be compared."""
    selected = [(op, [c for c in selected_cases(op, tags, names) if not c.expect.startswith("{")]) for op in ops]
    if not any(cases for _, cases in selected):
        raise NothingMatched(Diagnostic("E835", "no test case matched", hint="gradients are checked with the arguments "
                                                                             "of test cases"))
    for op, cases in selected:
        kernels = None
        for case in cases:
            try:
                kernels = kernels or _Kernels(op, options)
                yield kernels.report(case, options)
            except CatenError as problem:
                if problem.exit_code != 1:
                    raise
                if problem.diagnostics[0].code == NOTHING:
                    yield Report(op.name, case.name, {}, "ok", "", note="nothing to differentiate")
                    continue
                yield Report(op.name, case.name, {}, "failed", "", note=problem.diagnostics[0].message,
                             diagnostics=tuple([d.at(op.place_of(case.spot())) for d in problem.diagnostics]))


class _Kernels:
    """An operator and its gradient in float64, compiled."""

    def __init__(self, op: OpProgram, options: Options) -> None:
        self.op = op
        level = Opt(max(1, op.opt))                          # at -O0 loops stay loops, of which no gradient is known
        values = advance(op.without(Opt, InOrder).adding(level), "tensor", options)
        assert isinstance(values, TensorProgram)
        self.values = widened(values)
        bodies: list[type[GradientBody] | type[GradientSteps]] = [GradientBody]
        if self.values.first(GradientSteps) is not None:
            bodies.append(GradientSteps)
        self.gradients = [gradient_of(self.values, options, by=body) for body in bodies]
        self.forward, *self.backward = [Compilation([p], options).artifact() for p in (self.values, *self.gradients)]
        self.runtime: Runtime = self.forward.runtime

    def report(self, case: Case, options: Options) -> Report:
        """The report of a case."""
        values = case_values(self.op, case)
        given, _ = arrays_of(self.op, case, {n: int(values[n]) for n in self.op.sizes})
        drawn = data.arguments(self.op, values, options.seed, given)
        shown = {k: v.item() if isinstance(v, np.generic) else v for k, v in drawn.items()
                 if not isinstance(v, np.ndarray)}
        outcome = isolate.run(lambda: self._compared(drawn, options.seed), TIMEOUT)
        if outcome.status != "ok":
            text = outcome.diagnostics[0].message if outcome.diagnostics else outcome.signal
            return Report(self.op.name, case.name, shown, "failed" if outcome.status == "error" else outcome.status,
                          "", note=text, diagnostics=outcome.diagnostics)
        found: list[dict[str, Any]] = outcome.facts["gradients"]
        outputs = tuple([OutputReport(g["name"], g["worst"] <= 1, g["worst"], (), 0, g["detail"], g["elements"],
                                      g["compared"]) for g in found])
        wrong = [o for o in outputs if not o.passed]
        compared = any(o.compared for o in outputs) or not any(o.elements for o in outputs)
        status = "wrong" if wrong else "ok" if compared else "vacuous"
        return Report(self.op.name, case.name, shown, status, "central differences", outputs,
                      note="" if wrong or compared else "no difference could be compared")

    def _compared(self, drawn: Mapping[str, Any], seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """In the child: each gradient beside the differences."""
        forward = _Call(self.runtime, self.forward, self.values)
        arguments = {p.name: _wide(p, drawn[p.name]) for p in self.values.params if isinstance(p, Buffer | Scalar)}
        arguments |= {n: drawn[n] for n in self.values.sizes}
        base = forward(arguments)
        source = data.rng(seed, "gradient")
        weights = {name: source.uniform(-1, 1, array.shape) for name, array in base.items() if array.dtype == "f8"}

        def weighted(changed: Mapping[str, Any]) -> np.ndarray:
            with np.errstate(all="ignore"):
                found = [(weights[n] * out).ravel() for n, out in forward(changed).items() if n in weights]
                return np.concatenate([np.zeros(0), *found])

        found: list[dict[str, Any]] = []
        for gradient, built in zip(self.gradients, self.backward, strict=True):
            given, results = self._given(gradient, arguments, base, weights)
            made = _Call(self.runtime, built, gradient)(given)
            found += [_beside(name, made[name], arguments, of, weighted, source) for name, of in results.items()]
        return {"gradients": found}, {}

    def _given(self, gradient: TensorProgram, arguments: Mapping[str, Any], base: Mapping[str, np.ndarray],
               weights: Mapping[str, np.ndarray]) -> tuple[dict[str, Any], dict[str, str]]:
        """The arguments of a gradient, and the input for each of its results."""
        given: dict[str, Any] = {n: arguments[n] for n in self.values.sizes}
        results = dict[str, str]()
        for p in gradient.params:
            if isinstance(p, Buffer) and p.access == "out":
                of = p.name.removeprefix("grad_")
                results[p.name] = of if of in arguments else of.removesuffix("_in")
                given[p.name] = np.full(np.shape(arguments[results[p.name]]), np.nan)
            elif isinstance(p, Buffer | Scalar):
                results_of = self.values.buffers.get(p.name)
                is_result = results_of is not None and results_of.access == "out"
                given[p.name] = base[p.name] if is_result else arguments[p.name] if p.name in arguments else weights[
                    p.name.removeprefix("grad_")]
        return given, results


class _Call:
    """A compiled program, called with arguments by name; it gives the arrays that it writes."""

    def __init__(self, runtime: Runtime, built: Any, program: TensorProgram) -> None:
        found = runtime.load(built.artifact, built.manifest)
        self.function, self.program = getattr(found, program.name, found), program

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
        run = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
        caller(self.program, self.function, run)()
        return {b.name: run[b.name] for b in self.program.buffers.values() if b.access != "in"}


def _beside(name: str, gradient: np.ndarray, arguments: Mapping[str, Any], of: str,
            outputs: Callable[[Mapping[str, Any]], np.ndarray], source: np.random.Generator) -> dict[str, Any]:
    """One gradient beside differences along some finite elements of the input."""
    x = np.asarray(arguments[of], np.float64)
    found: list[tuple[int, float, float]] = []
    order = source.permutation(x.size)
    for k in order[np.isfinite(x.reshape(-1)[order])][:POINTS].tolist():
        h = STEP * max(1.0, abs(float(x.reshape(-1)[k])))

        def at(steps: int, k: int = k, h: float = h) -> np.ndarray:
            moved = x.copy(order="K")
            moved[np.unravel_index(k, x.shape)] += steps * h
            return outputs({**arguments, of: moved if isinstance(arguments[of], np.ndarray) else moved[()]})
        around = np.stack([at(n) for n in (-2, -1, 0, 1, 2)])
        middle = around[2]
        changed = (around != middle).any(axis=0) | ~np.isfinite(middle)      # great numbers that stay hide the others
        far_left, left, here, right, far_right = around[:, changed].sum(axis=1).tolist()
        slope = (far_left - 8 * left + 8 * right - far_right) / (12 * h)
        others = (here - left) / h, (right - here) / h, (far_right - far_left) / (4 * h)
        if np.isfinite(slope) and max(others) - min(others) <= KINK * max(1.0, abs(slope)):
            found.append((k, slope, float(gradient[np.unravel_index(k, x.shape)])))
    scale = TOLERANCE * max([1.0, *[abs(slope) for _, slope, _ in found]])
    worst, detail = 0.0, ""
    for k, slope, got in found:
        ratio = abs(got - slope) / scale if np.isfinite(got) else np.inf
        if ratio > max(1.0, worst):
            place = ", ".join([str(int(i)) for i in np.unravel_index(k, x.shape)])
            detail = f"{name}[{place}] is {got:.9g}, the difference {slope:.9g}"
        worst = max(worst, float(ratio))
    return {"name": name, "worst": worst, "detail": detail, "elements": x.size, "compared": len(found)}


def widened(program: TensorProgram) -> TensorProgram:
    """The program with float64 for every type of floats. E676 where bits of floats are used."""
    narrow = ("f16", "bf16", "f32", "f8e4m3", "f8e5m2")
    memo: dict[Node, Any] = {}

    def go(n: Node) -> Any:
        if n not in memo:
            if isinstance(n, Bitcast) and {n.type, n.arg.dtype} & set(narrow):
                raise error("E676", f"the gradient of {program.name} cannot be checked in float64: it uses the bits of "
                                    "shorter numbers", program.place(),
                            hint="check a case of float64: instance = \"x=float64[N]\"")
            new: Any = n.map(go)
            if getattr(new, "type", None) in narrow:
                new = Const(float(new.value), "f64") if isinstance(new, Const) else new.replace(type="f64")
            memo[n] = new
        return memo[n]
    wide: TensorProgram = go(program)
    return wide


def _wide(param: Buffer | Scalar, value: Any) -> Any:
    """An argument for the widened program, as it lies in memory."""
    if numpy_dtype(param.type) != np.float64 or not isinstance(value, np.ndarray | np.generic):
        return value
    return value.astype(np.float64, order="K") if isinstance(value, np.ndarray) else np.float64(value)
