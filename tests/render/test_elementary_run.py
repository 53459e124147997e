"""Elementary functions of vectors in C: every number of lanes, both compilers, with and without fused multiply-add; MATH=fast along the stages."""
from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from test_render_run import COMPILERS, build

from caten.cli.app import cli
from caten.mathematics import evaluate
from caten.render.c_tables import OPS
from caten.render.cstyle import CStyle
from caten.runtime import cpu

ULP = {"exp": 1, "log10": 1, "sin": 1, "pow": 2, "asinh": 3}            # with the reference's own rounding


class Fused(CStyle):
    vector_bytes = 32
    fused = True


class Wide(CStyle):
    vector_bytes = 64
    fused = True


class WithoutExp(CStyle):
    ops: ClassVar = {fn: spelling for fn, spelling in OPS.items() if fn not in ("exp", "log", "expm1")}


def text(fn: str, dtype: str, lanes: int) -> str:
    given = [f"(vref {v} {lanes} (0))" if lanes > 1 else f"(aref {v} 0)" for v in "XY"[:1 + (fn == "pow")]]
    buffers = " ".join([f"(buffer {v} {dtype} ({lanes}) (0) in)" for v in "XY"[:len(given)]])
    return f"(loop V {buffers} (buffer R {dtype} ({lanes}) (0) out) (kernel main (setf {given[0].replace(' X ', ' R ')} ({fn} {' '.join(given)}))))"


def check(run: Any, fn: str, dtype: str, x: np.ndarray) -> None:
    args = [x, np.linspace(-3, 3, len(x)).astype(x.dtype)][:1 + (fn == "pow")]
    got = np.zeros_like(x)
    assert run(*args, got) == 0
    np.testing.assert_array_max_ulp(got, np.asarray(evaluate.apply(fn, args, dtype)), ULP[fn])


@pytest.mark.slice(4)
@pytest.mark.parametrize(("renderer", "lanes"), [pytest.param(r, n, id=f"{n}{name}", marks=[pytest.mark.nightly] if (n in (4, 16)) == r.fused else [])
                                                 for n in (2, 4, 8, 16) for name, r in (("", CStyle()), ("-fused", Fused()))])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_number_of_lanes(compiler: str, lanes: int, renderer: CStyle, tmp_path: Path) -> None:
    for fn in ULP:
        for dtype in ("f32", "f64"):
            folder = tmp_path / f"{fn}_{dtype}"
            folder.mkdir()
            check(build(text(fn, dtype, lanes), folder, compiler, renderer), fn, dtype, np.geomspace(0.1, 20, lanes).astype(f"float{dtype[1:]}"))


NONPOSITIVE: dict[str, tuple[str, Any]] = {
    "min_0": ("(min {0} (splat {1} 0.0:{2}))", lambda x: np.minimum(x, 0)), "nonpositive": ("(neg (abs {0}))", lambda x: -np.abs(x))}


@pytest.mark.parametrize(("renderer", "lanes"), [(CStyle(), 4), (Fused(), 8), (Wide(), 16), (Fused(), 16)])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("form", NONPOSITIVE)
def test_shorter_exponentials_of_what_is_at_most_0(form: str, compiler: str, lanes: int, renderer: CStyle, tmp_path: Path) -> None:
    argument, meant = NONPOSITIVE[form]
    values = [-0.0, 1.5, -20.3, np.nan, -np.inf, -87.9, -103.2, np.inf, -104.4, -130.0, -740.0, -745.0, -1e30, 0.7, -0.3, 200.0]
    for dtype in ("f32", "f64"):
        folder = tmp_path / dtype
        folder.mkdir()
        ref, x = f"(vref X {lanes} (0))", np.array(values, f"float{dtype[1:]}")
        run = build(text("exp", dtype, lanes).replace(f"(exp {ref})", f"(exp {argument.format(ref, lanes, dtype)})"), folder, compiler, renderer)
        assert f"ct_exp_of_{form}_{dtype}x{lanes}(" in run.source
        got = np.zeros_like(x)
        for k in range(0, len(x), lanes):
            assert run(x[k:k + lanes], got[k:k + lanes]) == 0
        with np.errstate(all="ignore"):
            np.testing.assert_array_max_ulp(got, np.asarray(evaluate.apply("exp", [meant(x)], dtype)), 1)


@pytest.mark.slice(8)
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 16), ("f64", 8)])
@pytest.mark.parametrize("fn", ["exp", "exp2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_power_of_two_in_one_instruction_gives_the_same_bits_as_in_two_factors(compiler: str, fn: str, dtype: str, lanes: int, tmp_path: Path) -> None:
    least, most = (-160, 140) if dtype == "f32" else (-1100, 1040)
    x = np.concatenate([np.linspace(least, most, 40 * lanes - 8), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30]]).astype(f"float{dtype[1:]}")
    results = []
    wide = f"-march={'x86-64-v4' if compiler == 'gcc' else 'x86_64_v4'}"
    for flag in ("-mno-avx512f", *[wide] * ("avx512f" in cpu.features())):
        folder = tmp_path / flag
        folder.mkdir()
        run = build(text(fn, dtype, lanes), folder, compiler, Wide(), flag, "-mfma")
        assert f"ct_scaled_{dtype}x{lanes}" in run.source
        out = np.zeros_like(x)
        for k in range(0, len(x), lanes):
            assert run(x[k:k + lanes], out[k:k + lanes]) == 0
        results.append(out)
    np.testing.assert_array_equal(results[0], results[-1])
    tiny = np.finfo(x.dtype).tiny
    assert ((results[0] > 0) & (results[0] < tiny)).any()
    np.testing.assert_array_max_ulp(results[0][:-8], np.asarray(evaluate.apply(fn, [x[:-8]], dtype)), 1)
    np.testing.assert_array_equal(results[0][-8:], np.asarray([1, 1, np.inf, 0, np.nan, np.inf, 0, 1], x.dtype))


@pytest.mark.parametrize("fn", ["max", "min"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_greatest_and_the_least_of_vectors_keep_a_nan_of_either_side(compiler: str, fn: str, tmp_path: Path) -> None:
    values = [0.5, -2.0, np.nan, np.inf]
    x, y = np.repeat(values, 4).astype("f4"), np.tile(values, 4).astype("f4")
    given, sum_ = "(vref X 16 (0))", y.copy()
    run = build(f"""(loop V (buffer X f32 (16) (0) in) (buffer Y f32 (16) (0) in) (buffer R f32 (16) (0) out) (buffer S f32 (16) (0) inout)
        (kernel main (setf (vref R 16 (0)) ({fn} {given} (vref Y 16 (0)))) (incf (vref S 16 (0)) {given} {fn})))""", tmp_path, compiler, Fused())
    got = np.zeros_like(x)
    assert run(x, y, got, sum_) == 0
    want = np.asarray(evaluate.apply(fn, [x, y], "f32"))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(sum_, want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_vector_with_one_large_angle_is_computed_lane_by_lane(compiler: str, dtype: str, tmp_path: Path) -> None:
    x = np.array([0.5, 1e30, -1e20, 3.0], f"float{dtype[1:]}")
    run = build(text("sin", dtype, 4), tmp_path, compiler, Fused())
    assert f"ct_sin_{dtype}x4_far(x)" in run.source
    check(run, "sin", dtype, x)


@pytest.mark.parametrize("fn", ["exp", "asinh"])
def test_scalars_of_a_runtime_that_lacks_exp_and_log(fn: str, tmp_path: Path) -> None:
    run = build(text(fn, "f64", 1), tmp_path, "zig", WithoutExp())
    assert " exp(" not in run.source
    assert " log(" not in run.source
    check(run, fn, "f64", np.array([1.7]))


def test_fast_functions_travel_with_the_text_of_a_stage(tmp_path: Path) -> None:
    spec = tmp_path / "e.toml"
    spec.write_text('[composite]\nname = "E"\ninputs = ["x{float}[N]"]\noutputs = ["y{float}[N]"]\n[implementation]\n'
                    'code = "(dotimes (i N) (setf (aref y i) (exp (aref x i))))"\n')

    def run(*words: str, given: str | None = None) -> str:
        done = CliRunner().invoke(cli, [*words, "--config", "MARCH=x86_64_v3"] if given is None else list(words), input=given)
        assert done.exit_code == 0, done.output
        return done.stdout
    direct = run("render", str(spec), "-o", "-", "--config", "MATH=fast")
    scheduled = run("schedule", str(spec), "-o", "-", "--config", "MATH=fast")
    assert "(exp (vref x 8" in scheduled
    assert run("render", "-", "-o", "-", given=scheduled) == direct
    assert run("render", str(spec), "-o", "-") != direct
