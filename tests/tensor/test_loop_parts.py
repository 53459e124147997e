"""Loops over the parts of arrays that are put together, and reductions over a few arrays without a loop over them."""
from __future__ import annotations

import itertools
import textwrap
from typing import Any

import numpy as np
import pytest
from test_tensor_meaning import programs, toml_of

from caten.core.expr import Op
from caten.frontend.spec_files import SpecText
from caten.loop.statements import For, LoopProgram, Setf
from caten.semantics import interpret
from caten.tensor.lower import lower
from caten.tensor.values import Compute, Reduce, TensorProgram

SHIFTS = "[p[i:i + H, j:j + W] for i in range({n}) for j in range({n})]"
STENCILS = {
    "padded once": ("p = np.pad(X, 1)\nreturn sum({s})", 3),
    "padded twice": ("p = np.pad(X, 2, constant_values=1)\nreturn sum({s})", 5),
    "padded unevenly": ("p = np.pad(X, ((2, 0), (1, 3)))\nH, W = X.shape\nreturn p[:H, :W] + p[2:, 3:3 + W] * p[1:1 + H, 4:] + p[:H, 2:2 + W]", 3),
    "the least of shifts": ("p = np.pad(X, 1, constant_values=9)\nreturn np.minimum.reduce({s})", 3),
    "a weighted mean of shifts": ("p = np.pad(X, 1)\nreturn np.mean([q * q for q in {s}], axis=0)", 3),
    "bounds from both sides": ("i, j = np.arange(H)[:, None], np.arange(W)\nq = np.pad(X, 1)\nreturn q[2:, 2:] * np.where((i >= 2) & (j < W - 1), q[:-2, 1:-1], X) + q[:-2, :-2]", 3),
}


def made(code: str, n: int) -> tuple[str, TensorProgram]:
    body = code.replace("{s}", SHIFTS.format(n=n))
    _, values = programs(SpecText("<text>", toml_of("X{float}[H W]", "Y{float}[H W]", body), "toml"))
    return body, values


def choices(program: LoopProgram) -> list[int]:
    """How many choices the stores of each nest have, in order."""
    nests = [s for s in program.kernels[-1].body if isinstance(s, For)]
    return [sum(isinstance(n, Op) and n.fn == "where" for s in nest.walk() if isinstance(s, Setf) for n in s.value.unique()) for nest in nests]


@pytest.mark.parametrize("name", STENCILS)
def test_stencils_on_padded_arrays(name: str) -> None:
    body, values = made(*STENCILS[name])
    loops = lower(values)
    for height, width in itertools.product((1, 2, 4, 7), (1, 3, 8)):
        x = np.arange(height * width, dtype=np.float32).reshape(height, width) % 7
        space: dict[str, Any] = {"np": np}
        exec(f"def f(X, H, W):\n{textwrap.indent(body, '    ')}", space)
        given = {"X": x, "Y": np.full_like(x, np.nan), "H": height, "W": width}
        assert interpret.run(loops, given) == 0
        np.testing.assert_allclose(given["Y"], space["f"](x, height, width), rtol=1e-6)


@pytest.mark.parametrize(("code", "nests"), [
    ("np.stack([X + 1, X - 1], axis=-1)", 1), ("np.stack([X * 2, X, X + 1, X - 1], axis=-1)", 1),
    ("np.stack([X + 1, X - 1])", 2), ("np.stack([X, -X, X + 1, X - 1, 2 * X], axis=-1)", 5), ("np.stack([np.exp(X), np.tanh(X)], axis=-1)", 2)])
def test_short_last_axes_are_no_loops_over_parts(code: str, nests: int) -> None:
    """Each would store every second or fourth element; but costly functions are computed in vectors."""
    count = code.count(", ") + 1 - code.count(", axis")
    shape = f"[H W {count}]" if "axis" in code else f"[{count} H W]"
    _, values = programs(SpecText("<text>", toml_of("X{float}[H W]", "Y{float}" + shape, f"return {code}"), "toml"))
    loops = lower(values)
    assert len(choices(loops)) == nests
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    want = eval(code, {"np": np, "X": x})
    given = {"X": x, "Y": np.full_like(want, np.nan), "H": 2, "W": 3}
    assert interpret.run(loops, given) == 0
    np.testing.assert_allclose(given["Y"], want, rtol=1e-6)


@pytest.mark.parametrize("name", STENCILS)
def test_the_interior_has_no_tests(name: str) -> None:
    _, values = made(*STENCILS[name])
    found = choices(lower(values))
    assert 2 <= len(found) <= 8
    assert found[-1] == 0


REDUCTIONS = {
    "np.max([X, Y, X * Y], axis=0)": True, "np.minimum.reduce((X, Y))": True, "np.sum([X, Y, Z], axis=0)": True, "np.stack([X, Y]).prod(axis=0)": True,
    "np.mean([np.abs(X), Y], axis=0)": True,
    "np.max([X, Y]) + X": False,                           # over other axes, too
    "(np.array([1.0, 2.0, 3.0])[:, None] * X).sum(axis=0)": False,         # one array, and numbers
    "np.max([X] * 40, axis=0)": False,                     # too many
    "np.max(np.concatenate([A, B]), axis=0)": False,        # of as many as sizes say
}


@pytest.mark.parametrize("code", REDUCTIONS)
def test_a_reduction_over_a_few_arrays_is_an_operator(code: str) -> None:
    _, values = programs(SpecText("<text>", toml_of("X{float}[N]", "R{float}[N]", f"return {code}").replace(
        '"X{float}[N]"', '"X{float}[N]", "Y{float}[N]", "Z{float}[N]", "A{float}[M N]", "B{float}[M N]"'), "toml"))
    kinds = [type(d.value) for d in values.definitions]
    assert (kinds == [Compute]) == REDUCTIONS[code]
    assert (Reduce in kinds) != REDUCTIONS[code]
