"""Floats as integers: NaN is 0, what is beyond the limits the nearest one, and -0.5 is no negative zero."""
from __future__ import annotations

import numpy as np
import pytest

import caten

FLOATS = {"float": np.float32, "double": np.float64}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SPEC = "\n".join([f"""[[composite]]
name = "{f}_{t}"
inputs = ["x{{{f}}}[N]"]
outputs = ["y{{{t}}}[N]", "z{{{f}}}[N]"]
[composite.implementation]
lang = "python"
code = "return x.astype(np.{t}), x.astype(np.{t}).astype(np.{FLOATS[f].__name__})"
""" for f in FLOATS for t in INTEGERS])


def numbers(f: type[np.floating]) -> np.ndarray:
    rng, special = np.random.default_rng(0), [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1, -1, 1.5, -1.5, np.nextafter(f(1), f(0)), np.nextafter(f(-1), f(0))]
    for limit in [f(sign * 2.0 ** bits) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1)]:
        special += [limit, np.nextafter(limit, f(0)), np.nextafter(limit, f(2) * limit), *[limit + f(d) for d in (-1.5, -1, -0.5, 0.5, 1)]]
    return np.concatenate([np.array(special, f), (rng.standard_normal(300) * 10.0 ** rng.integers(-2, 22, 300)).astype(f), rng.uniform(-300, 300, 200).astype(f)])


def saturated(x: np.ndarray, dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.array([0 if v != v else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v) for v in x.tolist()], dtype)


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize(("runtime", "march", "opt"), [
    ("clang", "native", 2), ("gcc", "native", 2), ("gcc", "x86-64-v3", 2), ("clang", "x86-64", 2), ("clang", "native", 0), ("gcc", "native", 0)])
def test_floats_are_converted_as_numbers(runtime: str, march: str, opt: int) -> None:
    """Vectors (-O2) and single numbers (-O0)."""
    kernels = caten.compile(SPEC, runtime=runtime, config={"MARCH": march, "OPT": opt})
    for f, kind in FLOATS.items():
        x = numbers(kind)
        for t in INTEGERS:
            y, z = kernels[f"{f}_{t}"](x)
            wanted = saturated(x, t)
            np.testing.assert_array_equal(y, wanted, f"{f} to {t}")
            np.testing.assert_array_equal(z, wanted.astype(kind), f"{f} to {t} and back")
            assert not np.signbit(z[z == 0]).any()
