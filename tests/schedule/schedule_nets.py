"""What the tests of schedules share: small programs over a fixed set of arrays, and the nets every rewriting goes
through."""
from __future__ import annotations

import random
from typing import Any

import numpy as np

from caten.core.expr import Const, Expr, Var, index
from caten.core.node import substitute
from caten.core.program import resolve
from caten.core.text import read, show
from caten.loop import verifier
from caten.loop.affine import canonical
from caten.loop.statements import Kernel, Local, LoopProgram
from caten.schedule.analysis.loop_queries import loops_in
from caten.semantics.interpret import run

PARAMS = """(size M) (size N) (size K) (scalar x f32)
 (buffer A f32 (M N) (0 1) in) (buffer B f32 (N K) (0 1) in) (buffer C f32 (M K) (0 1) inout) (buffer T f32 (N M) (0 1) inout)
 (buffer X f32 (M N) (0 1) inout) (buffer u f32 (N) (0) in) (buffer v f32 (N) (0) inout) (buffer w f32 (M) (0) inout)
 (buffer s f32 () () inout) (buffer I i32 (N) (0) in) (buffer Q i32 (N) (0) inout) (buffer R f32 (8 6) (0 1) inout)
 (buffer S f32 (6 8) (0 1) inout) (buffer F f32 (8 6) (1 0) inout) (buffer V f32 (4 N 6) (0 1 2) in) (buffer W f32 (6 N 4) (0 1 2) inout)
 (buffer D f64 (6 4) (0 1) inout) (buffer E f64 (4 6) (0 1) in)"""
SIZES = ((0, 0, 0), (1, 1, 1), (2, 3, 5), (5, 0, 2), (4, 8, 4), (7, 9, 8), (3, 17, 6))
NUMPY = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}


def program(statements: str, params: str = PARAMS, facts: str = "") -> LoopProgram:
    """A program of one kernel over the common arrays."""
    node = resolve(read(f"(loop t {facts} {params} (kernel t {statements}))")[0])
    assert isinstance(node, LoopProgram)
    return node


def kernel_text(node: LoopProgram) -> str:
    """The statements of the (only) kernel, one after the other; of several kernels what is between them, and each with
    its name."""
    if len(node.kernels) > 1:
        return "\n".join(show(clause) for clause in node.clauses if isinstance(clause, Kernel | Local))
    return "\n".join(show(stmt) for stmt in node.kernels[0].body)


def arguments(node: LoopProgram, sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """Small whole numbers, so that sums of any order agree exactly."""
    rng = np.random.default_rng(seed)
    values: dict[str, Any] = dict(sizes)
    values |= {"x": 3.0} if "(scalar x" in show(node) else {}
    for buffer in node.buffers.values():
        shape = tuple(_number(e, sizes) for e in buffer.shape)
        values[buffer.name] = rng.integers(-4, 5, shape).astype(NUMPY[buffer.type])
    return values


def _number(extent: Expr, sizes: dict[str, int]) -> int:
    value = canonical(substitute(extent, {Var(n, "i64"): index(v) for n, v in sizes.items()}))
    assert isinstance(value, Const)
    return int(value.value)


def assert_sound(after: LoopProgram) -> None:
    """Verified, and the same after printing and reading."""
    verifier.verify(after)
    assert resolve(read(show(after))[0]) is after


def assert_same(before: LoopProgram, after: LoopProgram, sizes: tuple[tuple[int, ...], ...] = SIZES, seed: int = 0,
                may_be_idle: bool = False) -> None:
    """Both give the same arrays, bit for bit, whatever the order of parallel iterations; unless it `may_be_idle`, at
    some of the sizes an element is changed, or the call fails, so that something is compared."""
    matters = False
    orders = ("forward", "reverse") if any(loop.mark in ("parallel", "grid", "block") for loop in loops_in(after)) else ("forward",)
    for n, row in enumerate(sizes):
        bound = dict(zip(before.sizes, row, strict=False))
        given = arguments(before, bound, seed + n)
        results = []
        for node, order in ((before, "forward"), *[(after, order) for order in orders]):
            own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given.items()}
            results.append((run(node, own, order), own))
        (code, expected), *others = results
        matters |= code != 0 or any(not np.array_equal(value, given[name], equal_nan=True)
                                    for name, value in expected.items() if name in before.buffers)
        for other_code, other in others:
            assert other_code == code
            for name, value in expected.items():
                assert np.array_equal(value, other[name], equal_nan=isinstance(value, np.ndarray)
                                      and value.dtype.kind == "f"), (name, bound)
    assert matters or may_be_idle, "the program does nothing at these sizes"


def pick(rng: random.Random, values: list[Any]) -> Any:
    return values[rng.randrange(len(values))]
