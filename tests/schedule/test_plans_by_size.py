"""Which plan a call gets: one line for each size, in `plans_by_size.txt`."""
from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from test_schedule_plans import SHARED, V4, B, K, M, N, axis, product, total, versions

from caten.core.program import Machine
from caten.schedule.plans import contractions, maps, reductions, row_passes
from caten.schedule.plans.plan import Axis, NestKind
from caten.schedule.plans.product import Product

TABLE = Path(__file__).parent / "plans_by_size.txt"
HEADING = """The plans of float32 nests with AVX-512 (x86_64_v4: 32 KiB of L1 cache, 1 MiB of L2 cache), on one thread unless the nest says otherwise.
For each nest the planner makes versions in this order; a call takes the first whose condition on the sizes holds.
"""
CONVOLUTION = Product("f32", 16, (B,), (M,), (Axis("y", "H", "H"), Axis("x", "W", "W")), (K, axis("r", 3), axis("s", 3)), None, "x", (Axis("y", "H", "H"), Axis("x", "W", "W")), True)
Sizes = tuple[int, ...]
# The nest, the kind of plans, what the planners see, the machine, the names of the sizes, the sizes.
NESTS: tuple[tuple[str, NestKind, Any, Machine, str, tuple[Sizes, ...]], ...] = (
    ("C[m n] += A[m k] B[k n]", contractions.PRODUCTS, product(16), V4, "MNK", (
        (1, 1, 1), (1, 512, 512), (2, 512, 512), (4, 512, 512), (512, 1, 512), (512, 8, 512), (512, 40, 512), (512, 41, 512), (512, 512, 1),
        (8, 8, 8), (16, 16, 16), (64, 64, 64), (128, 128, 128), (129, 129, 129), (24, 512, 256), (256, 256, 256), (512, 512, 512),
        (2048, 2048, 2048))),
    ("C[m n] += A[m k] B[n k]", contractions.PRODUCTS, product(16, right="k"), V4, "MNK", (
        (1, 512, 512), (16, 512, 512), (512, 8, 512), (64, 64, 64), (128, 128, 128), (512, 512, 512))),
    ("C[m n] += A[k m] B[k n]", contractions.PRODUCTS, product(16, left="m"), V4, "MNK", (
        (1, 512, 512), (512, 8, 512), (64, 64, 64), (512, 512, 512))),
    ("C[b m n] += A[b m k] B[b k n], on threads", contractions.PRODUCTS, Product("f32", 16, (B,), (M,), (N,), (K,), "k", "n"), SHARED, "BMNK", (
        (2, 64, 64, 64), (8, 64, 64, 64), (8, 63, 63, 63), (2, 512, 512, 512), (8, 512, 512, 512))),
    ("Y[b m y x] += F[m k 3 3] X[b k y+r x+s]", contractions.PRODUCTS, CONVOLUTION, V4, "BMKHW", (
        (1, 8, 3, 8, 8), (1, 64, 64, 14, 14), (1, 64, 64, 56, 56), (32, 64, 64, 56, 56))),
    ("y[m] += X[m n]", reductions.ROW_SUMS, total(16, (M,), (N,), True, M), V4, "MN", (
        (1000, 1), (1000, 15), (1000, 16), (1000, 100), (1000, 128), (1000, 129), (1000, 10000))),
    ("s += x[n]", reductions.ROW_SUMS, total(16, (), (N,), True), V4, "N", ((1,), (1000,), (1_000_000,))),
    ("y[n] += X[m n], on threads", reductions.COLUMN_SUMS, total(16, (N,), (M,), False, N), SHARED, "MN", (
        (1000, 1), (1000, 32), (1000, 33), (1000, 2048), (1000, 2049), (1000, 100_000))),
    ("softmax of the rows of X[m n]", row_passes.PASSES, row_passes.RowPasses(16, (M,), "N", True), V4, "MN", (
        (1000, 1), (1000, 31), (1000, 32), (1000, 1000))),
    ("Y[m n] = f(X[m n]), on threads", maps.MAPS, maps.Map(16, N, (M,)), SHARED, "MN", (
        (1000, 1), (1000, 15), (1000, 16), (1000, 4096), (1000, 4097))),
    ("y[n] = f(x[n])", maps.MAPS, maps.Map(16, N, ()), V4, "N", ((1,), (1000,), (1_000_000,))),
)


OPERATORS: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "<": operator.lt, "<=": operator.le, "=": operator.eq,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "mod": operator.mod, "floordiv": operator.floordiv}


def value(form: Any, sizes: dict[str, int]) -> int:
    """The value of a condition, or of a part of one, for these sizes."""
    if isinstance(form, tuple):
        fn, *operands = form
        return reduce(OPERATORS[fn], [value(part, sizes) for part in operands])
    return sizes[form] if form in sizes else int(form)


def chosen(kind: NestKind, what: Any, machine: Machine, sizes: dict[str, int]) -> tuple[str, str]:
    """The planner's name and its plan for a call; a nest without a plan for it is planned by its inner loops."""
    for name, version in versions(kind, what, machine).items():
        if version.when is None or value(version.when, sizes):
            return name, str(version.plan)[1:-1]
    return "-", "each inner loop by itself"


def table() -> str:
    rows = [("sizes", "planner", "plan"), ("-----", "-------", "----")]
    for nest, kind, what, machine, names, cases in NESTS:
        rows += [("", "", ""), (nest, "", "")]
        for case in cases:
            sizes = dict(zip(names, case, strict=True))
            rows.append(("  " + " ".join(f"{name}={size}" for name, size in sizes.items()), *chosen(kind, what, machine, sizes)))
    wide = [max(len(row[n]) for row in rows if row[1]) + 2 for n in range(2)]
    return HEADING + "\n" + "".join(f"{first:{wide[0]}}{second:{wide[1]}}{third}".rstrip() + "\n" for first, second, third in rows)


def test_the_plans_by_size(update_goldens: bool) -> None:
    if update_goldens:
        TABLE.write_text(table())
    assert table() == TABLE.read_text(), "other plans: see whether they are faster, then pytest --update-goldens"
