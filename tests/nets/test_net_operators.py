"""Every operator on every element type it accepts, and every conversion: compiled scalar and vectorised, by clang and gcc, against mathematics.evaluate."""
from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from guarded_calls import Job, call_all

from caten import compiler, loading
from caten.core.dtypes import DTYPES, FORMATS, is_short
from caten.core.numpy_types import numpy_dtype
from caten.core.scalars import OPERATORS
from caten.frontend.spec_files import SpecText
from caten.mathematics import evaluate
from caten.mathematics.elementary import elementary_table, exponential
from caten.mathematics.elementary.arithmetic import Arithmetic
from caten.options import Options
from caten.render import helper_bodies

REAL = tuple(d for d in DTYPES if DTYPES[d].kind != "complex")
STRICT_ON_COMPLEX = ("add", "sub", "neg", "conj", "real", "imag", "eq", "ne", "where", "isnan", "isinf")
TINY = {dtype: 2.0**last for dtype, (_, last, _) in FORMATS.items()}
HUGE = {dtype: greatest for dtype, (_, _, greatest) in FORMATS.items()}
POINTS = {False: 2000, True: 4_000_000}


@dataclass(frozen=True)
class Row:
    """One kernel: an operator or conversion, on operands of these types."""

    name: str
    fn: str
    operands: tuple[str, ...]
    result: str

    def text(self) -> str:
        names = "XYZ"[: len(self.operands)]
        elements = [f"(aref {n} i)" for n in names]
        spelled = OPERATORS[self.fn].spelling if self.fn in OPERATORS else f"{self.fn} {self.result}"
        if is_short(self.operands[-1]) and self.fn in OPERATORS and self.fn != "where":           # as the body language has it
            elements = [f"(cast f32 {e})" for e in elements]
        value = f"({spelled} {' '.join(elements)})"
        if is_short(self.result) and self.fn in OPERATORS and self.fn != "where":
            value = f"(cast {self.result} {value})"
        buffers = " ".join(f"(buffer {n} {d} (N) (0) in)" for n, d in zip(names, self.operands, strict=True))
        return (f"(op {self.name} {buffers} (buffer R {self.result} (N) (0) out) (size N)\n"
                f"  (body (for i 0 N 1 serial (setf (aref R i) {value}))))")

    def expected(self, args: list[np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            if self.fn == "cast":
                return np.asarray(evaluate.cast(args[0], self.operands[0], self.result))
            if self.fn == "bitcast":
                return np.asarray(evaluate.bitcast(args[0], self.result))
            return np.asarray(evaluate.apply(self.fn, args, self.operands[-1])).astype(numpy_dtype(self.result))


def rows() -> list[Row]:
    """Everything that a body can say about one to three elements."""
    found: list[Row] = []
    for fn, row in OPERATORS.items():
        for dtype in DTYPES:
            if row.defined_on(dtype):
                operands = ("bool", dtype, dtype) if fn == "where" else (dtype,) * row.arity
                found.append(Row(f"{fn}_{dtype}_", fn, operands, row.result_type(operands)))
    for source, target in itertools.product(REAL, REAL):
        if source != target:
            found.append(Row(f"cast_{target}_of_{source}_", "cast", (source,), target))
            if DTYPES[source].bits == DTYPES[target].bits and "bool" not in (source, target):
                found.append(Row(f"bitcast_{target}_of_{source}_", "bitcast", (source,), target))
    return found


def specials(dtype: str) -> np.ndarray:
    """The values at which operators go wrong."""
    d = DTYPES[dtype]
    if d.kind == "bool":
        return np.array([False, True])
    if d.kind == "complex":
        parts = (0.0, -0.0, 1.5, -2.25)
        return np.array([complex(a, b) for a in parts for b in parts], d.numpy)
    if d.kind == "float":
        edge = [2.0**31, 2.0**63, 2.0**64, 255.5, 65536.0, -129.0, TINY[dtype], -TINY[dtype], HUGE[dtype], -HUGE[dtype], 1e-39]
        return np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 0.1, -7.3, 88.5, 710.0, np.inf, -np.inf, np.nan, *edge]).astype(numpy_dtype(dtype))
    small = [v for v in (0, 1, -1, 2, -2, 3, 7, -8, 9, 31, 32, 33, 63, 64, 65, 100) if d.least <= v <= d.greatest]
    return np.array([*small, d.least, d.greatest, d.least + 1, d.greatest - 1]).astype(numpy_dtype(dtype))


def operands_of(row: Row, rng: np.random.Generator) -> list[np.ndarray]:
    """All pairs of special values and as many random ones; of three operands a sample."""
    values = [specials(d) for d in row.operands]
    grid = np.meshgrid(*values, indexing="ij") if len(values) < 3 else [rng.choice(v, 600) for v in values]
    return [np.concatenate([g.ravel(), random(d, rng, 101)]) for g, d in zip(grid, row.operands, strict=True)]


def random(dtype: str, rng: np.random.Generator, n: int) -> np.ndarray:
    d = DTYPES[dtype]
    if d.kind == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if d.kind in ("int", "uint"):
        return rng.integers(d.least, d.greatest, n, dtype=np.uint64 if d.kind == "uint" else np.int64, endpoint=True).astype(numpy_dtype(dtype))
    if d.kind == "complex":
        return (rng.uniform(-4, 4, n) + 1j * rng.uniform(-4, 4, n)).astype(d.numpy)
    return (rng.uniform(-1, 1, n) * 10.0 ** rng.integers(-3, 4, n)).astype(numpy_dtype(dtype))


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The distance in units in the last place; 0 for equal bits of any NaN, infinite where one is a NaN or the signs of zeros differ."""
    kind = np.dtype(f"i{got.dtype.itemsize}")
    same = (got.view(kind) == want.view(kind)) | (np.isnan(got) & np.isnan(want))

    def line(x: np.ndarray) -> np.ndarray:
        bits = x.view(kind).astype(np.int64)
        return np.where(bits < 0, np.int64(np.iinfo(kind).min) - bits, bits)
    with np.errstate(all="ignore"):
        a, b = line(got), line(want)
        distance = np.where((a < 0) == (b < 0), np.abs(a - b), np.abs(a.astype(np.float64) - b))       # of one sign it fits an integer: exact
    return np.where(same, 0.0, np.where(np.isnan(got) | np.isnan(want), np.inf, np.maximum(distance, 1e-9)))


def faults(row: Row, args: list[np.ndarray], got: np.ndarray, allowed: float) -> str:
    """The first element that is wrong."""
    want = row.expected(args)
    if DTYPES[row.result].kind == "complex" and row.fn not in STRICT_ON_COMPLEX:
        with np.errstate(all="ignore"):
            bad = ~(np.isclose(got, want, rtol=1e-5, atol=1e-6) | ~np.isfinite(want) | ~np.isfinite(got))
    elif DTYPES[row.result].kind == "float" and allowed > 0.5:
        bad = ulps(got, want) > allowed
    elif DTYPES[row.result].kind in ("float", "complex"):
        a, b = (v.view(v.real.dtype) for v in (np.ascontiguousarray(got), np.ascontiguousarray(want)))
        kind = np.dtype(f"i{a.dtype.itemsize}")
        bad = ((a.view(kind) != b.view(kind)) & ~(np.isnan(a) & np.isnan(b)) & ~((a == b) & (row.fn in SIGN_OF_ZERO))).reshape(len(got), -1).any(1)
    else:
        bad = got != want
    if not bad.any():
        return ""
    k = int(np.argmax(bad))
    return f"{row.name}: ({row.fn} {' '.join(repr(a[k]) for a in args)}) gives {got[k]!r}, expected {want[k]!r}; {int(bad.sum())} of {len(got)} wrong"


SIGN_OF_ZERO = ("max", "min", "fmax", "fmin", "clip", "relu", "sign")      # which zero of two equal ones is not specified


def library(which: list[Row], runtime: str, opt: int, folder: Path, c_level: str, math: str = "precise") -> compiler.Built:
    """All rows as one library."""
    options = Options(runtime=runtime, config=(("OPT", c_level), ("MATH", math)), opt=opt, cache_dir=str(folder / "cache"),
                      given=frozenset(("opt", "runtime", "config")))
    programs = loading.load_programs(SpecText("rows", "\n".join(r.text() for r in which), "lisp"), options)
    return compiler.Compilation(programs, options).artifact()


def job_of(row: Row, args: list[np.ndarray]) -> Job:
    result = np.zeros(len(args[0]), numpy_dtype(row.result))
    given = {**dict(zip("XYZ", zip(args, row.operands, strict=True), strict=False)), "R": (result, row.result)}
    return Job(row.name, {n: a for n, (a, _) in given.items()} | {"N": len(args[0])})


def allowed_ulp(row: Row) -> float:
    """The bound of the table; one more in float64, whose reference is itself computed in float64."""
    if row.fn not in OPERATORS:
        return 0.0
    fn = "hypot" if row.fn == "abs" and DTYPES[row.operands[0]].kind == "complex" else row.fn
    own = OPERATORS[fn].ulp
    if is_short(row.operands[0]):
        return min(own, 1.0)
    if fn == "lgamma" and row.operands[0] == "f64":
        return 500.0                                        # the reference is Python's, which is off near the zeros below 0
    return own if own <= 0.5 else own + (1.0 if row.operands[0] in ("f64", "c128") else 0.0)


def check(which: list[Row], runtime: str, opt: int, folder: Path, c_level: str = "0", seed: int = 0) -> list[str]:
    """What is wrong with the rows, compiled so."""
    rng = np.random.default_rng(seed)
    given = [operands_of(r, rng) for r in which]
    built = library(which, runtime, opt, folder, c_level)
    assert ("ct_f32x" in built.source) == (opt >= 2), "vectors at -O2, and only there"
    found = []
    jobs = [job_of(r, args) for r, args in zip(which, given, strict=True)]
    for row, args, called in zip(which, given, call_all(built.artifact, built.manifest, jobs), strict=True):
        if called.status != 0 or called.wrong:
            found.append(f"{row.name}: status {called.status}, {called.wrong}")
        elif text := faults(row, args, called.results["R"], allowed_ulp(row)):
            found.append(text)
    return found


def every_third(which: list[Row]) -> list[Row]:
    """Of each operator every third type, beginning with the first, the second and the third by turns; of one or two types the first."""
    of, seen, kept = Counter(r.fn for r in which), Counter[str](), []
    turns = {fn: n for n, fn in enumerate(of)}
    for row in which:
        seen[row.fn] += 1
        if (seen[row.fn] + turns[row.fn]) % 3 == 1 if of[row.fn] > 2 else seen[row.fn] == 1:
            kept.append(row)
    return kept


def slice_of(nightly: bool) -> list[tuple[str, int, str]]:
    """Runtime, level of optimisation, level of the C compiler."""
    return [(r, o, c) for r in ("clang", "gcc") for o in (0, 2) for c in ("0", "2")] if nightly else [("clang", 2, "0")]


def test_every_operator_on_every_type_at_its_special_values(nightly: bool, tmp_path: Path) -> None:
    which = rows() if nightly else every_third(rows())
    seen = Counter(r.fn for r in which) + Counter(d for r in which for d in r.operands)
    print("seed 0:", dict(sorted(seen.items())))
    assert not [name for name in (*OPERATORS, *DTYPES, "cast", "bitcast") if not seen[name]]
    for runtime, opt, c_level in slice_of(nightly):
        found = check(which, runtime, opt, tmp_path, c_level)
        assert not found, f"{runtime} -O{opt}, C compiler at -O{c_level}: {len(found)} of {len(which)} kernels\n" + "\n".join(found[:40])


# -- functions over the whole line --------------------------------------------------------------------------------------------------------

FUNCTIONS = tuple(fn for fn, row in OPERATORS.items() if row.ulp > 0.5 and row.arity == 1 and row.takes == "float")
PAIRS = tuple(fn for fn in elementary_table.FORMS if OPERATORS[fn].arity == 2)
# runtime, level of optimisation (0: scalars), MATH
BUILDS = [("clang", 0, "precise"), ("clang", 2, "precise"), ("clang", 2, "fast"), ("gcc", 2, "precise"), ("gcc", 2, "fast")]


def strided(dtype: str, points: int, rng: np.random.Generator) -> np.ndarray:
    """Every n-th number by its bits, in float64 with random low bits; a third of them between e^-12 and e^7."""
    count = points - points // 3
    bits = np.arange(0, 1 << 32, (1 << 32) // count, dtype=np.uint64)[:count]
    if dtype == "f64":
        bits = (bits << np.uint64(32)) + rng.integers(0, 1 << 32, len(bits), dtype=np.uint64)
    near = np.exp(rng.uniform(-12, 7, points // 3)) * rng.choice([-1, 1], points // 3)
    like = DTYPES[dtype].numpy
    return np.concatenate([bits.astype(np.uint32 if dtype == "f32" else np.uint64).view(like), near.astype(like)])


def exact(fn: str, args: list[np.ndarray]) -> np.ndarray:
    """The values before rounding, as far as wider floats give them: float32's in float64, those of float64 in long double where numpy has them."""
    dtype = args[0].dtype
    with np.errstate(all="ignore"):
        if dtype == np.float64 and OPERATORS[fn].numpy:
            return getattr(np, OPERATORS[fn].numpy)(*[a.astype(np.longdouble) for a in args])       # type: ignore[no-any-return]
        return np.asarray(evaluate.apply(fn, [a.astype(np.float64) for a in args], "f64"))


def error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The error in units in the last place of the value; infinite for a wrong NaN or infinity, but next to the greatest number, where it is 1."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        exponent = np.maximum(np.frexp(np.abs(want))[1] - 1, info.minexp)
        off = np.abs(got.astype(np.longdouble) - want) / np.ldexp(np.longdouble(1), exponent - info.nmant)
        at_edge = np.minimum(np.abs(got), np.abs(rounded)) == info.max
    same = (np.isnan(got) & np.isnan(rounded)) | ((got == rounded) & ~np.isfinite(rounded))
    strange = ~np.isfinite(got) | ~np.isfinite(rounded)
    return np.where(same, 0.0, np.where(strange, np.where(at_edge, 1.0, np.inf), off)).astype(np.float64)


def bound(row: Row, math: str, vector: bool) -> float:
    """What was measured of a form, else what the table asks for. The reference of float64 may itself be off where there is no wider one."""
    measured = elementary_table.measured(row.fn, row.operands[0], math == "fast") if vector else None
    return OPERATORS[row.fn].ulp + 0.5 if measured is None else measured + (row.operands[0] == "f64" and not OPERATORS[row.fn].numpy)


def worst_errors(which: list[Row], points: int, folder: Path, builds: list[tuple[str, int, str]], c_level: str) -> tuple[dict[str, float], list[str]]:
    """The greatest error of every row in every build, and what is beyond its bound."""
    rng = np.random.default_rng(4)
    values = {dtype: [strided(dtype, points, rng) for _ in range(2)] for dtype in ("f32", "f64")}
    rng.shuffle(values["f32"][1])
    rng.shuffle(values["f64"][1])
    built = [library(which, runtime, opt, folder, c_level, math) for runtime, opt, math in builds]
    worst: dict[str, float] = {}
    wrong: list[str] = []
    for start in range(0, points, 100_000):
        args = {r: [v[start:start + 100_000] for v in values[r.operands[0]][:len(r.operands)]] for r in which}
        want = {r: exact(r.fn, args[r]) for r in which}
        for b, (runtime, opt, math) in zip(built, builds, strict=True):
            rows = [r for r in which if opt >= 2 or r.operands[0] == "f32"]        # float64 scalars are the C library's
            for row, called in zip(rows, call_all(b.artifact, b.manifest, [job_of(r, args[r]) for r in rows], 600), strict=True):
                assert called.status == 0, called
                got = called.results["R"]
                off = error(got, want[row])
                if math == "fast":                                       # what is below twice the least normal number may come out as 0
                    off = np.where((got == 0) & (np.abs(want[row]) < 2 * np.finfo(got.dtype).tiny), 0.0, off)
                key = f"{row.name}{runtime} -O{opt} {math}"
                worst[key] = max(worst.get(key, 0.0), float(off.max()))
                if off.max() > bound(row, math, opt >= 2):
                    k = int(np.argmax(off))
                    wrong.append(f"{key}({[a[k] for a in args[row]]}) = {got[k]!r}, expected {want[row][k]!r}: {off[k]:.3g} ulp")
    return worst, wrong


def test_functions_stay_within_their_ulp(nightly: bool, tmp_path: Path) -> None:
    which = [Row(f"{fn}_{d}_", fn, (d,) * OPERATORS[fn].arity, d) for fn in FUNCTIONS + PAIRS for d in ("f32", "f64")
             if d == "f32" or elementary_table.has_form(fn, Arithmetic(d))]
    worst, wrong = worst_errors(which, POINTS[nightly], tmp_path, BUILDS if nightly else BUILDS[::2][:2] + BUILDS[3:4], "2" if nightly else "0")
    print(f"{POINTS[nightly]} points:", {fn: round(u, 2) for fn, u in worst.items()})
    assert not wrong, "\n".join(wrong[:30])


def test_angles_of_subnormal_numbers(tmp_path: Path) -> None:
    """What a division by them leaves over is lost unless both are scaled."""
    draw = np.random.default_rng(0)
    y, x = [(np.exp2(draw.uniform(least, most, 50_000)) * draw.choice([-1, 1], 50_000)).astype(np.float32) for least, most in ((-149, -120), (-40, 30))]
    row = Row("atan2_f32_", "atan2", ("f32", "f32"), "f32")
    for runtime, opt, c_level in (("clang", 2, "0"), ("gcc", 2, "0")):
        built = library([row], runtime, opt, tmp_path, c_level)
        (called,) = call_all(built.artifact, built.manifest, [job_of(row, [y, x])], 600)
        off = error(called.results["R"], exact("atan2", [y, x]))
        assert off.max() <= bound(row, "precise", True), runtime


@pytest.mark.slice(2)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_functions_of_every_16_bit_float_are_within_one_ulp(dtype: str, nightly: bool, tmp_path: Path) -> None:
    unary = [fn for fn, row in OPERATORS.items() if row.arity == 1 and row.takes == "float" and row.defined_on(dtype)]
    which = [Row(f"{fn}_{dtype}_", fn, (dtype,), OPERATORS[fn].result_type((dtype,))) for fn in unary]
    every = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype))
    for runtime, opt, c_level in slice_of(nightly):
        built = library(which, runtime, opt, tmp_path, c_level)
        for row, called in zip(which, call_all(built.artifact, built.manifest, [job_of(r, [every]) for r in which], 600), strict=True):
            assert called.status == 0, called
            assert not faults(row, [every], called.results["R"], allowed_ulp(row)), f"{runtime} -O{opt}"


def test_a_wrong_coefficient_of_a_vector_function_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = exponential.TAIL["f32"]
    monkeypatch.setitem(exponential.TAIL, "f32", (tail[0], tail[1] * 1.0001, *tail[2:]))
    _, wrong = worst_errors([Row("exp_f32_", "exp", ("f32",), "f32")], 2000, tmp_path, BUILDS[:2], "0")
    assert len(wrong) == 1
    assert "clang -O2" in wrong[0]


# -- the net catches planted faults -------------------------------------------------------------------------------------------------------

def planted(fn: str, dtype: str, folder: Path, opt: int) -> list[str]:
    return check([r for r in rows() if r.fn == fn and r.operands[-1] == dtype], "clang", opt, folder)


def test_the_net_catches_a_wrong_scalar_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(helper_bodies.SCALAR_ROWS, ("mod", "int"), "return b == 0 || b == -1 ? 0 : (T)(a % b);")
    assert any("mod_i32_" in text for text in planted("mod", "i32", tmp_path, 0))


def test_the_net_catches_a_wrong_vector_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(helper_bodies.VECTOR_ROWS, ("max", "float"), "SELECT(a > b, a, b)")
    assert any("max_f32_" in text for text in planted("max", "f32", tmp_path, 2))
