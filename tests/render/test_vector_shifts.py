"""Shifts by another number of bits in each lane."""
from __future__ import annotations

import numpy as np
import pytest

import caten

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SPEC = f'''
[composite]
name = "Shifts"
inputs = [{", ".join(f'"x_{t}{{{t}}}[N]", "k_{t}{{{t}}}[N]"' for t in TYPES)}]
outputs = [{", ".join(f'"l_{t}{{{t}}}[N]", "r_{t}{{{t}}}[N]"' for t in TYPES)}]

[implementation]
lang = "python"
code = """return {", ".join(f"x_{t} << k_{t}, x_{t} >> k_{t}" for t in TYPES)}"""
'''


@pytest.mark.slice(3)
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
@pytest.mark.parametrize("march", ["x86-64-v2", "native"])
def test_each_lane_by_its_own_number_of_bits(runtime: str, march: str) -> None:
    """By the width or more: 0, or -1 to the right of a negative number. Negative numbers of bits are far beyond the width."""
    shifts = caten.compile(SPEC, runtime=runtime, opt=2, config={"MARCH": march})
    assert "vector_size" in shifts.source
    draw = np.random.default_rng(0)
    arguments, wanted = [], []
    for name in TYPES:
        dtype, bits = np.dtype(name), np.dtype(name).itemsize * 8
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = draw.integers(least, most, 300, dtype=dtype, endpoint=True)
        k = np.where(draw.random(300) < 0.1, draw.integers(least, most, 300, dtype=dtype, endpoint=True), draw.integers(0, bits + 4, 300).astype(dtype))
        arguments += [x, k]
        pairs = list(zip(x.tolist(), k.tolist(), strict=True))
        wanted.append(np.array([(a << b) % (1 << bits) if 0 <= b < bits else 0 for a, b in pairs], np.uint64).astype(dtype))
        wanted.append(np.array([a >> b if 0 <= b < bits else -(a < 0) for a, b in pairs], dtype))
    for found, want in zip(shifts(*arguments), wanted, strict=True):
        np.testing.assert_array_equal(found, want)
