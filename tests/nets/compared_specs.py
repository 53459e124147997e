"""Specs as data, and what must come of them: arguments that are drawn, what the interpreter and the oracle say, and the judgement of a result."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from guarded_calls import Called, Job, bits_equal
from spec_forms import RandomSpec, extent_of

from caten import loading
from caten.core.dtypes import DTYPES, FORMATS, is_packed, part
from caten.core.expr import Var
from caten.core.numpy_types import numpy_dtype
from caten.core.program import Buffer, Program, Scalar
from caten.core.size_formula import evaluate
from caten.frontend.op import OpProgram, in_loops
from caten.frontend.spec_files import SpecText
from caten.loop import bounds_checks, zero_fill
from caten.options import Options
from caten.semantics import comparison, interpret, oracle

SPECIAL = {**{d: (np.nan, np.inf, -np.inf, -0.0, 0.0, FORMATS[d][2], 2.0**FORMATS[d][1], 257.0) for d in ("f16", "bf16")},
           "f32": (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 3e38, 16777217.0), "f64": (np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e308, 2.0**53 + 1)}
ZEROS = {"max", "min", "maxcf", "mincf", "relu", "clip"}             # of two zeros they give either


@dataclass(frozen=True)
class Case:
    """A spec as the front end understands it, with data and what must come out. `bits`: what the interpreter computes in the declared types."""

    spec: RandomSpec
    op: OpProgram
    job: Job
    status: int
    expected: dict[str, tuple[np.ndarray, Any, Any]]
    bits: dict[str, np.ndarray]


def options(spec: RandomSpec | None, runtime: str, config: Mapping[str, str], opt: int, folder: Path) -> Options:
    """Every pass is verified for every other spec; the others take the way that a user's take, which is verified at its end."""
    return Options(runtime=runtime, config=tuple(config.items()), opt=opt, strided=tuple([n.replace("-", "_") for n in spec.strided]) if spec else (), cache_dir=str(folder / "cache"),
                   verify=spec is not None and spec.seed % 2 == 0, only=(spec.name,) if spec else ())


def loaded(spec: RandomSpec, own: Options) -> Program:
    return loading.selected(loading.load_programs(SpecText(f"{spec.name}.toml", spec.text(), "toml"), own), own.only)[0]


# -- data -----------------------------------------------------------------------------------------------------------------------------------

def draw(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], below: int | None, special: bool) -> np.ndarray:
    """Elements of a type: some whole, some not, some at the ends of its range; indices mostly inside their axis."""
    d = DTYPES[dtype]
    if below is not None:
        top = max(1, min(below, d.greatest + 1))
        values = rng.integers(0, top, shape)
        return np.where(rng.random(shape) < 0.002, top if top <= d.greatest else 0, values).astype(numpy_dtype(dtype))
    if d.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if d.kind == "complex":
        own = part(dtype)
        real, imaginary = (np.atleast_1d(draw(rng, own, shape, None, special)) for _ in range(2))
        made = np.zeros(shape, numpy_dtype(dtype))
        huge = FORMATS[own][2] ** 0.5
        for values in (real, imaginary):                     # a product of greater ones is inf - inf, where the oracle has a number
            values[np.isfinite(values) & (np.abs(values) > huge / 4)] = 1
        made.real, made.imag = real.reshape(shape), imaginary.reshape(shape)
        return made
    if d.kind == "float":
        values = rng.integers(-16, 17, shape) / 4 if rng.random() < 0.5 else rng.uniform(-3, 3, shape)
        result = np.asarray(values).astype(numpy_dtype(dtype))
        if special:
            result = np.where(rng.random(shape) < 0.15, rng.choice(np.array(SPECIAL[dtype]).astype(numpy_dtype(dtype)), shape), result).astype(numpy_dtype(dtype))
        return np.asarray(result)
    if is_packed(dtype):
        return rng.integers(d.least, d.greatest, shape, endpoint=True).astype(numpy_dtype(dtype))
    if special or rng.random() < 0.3:
        return rng.integers(d.least, d.greatest, shape, dtype=d.numpy, endpoint=True)
    return rng.integers(max(d.least, -9), 10, shape).astype(numpy_dtype(dtype))


def arguments(spec: RandomSpec, op: OpProgram) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """Numbers and arrays by name, and the strides of those that pass them. In every tenth spec there are NaN, infinities and -0."""
    rng = np.random.default_rng(spec.seed)
    special = spec.seed % 10 == 0
    sizes = dict(spec.sizes)
    below = {t.name.replace("-", "_"): extent_of(t.below, sizes) for t in spec.inputs if t.below}
    values: dict[str, Any] = {**sizes, **dict(spec.scalars)}
    strides: dict[str, tuple[int, ...]] = {}
    for param in op.params:
        if isinstance(param, Scalar) and param.name not in values and "_stride" not in param.name:
            values[param.name] = draw(rng, param.type, (1,), None, special)[0]
        elif isinstance(param, Buffer):
            shape = tuple(int(evaluate(e, sizes)) for e in param.shape)
            values[param.name] = draw(rng, param.type, shape, below.get(param.name), special)
            if param.strides:
                step, own = 1, [1] * len(shape)
                for axis in reversed(param.order):
                    own[axis] = step * (1 if axis == param.order[-1] else int(rng.choice((1, -1))))
                    step *= max(1, shape[axis]) + int(rng.integers(0, 3))
                strides[param.name] = tuple(own)
                values |= {e.name: own[axis] for axis, e in enumerate(param.strides) if isinstance(e, Var)}
    return values, strides


# -- expectations ---------------------------------------------------------------------------------------------------------------------------

def copied(values: dict[str, Any]) -> dict[str, Any]:
    return {k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in values.items()}


def case_of(spec: RandomSpec, folder: Path) -> Case:
    """Read a spec and find what it computes. CatenError where the front end refuses it."""
    program = loaded(spec, options(spec, "clang", {}, 0, folder))
    assert isinstance(program, OpProgram)
    checked: OpProgram = zero_fill.fill_outputs(bounds_checks.add_checks(in_loops(program)))
    values, strides = arguments(spec, program)
    plain = copied(values)
    status = interpret.run(checked, plain)
    wide = comparison.widened(checked, values)
    wide_status = interpret.run(oracle.bounded(checked), wide)
    names = [b.name for b in program.buffers.values() if b.access != "in"]
    expected = {n: (wide[n], wide.get(f"{n}__bound"), wide.get(f"{n}__loose")) for n in names}
    if wide_status != status:                                # a float decides whether the call fails: only crashes count
        expected = {}
    return Case(spec, program, Job(spec.name, values, strides, spec.seed % 2 == 0), status, expected, {n: plain[n] for n in names})


def compared_elements(case: Case) -> tuple[int, int]:
    """How many elements are compared, and how many more lie at an edge where any value passes."""
    total = loose = 0
    for wide, bound, free in case.expected.values():
        at_edge = np.zeros(np.shape(wide), bool) if free is None else np.asarray(free) != 0
        if bound is not None:
            assert not np.isnan(bound).any(), f"{case.spec.name}, seed {case.spec.seed}: a bound is NaN"
            at_edge = at_edge | ~np.isfinite(bound)
        loose += int(np.count_nonzero(at_edge))
        total += int(np.size(wide)) - int(np.count_nonzero(at_edge))
    return (total, loose) if case.status == 0 else (0, 0)


def other_bits(got: np.ndarray, want: np.ndarray, either_zero: bool) -> tuple[int, ...] | None:
    """The first element with other bits, where NaN counts as any other, and 0 as -0 where a function may give either."""
    if bits_equal(got, want):
        return None
    for at in np.ndindex(got.shape):
        if not bits_equal(np.asarray(got[at]), np.asarray(want[at])) and not (either_zero and got[at] == want[at] == 0):
            return at
    return None


def verdict(case: Case, called: Called, level: int) -> str:
    """What is wrong with the result of a call; nothing where it is right."""
    if called.wrong:
        return "; ".join(called.wrong)
    assert called.status is not None
    if not case.expected:
        return ""
    if (called.status == 0) != (case.status == 0):
        return f"returned {called.status}, the interpreter {case.status}"
    if case.status != 0:
        return ""
    for name, (want, bound, loose) in case.expected.items():
        dtype = case.op.buffers[name].type
        got = called.results[name]
        if level == 0 and case.spec.tame and (at := other_bits(got, case.bits[name], bool(ZEROS & case.spec.functions()))) is not None:
            return f"{name} differs from the interpreter at {at}: {got[at]!r} for {case.bits[name][at]!r}"
        result = comparison.check(got, want, bound, loose, dtype)
        if not result.passed:
            at = result.worst or ()
            return f"{name}{list(at)} is {got[at]!r}, expected {np.asarray(want)[at]!r} ({result.ratio:.3g} times its bound)"
    return ""
