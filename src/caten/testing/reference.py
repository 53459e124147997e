"""What an operator should give: the oracle's values and rounding bounds, and the values of the spec's own reference."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..attach import runtime_of, target_of
from ..compiler import Built, Compilation
from ..core.dtypes import DTYPES, part
from ..core.numpy_types import kind_of, numpy_dtype
from ..core.program import Attribute, Buffer, Outputs, Program, Reference, Scalar, Source, Target, Tolerance
from ..core.unique_names import Names
from ..errors import CatenError, Place, amount, error
from ..frontend.generic_signature import tuples
from ..frontend.lambdas import reference_program
from ..frontend.op import Body, OpProgram, in_loops
from ..frozen import frozen
from ..loop import bounds_checks, zero_fill
from ..loop.statements import Incf, LoopProgram, Setf, Stmt
from ..options import Options
from ..runtime import work_formulas
from ..runtime.protocol import Unavailable
from ..semantics import comparison, interpret, oracle
from ..semantics.comparison import spacing
from ..tensor.extreme_search import kept_in_one_pass
from . import isolate
from .lambda_text import check_parameters
from .numpy_lambda import Lambda

INTERPRETED_STEPS = 100_000          # above this many steps a reference runs as unscheduled C in float64
TIMEOUT = 120.0                        # seconds for one run of a kernel or a reference
CPU = 120                              # seconds of processor time that test code may use
MEMORY = 8 << 30                       # bytes that test code may use


def outputs_of(op: Program) -> tuple[str, ...]:
    """The names of the outputs, in the order of the spec."""
    fact = op.first(Outputs)
    return fact.names if fact else tuple(b.name for b in op.buffers.values() if b.access != "in")


def numbers_of(op: Program, arguments: Mapping[str, Any]) -> dict[str, int]:
    """The integer scalars among the arguments: what a formula over sizes may mention besides them."""
    return {s.name: int(arguments[s.name]) for s in op.all(Scalar) if DTYPES[s.type].kind in ("bool", "int", "uint")}


def caller(op: Program, function: Any, run: Mapping[str, Any]) -> Callable[[], Any]:
    """A call without arguments on fixed arrays."""
    pure = [b.name for b in op.buffers.values() if b.access == "out"]
    leading = [run[p.name] for p in op.params if isinstance(p, (Scalar, Buffer)) and p.name not in pure]
    keywords = {n: run[n] for n in getattr(function, "keywords", op.sizes)}
    if pure:
        keywords["out"] = run[pure[0]] if len(pure) == 1 else tuple(run[n] for n in pure)
    bound: Callable[[], Any] = function.bind(*leading, **keywords)
    return bound


@frozen
class Expected:
    """What each output should be, the rounding bound of each element, and which elements sit on an edge."""

    what: str
    values: Mapping[str, np.ndarray]
    bounds: Mapping[str, np.ndarray]
    loose: Mapping[str, np.ndarray]


def expected_of(op: OpProgram, arguments: Mapping[str, Any], options: Options,
                expected: Mapping[str, np.ndarray] | None) -> Expected:
    """The oracle's values and bounds; the values of the spec's own reference where it has one, and the bounds of its
    own tolerance."""
    found = _expected(op, arguments, options, expected)
    stated = op.first(Tolerance)
    return found if stated is None else _tolerated(op, found, stated.ulps)


def _tolerated(op: OpProgram, found: Expected, ulps: int) -> Expected:
    """With bounds of `ulps` units in the last place of the greatest value of each output; no element is on an edge."""
    bounds = {}
    for name, value in found.values.items():
        dtype = op.buffers[name].type
        greatest = np.max(np.abs(value), initial=0.0, where=np.isfinite(value))
        unit = spacing(greatest, part(dtype)) if DTYPES[dtype].kind in ("float", "complex") else 0.0
        bounds[name] = np.full(value.shape, ulps * unit / comparison.TOLERANCE)
    return replace(found, bounds=bounds,
                   loose={name: np.zeros(value.shape, np.uint8) for name, value in found.values.items()})


def _expected(op: OpProgram, arguments: Mapping[str, Any], options: Options,
              expected: Mapping[str, np.ndarray] | None) -> Expected:
    exact = _oracle(op, arguments, options)
    if expected is not None:
        return replace(exact, what="the case's arrays", values=_checked(op, expected, arguments, None))
    reference = op.first(Reference)
    if reference is None:
        return replace(exact, what="the spec at -O0 in float64 (it has no [test])")
    source = op.first(Source)
    if reference.lang == "lisp":
        own = _oracle(reference_program(op), arguments, options)
        return replace(exact, what="the spec's [test]", values=own.values)
    place = Place(source.file if source else "<spec>", reference.line, reference.column)
    function = Lambda(reference.code, place)
    check_parameters(function, op)
    outcome = isolate.run(lambda: _python(function, op, arguments), TIMEOUT, memory=MEMORY, cpu=CPU, no_files=True)
    if outcome.status == "error":
        raise CatenError(*outcome.diagnostics)
    if outcome.status != "ok":
        raise error("E806", f"the test code of {op.name} ended with {outcome.status} {outcome.signal}".rstrip(), place,
                    hint=f"it may use {CPU} s and {MEMORY >> 30} GiB")
    return replace(exact, what="the spec's [test]", values=_checked(op, outcome.arrays, arguments, place))


def _python(function: Lambda, op: OpProgram, arguments: Mapping[str,
            Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """In the child: the lambda on float64 copies."""
    wide: dict[str, Any] = {}
    attributes = {a.name: tuples(json.loads(a.value)) for a in op.all(Attribute)}
    scalars = {s.name: s.type for s in op.all(Scalar)}
    for n in function.parameters:
        value = attributes[n] if n in attributes else arguments[n]
        if n in scalars and n not in attributes:             # an array without axes
            value = np.asarray(value, dtype=numpy_dtype(scalars[n]))
        if isinstance(value, np.ndarray):
            kind = kind_of(value.dtype)
            # of int4, int8
            own = np.dtype(f"{kind}{value.dtype.itemsize}") if kind in "iu" else value.dtype
            wide[n] = value.astype({"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}.get(kind, own))[()]
        else:
            wide[n] = value.item() if isinstance(value, np.generic) else value
    result = function(**wide)
    names = outputs_of(op)
    if result is None:
        return {}, {n: np.asarray(wide.get(n, arguments[n])) for n in names}
    results = result if isinstance(result, (tuple, list)) and len(names) > 1 else (result,)
    if len(results) != len(names):
        raise function.error("E808",
                             f"the test code gives {amount(len(results), 'value')}, {op.name} has "
                             f"{amount(len(names), 'output')}: {', '.join(names)}")
    return {}, {n: _numbers(function, n, r) for n, r in zip(names, results, strict=True)}


def _numbers(function: Lambda, name: str, result: Any) -> np.ndarray:
    """What the lambda gives for an output, as an array of numbers."""
    try:
        array = np.asarray(result)
    except (TypeError, ValueError) as problem:
        raise function.error("E808", f"the test code gives no array for {name}: {problem}") from None
    if kind_of(array.dtype) not in "biufc":
        raise function.error("E808", f"the test code gives {array.dtype.name} for {name}",
                             hint="give an array of numbers for each output")
    return array


def _checked(op: OpProgram, arrays: Mapping[str, np.ndarray], arguments: Mapping[str, Any],
             place: Place | None) -> dict[str, np.ndarray]:
    """The arrays of a reference, of the outputs' shapes. `place`: of the code that gives them."""
    result = {}
    for n in outputs_of(op):
        if n not in arrays:
            raise error("E808", f"the expected arrays of {op.name} lack '{n}'", place)
        if arrays[n].shape != arguments[n].shape:
            raise error("E808", f"the reference's {n} has shape {arrays[n].shape}, the kernel's {arguments[n].shape}",
                        place,
                        hint="the test code and the signature disagree")
        result[n] = arrays[n]
    return result


def never_stored(op: OpProgram, arguments: Mapping[str, Any]) -> list[Stmt]:
    """The stores and accumulations that a call with these arguments does not run; none where it leaves an array,
    which is refused."""
    reached: set[Stmt] = set()
    try:
        interpret.run(op, {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()},
                      stored=reached)
    except CatenError:
        return []
    return [s for stmt in op.body for s in stmt.walk() if isinstance(s, Setf | Incf) and s not in reached]


def _oracle(op: OpProgram, arguments: Mapping[str, Any], options: Options) -> Expected:
    """Values in float64 with their rounding bounds, from the nest as written: interpreted, or as C where that would
    take long."""
    loops = in_loops(op)
    kept = loops.without(Body).adding(Body(kept_in_one_pass(loops.body, Names.of(loops).fresh)))
    program = oracle.bounded(zero_fill.fill_outputs(bounds_checks.add_checks(kept)), runtime_of(options).fast)
    run = comparison.widened(op, arguments)
    sizes = numbers_of(op, arguments) | {n: int(arguments[n]) for n in op.sizes}
    steps = work_formulas.at(work_formulas.steps(op), sizes)
    built = _compiled(op, program, options) if steps > INTERPRETED_STEPS else None
    if built is None:
        outcome = isolate.run(lambda: ({"code": interpret.run(program, run)}, _results(program, run)), TIMEOUT)
    else:
        function = built.runtime.load(built.artifact, built.manifest)
        call = caller(program, getattr(function, program.name, function), run)
        outcome = isolate.run(lambda: (call(), ({"code": 0}, _results(program, run)))[1], TIMEOUT)
    if outcome.status == "error":
        raise CatenError(*outcome.diagnostics)
    if outcome.status != "ok" or outcome.facts["code"]:
        raise error("E809",
                    f"the reference of {op.name} ended with {outcome.status} "
                    f"{outcome.signal or outcome.facts.get('code', '')}")
    names = outputs_of(op)
    bounds_of = {n: outcome.arrays.get(f"{n}__bound", np.zeros(())) for n in names}
    loose = {n: outcome.arrays.get(f"{n}__loose", np.zeros((), np.uint8)) for n in names}
    return Expected("the spec at -O0 in float64", {n: outcome.arrays[n] for n in names}, bounds_of, loose)


def _compiled(op: OpProgram, program: LoopProgram, options: Options) -> Built | None:
    """The oracle as C by the host compiler, whatever the runtime that is tested; None where there is no compiler."""
    own = replace(options, runtime="clang", config=(), opt=0, binds=(), strided=())
    try:
        return Compilation((program.without(Target).adding(target_of(own)),), own, ops=(op,)).artifact()
    except Unavailable:
        return None


def _results(program: LoopProgram, run: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {b.name: np.array(run[b.name]) for b in program.buffers.values() if b.access != "in"}
