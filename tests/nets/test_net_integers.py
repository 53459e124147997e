"""The net of integer arithmetic: random expressions over the extremes of a type wrap as they are said to, at every level."""
from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten.core.dtypes import DTYPES

Value = Callable[[dict[str, int]], int]
COMPARISONS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, "/=": operator.ne, ">": operator.gt, ">=": operator.ge}
MOST = 3                          # operators inside each other
EXPRESSIONS = 8                   # in a kernel


class Integers:
    """Expressions of one type with their values, computed without a limit and wrapped after every operator."""

    def __init__(self, dtype: str, seed: int):
        self.dtype, self.rnd, row = dtype, random.Random(seed), DTYPES[dtype]
        self.least, self.greatest, self.bits = int(row.least), int(row.greatest), row.bits

    def wrapped(self, value: int) -> int:
        return (value - self.least) % (1 << self.bits) + self.least

    def number(self) -> tuple[str, Value]:
        value = self.rnd.choice([0, 1, 2, 3, 5, 8, self.greatest, self.greatest - 1, self.least, self.least + 1])
        return self.typed(value), lambda env: value

    def typed(self, value: int) -> str:
        """A number of the type: what literals of no type are made of is computed before, without a limit."""
        name = DTYPES[self.dtype].numpy
        return f"(cast {name} {value})" if value < 1 << 63 else f"(- (cast {name} 0) (cast {name} {(1 << 64) - value}))"

    def expression(self, depth: int = 0) -> tuple[str, Value]:
        rnd = self.rnd
        if depth == MOST or rnd.random() < 0.2:
            return rnd.choice([("(aref x i)", lambda env: env["x"]), ("(aref x i)", lambda env: env["x"]), ("z", lambda env: env["z"]), self.number()])
        (a, va), (b, vb) = self.expression(depth + 1), self.expression(depth + 1)
        kind = rnd.random()
        if kind < 0.4:
            name, fn = rnd.choice([("+", operator.add), ("-", operator.sub), ("*", operator.mul), ("min", min), ("max", max)])
            return f"({name} {a} {b})", lambda env: self.wrapped(fn(va(env), vb(env)))
        if kind < 0.6:
            by = rnd.choice([1, 2, 3, 4, 7, 8, 16])
            name, by_number = rnd.choice([("floordiv", operator.floordiv), ("mod", operator.mod), ("+", operator.add), ("-", operator.sub), ("*", operator.mul)])
            return f"({name} {a} {self.typed(by)})", lambda env: self.wrapped(by_number(va(env), by))
        if kind < 0.8:                                    # of what differs by a constant
            by = rnd.choice([1, 2, 3])
            b, vb = f"(+ {a} {self.typed(by)})", lambda env: self.wrapped(va(env) + by)
        name, test = rnd.choice(list(COMPARISONS.items()))
        (u, vu), (v, vv) = self.expression(depth + 1), self.expression(depth + 1)
        return f"(if ({name} {a} {b}) {u} {v})", lambda env: vu(env) if test(va(env), vb(env)) else vv(env)

    def values(self) -> np.ndarray:
        least, greatest = self.least, self.greatest
        special = [least, least + 1, greatest, greatest - 1, 0, 1, greatest // 2, greatest // 2 + 1, least // 2, greatest // 3, 5]
        return np.array([*special, *[self.rnd.randint(least, greatest) for _ in range(8)]], DTYPES[self.dtype].numpy)


def disagreements(dtype: str, seed: int, runtime: str) -> list[str]:
    """Where kernels of random expressions differ from what the expressions say."""
    made = Integers(dtype, seed)
    expressions = [made.expression() for _ in range(EXPRESSIONS)]
    name = DTYPES[dtype].numpy
    stores = " ".join([f"(setf (aref y {n} i) {text})" for n, (text, _) in enumerate(expressions)])
    spec = f"(composite K ((x{{{name}}}[N], z{{{name}}}[]) -> (y{{{name}}}[{EXPRESSIONS} N])) (dotimes (i N) {stores}))"
    found = []
    for opt in (0, 2):
        kernel: Any = caten.compile(spec, runtime=runtime, opt=opt)
        xs = made.values()
        for z in (made.least, made.greatest, 3):
            got = kernel(x=xs, z=z)
            for (text, value), row in zip(expressions, got, strict=True):
                wanted = [value({"x": int(x), "z": z}) for x in xs]
                found += [f"-O{opt} {dtype}: {text} at x = {x}, z = {z} is {w}, not {g}" for x, g, w in zip(xs, row.tolist(), wanted, strict=True) if g != w]
    return found


@pytest.mark.slice(2)
@pytest.mark.parametrize("dtype", ["i64", "i32", "u64", "i8", "u8", "u32"])
def test_random_integer_expressions_wrap_as_they_should(dtype: str, nightly: bool, tool: Callable[[str], str]) -> None:
    tool("gcc")
    for seed in range(40 if nightly else 1):
        assert not (found := disagreements(dtype, seed, "gcc")), f"seed {seed}: {found[0]}"
