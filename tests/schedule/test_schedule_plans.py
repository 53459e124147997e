"""Plans as data: which versions planners make of what they are shown, for which calls, without a program being changed."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from caten.core.program import Machine
from caten.core.text import flat, read_forms
from caten.schedule.emit import emit
from caten.schedule.plans import devices, maps, products, rows, sums, transposes
from caten.schedule.plans.parameters import Parameter
from caten.schedule.plans.plan import Axis, Family, Given, NotApplicable, Plan, Version
from caten.schedule.plans.products import Product
from caten.schedule.plans.sums import Sum
from caten.schedule.plans.versions import ACROSS, INNERMOST, MODULES, PARAMETERS, PASSES

V3 = Machine("x86_64_v3", 32, 16, (32768, 524288), True)
V4 = Machine("x86_64_v4", 64, 32, (32768, 1048576), True)
SHARED = Machine("x86_64_v4", 64, 32, (32768, 1048576), True, (), True)
SHORT = Machine("x86_64", 16, 16, (32768, 524288), False)
FAR = Machine("znver4", 64, 32, (32768, 1048576), True, (), False, True)
M, N, K, B = (Axis(name.lower(), name, name) for name in "MNKB")


def axis(name: str, count: int) -> Axis:
    return Axis(name, str(count), count=count)


def versions(family: Family, what: Any, machine: Machine, threads: bool = True, ask: Callable[[Parameter, int], int] = lambda p, d: d) -> dict[str, Version]:
    """The versions that planners of a kind of nest have, by the planners' names, down to the first that is for all calls."""
    found: dict[str, Version] = {}
    for planner in family.planners:
        try:
            found[planner.__name__] = planner(what, Given(machine, threads, ask))
        except NotApplicable:
            continue
        if found[planner.__name__].when is None:
            break
    return found


def product(lanes: int, left: str = "k", right: str = "n", **more: Any) -> Product:
    return Product("f32", lanes, (), (M,), (N,), (K,), left, right, **more)


def total(lanes: int, kept: tuple[Axis, ...], summed: tuple[Axis, ...], along: bool, row: Axis | None = None, **more: Any) -> Sum:
    return Sum("f32", lanes, kept, summed, along, row, **more)


# What is planned, the machine, and of each version the planner, the text of the plan and the condition.
PLANS: tuple[tuple[str, Family, Any, Machine, dict[str, tuple[str, str]]], ...] = (
    ("a product of rows and columns", products.PRODUCTS, product(16), V4, {
        "few_columns": ("(tiles (heights 6) (widths 4 2) (lanes 16) (along sum) (alone 4 2) (turned))",
                        "(and (< 0 K) (and (< 0 M) (or (or (<= N 1) (and (<= N 3) (<= 16 K))) (and (<= 24 M) (or (and (<= N 16) (<= 48 K)) (and (<= N 40) (<= 192 K)))))))"),
        "fits": ("(tiles (heights 8 3) (widths 32) (lanes 16) (along columns) (alone 64) (masked 16))",
                 "(and (< 0 K) (and (< 0 M) (and (or (<= 2 K) (< N 512)) (or (<= (* K N) 16384) (and (<= M 24) (<= (* K N) 131072))))))"),
        "few_rows": ("(sum-across (lanes 16) (vectors 2) (rows 8) (block 8192))", "(or (< M 3) (< K 2))"),
        "packed": ("(packed (rows 8) (columns 32) (lanes 16) (depth 256) (panel 512) (panels 1024) (ahead 4) (unroll 1) (packs-along))", "")}),
    ("the same on 16 registers", products.PRODUCTS, product(8), V3, {
        "few_columns": ("(tiles (heights 2) (widths 4 2) (lanes 8) (along sum) (alone 4 2) (turned))",
                        "(and (< 0 K) (and (< 0 M) (or (or (<= N 1) (and (<= N 3) (<= 8 K))) (and (<= 24 M) (or (and (<= N 16) (<= 48 K)) (and (<= N 40) (<= 192 K)))))))"),
        "fits": ("(tiles (heights 4 3) (widths 16) (lanes 8) (along columns) (alone 32) (masked 8))",
                 "(and (< 0 K) (and (< 0 M) (and (or (<= 2 K) (< N 512)) (or (<= (* K N) 16384) (and (<= M 24) (<= (* K N) 65536))))))"),
        "few_rows": ("(sum-across (lanes 8) (vectors 2) (rows 8) (block 8192))", "(or (< M 3) (< K 2))"),
        "packed": ("(packed (rows 6) (columns 16) (lanes 8) (depth 256) (panel 252) (panels 512) (ahead 4) (unroll 1) (packs-along))", "")}),
    ("a product whose right operand lies along the sum", products.PRODUCTS, product(16, right="k"), V4, {
        "few_columns": ("(tiles (heights 6) (widths 4 2) (lanes 16) (along sum) (alone 4 2))",
                        "(and (< 0 K) (and (< 0 M) (or (or (<= N 1) (and (<= N 3) (<= 16 K))) (or (and (<= M 16) (<= 48 K)) (or (and (<= N 16) (<= 48 K)) (and (<= N 40) (<= 192 K)))))))"),
        "fits": ("(tiles (heights 8 3) (widths 32) (lanes 16) (along columns) (alone 64) (masked 16) (turned))",
                 "(and (< 0 K) (and (< 0 M) (<= (* K N) 16384)))"),
        "packed": ("(packed (rows 8) (columns 32) (lanes 16) (depth 256) (panel 512) (panels 1024) (ahead 4) (unroll 1) (packs-along))", "")}),
    ("a product of a left operand that lies along the rows", products.PRODUCTS, product(16, left="m"), V4, {
        "transposed": ("(tiles (heights 8 3) (widths 32) (lanes 16) (along columns) (alone 64) (masked 16) (transposed))", "(and (< 0 K) (and (< 0 N) (<= N 8)))"),
        "fits": ("(tiles (heights 8 3) (widths 32) (lanes 16) (along columns) (alone 64) (masked 16))",
                 "(and (< 0 K) (and (< 0 M) (and (or (<= 2 K) (< N 512)) (or (<= (* K N) 16384) (and (<= M 24) (<= (* K N) 131072))))))"),
        "few_rows": ("(sum-across (lanes 16) (vectors 2) (rows 8) (block 8192))", "(or (< M 3) (< K 2))"),
        "packed": ("(packed (rows 8) (columns 32) (lanes 16) (depth 256) (panel 512) (panels 1024) (ahead 4) (unroll 1))", "")}),
    ("a product of known size", products.PRODUCTS, Product("f32", 16, (), (axis("m", 64),), (axis("n", 64),), (axis("k", 64),), "k", "n"), V4, {
        "packed": ("(packed (rows 8) (columns 32) (lanes 16) (depth 256) (panel 512) (panels 1024) (ahead 4) (unroll 1) (packs-along))", "")}),
    ("a batch of products, on threads", products.PRODUCTS, Product("f32", 16, (B,), (M,), (N,), (K,), "k", "n"), SHARED, {
        "whole_tiles": ("(tiles (heights 8) (widths 32) (lanes 16) (along columns))", "(and (<= (* K N) 16384) (and (= (mod N 32) 0) (= (mod M 8) 0)))"),
        "batch_that_fits": ("(tiles (heights 8) (widths 32) (lanes 16) (along columns) (alone 64) (masked 16))",
                            "(and (< 0 K) (and (< 0 M) (and (<= (* K N) 16384) (or (<= 4 B) (<= M 32)))))"),
        "few_products": ("(packed (rows 8) (columns 32) (lanes 16) (depth 256) (panel 512) (panels 1024) (ahead 4) (unroll 1) (packs-along) (shared))", "(< B 4)"),
        "packed": ("(packed (rows 8) (columns 32) (lanes 16) (depth 256) (panel 512) (panels 1024) (ahead 4) (unroll 1) (packs-along))", "")}),
    ("a convolution with windows of 3 × 3", products.PRODUCTS,
     Product("f32", 16, (B,), (M,), (Axis("y", "H", "H"), Axis("x", "W", "W")), (K, axis("r", 3), axis("s", 3)), None, "x", True, True), V4, {
         "windows": ("(windows (rows 8) (lines 4) (width 8) (lanes 16) (depth 16) (panel 512) (ahead 4) (known) (steps))", "")}),
    ("a sum of rows", sums.ROW_SUMS, total(16, (M,), (N,), True, M), V4, {
        "short_rows": ("(lanes (lanes 16))", "(< N 16)"),
        "rows_of_few_vectors": ("(sum-along (lanes 16) (vectors 1) (masked))", "(and (<= N 128) (< 0 (mod N 64)))"),
        "rows": ("(sum-along (lanes 16) (vectors 4) (tree))", "")}),
    ("a sum of rows of 33 elements", sums.ROW_SUMS, total(16, (M,), (axis("n", 33),), True, M), V4, {
        "rows_of_few_vectors": ("(sum-along (lanes 16) (vectors 1) (masked))", "")}),
    ("a sum of rows of 64 elements", sums.ROW_SUMS, total(16, (M,), (axis("n", 64),), True, M), V4, {
        "rows": ("(sum-along (lanes 16) (vectors 4) (tree))", "")}),
    ("one long sum", sums.ROW_SUMS, total(8, (), (N,), True), V3, {"rows": ("(sum-along (lanes 8) (vectors 4) (tree) (block 65536))", "")}),
    ("one long sum, where streams pay", sums.ROW_SUMS, total(16, (), (N,), True), FAR, {
        "rows": ("(sum-along (lanes 16) (vectors 4) (tree) (block 65536) (apart 262144))", "")}),
    ("a sum of columns, on threads", sums.COLUMN_SUMS, total(16, (N,), (M,), False, N), SHARED, {
        "one_column": ("(column-sum (sums (sum-along (lanes 16) (vectors 4) (tree) (block 65536))))", "(= N 1)"),
        "few_vectors": ("(terms (lanes 16))", "(<= N 32)"),
        "one_block": ("(sum-across (lanes 16) (vectors 2) (rows 8) (block 512))", "(<= N 2048)"),
        "columns": ("(sum-across (lanes 16) (vectors 2) (rows 8) (block 2048))", "")}),
    ("a sum of three columns", sums.COLUMN_SUMS, total(16, (axis("n", 3),), (M,), False, axis("n", 3)), V4, {"few_columns": ("(row-by-row)", "")}),
    ("sums of rows of three elements", sums.SHORT_SUMS, total(16, (M,), (axis("n", 3),), True, M), V4, {"few_elements": ("(held)", "")}),
    ("the same of exponentials", sums.SHORT_SUMS, total(16, (M,), (axis("n", 3),), True, M, computes=True), V4, {"few_elements": ("(lanes (lanes 16))", "")}),
    ("a window of nine", sums.SHORT_SUMS, total(16, (M, N), (axis("r", 3), axis("s", 3)), False, N), V4, {"few_terms": ("(terms (lanes 16) (unrolled))", "")}),
    ("a map of rows, on threads", maps.MAPS, maps.Map(16, N, (M,)), SHARED, {
        "short_rows": ("(as-written (rows))", "(< N 16)"), "rows_of_one_piece": ("(sweep (lanes 16) (vectors 1) (ahead 1024))", "(<= N 4096)"),
        "vectors": ("(sweep (lanes 16) (vectors 1) (pieces 4096) (ahead 1024))", "")}),
    ("a map of one row, fetched ahead", maps.MAPS, maps.Map(16, N, ()), FAR, {"vectors": ("(sweep (lanes 16) (vectors 1))", "")}),
    ("passes over rows", rows.PASSES, rows.Passes(16, (M,), "N", True), V4, {
        "rows_of_one": ("(lanes-across (lanes 16) (single))", "(= N 1)"), "short_rows": ("(lanes-across (lanes 16))", "(< N 32)")}),
)


@pytest.mark.parametrize(("family", "what", "machine", "expected"), [p[1:] for p in PLANS], ids=[p[0] for p in PLANS])
def test_the_versions_of_a_nest(family: Family, what: Any, machine: Machine, expected: dict[str, tuple[str, str]]) -> None:
    found = versions(family, what, machine)
    assert {name: (str(v.plan), "" if v.when is None else flat(v.when)) for name, v in found.items()} == expected


def test_a_device_has_groups_of_as_many_threads_as_it_may() -> None:
    gpu = Machine("gpu", 4, 0, (), True, (32, 256, 49152))
    group = devices.Group(1, ("i",))
    made = [str(v.plan) for family in devices.FAMILIES for v in versions(family, group, gpu).values()]
    assert made == ["(shared-turn (size 32) (columns 8))", "(shared-tiles (rows 64) (columns 64) (depth 16) (height 4) (across 16))",
                    "(group-sum (threads 256) (part 16384))", "(group-rows (outside 1) (threads 256))", "(group-rows (outside 1) (threads 256))",
                    "(elements (free i) (threads 256))", "(elements (free i) (threads 256) (outermost))"]


def test_a_plan_is_a_form() -> None:
    for _, family, what, machine, _ in PLANS:
        for version in versions(family, what, machine).values():
            (form,) = read_forms(str(version.plan))
            assert flat(form) == str(version.plan)


def test_names_of_loops_choose_nothing() -> None:
    def renamed(what: Any) -> Any:
        return replace(what, **{k: tuple([replace(a, name=f"{a.name}x") for a in v]) if isinstance(v, tuple) else f"{v}x" if k.endswith("_along") and v else v
                                for k, v in vars(what).items()})
    for _, family, what, machine, _ in PLANS:
        if isinstance(what, Product):
            assert versions(family, renamed(what), machine) == versions(family, what, machine)


@pytest.mark.parametrize(("parameter", "value", "text"), [("gemm.rows", 4, "(rows 4)"), ("gemm.depth", 64, "(depth 64)"), ("gemm.order", 1, "(order)"), ("gemm.unroll", 2, "(unroll 2)")])
def test_a_parameter_changes_the_plan(parameter: str, value: int, text: str) -> None:
    found = versions(products.PRODUCTS, product(16), V4, ask=lambda p, default: value if p.name == parameter else default)
    assert text in str(found["packed"].plan)


def test_one_thread_shares_nothing() -> None:
    """Threads are asked for by the machine, and by the nest."""
    what = maps.Map(16, N, (M,))
    assert set(versions(maps.MAPS, what, SHARED, threads=False)) == set(versions(maps.MAPS, what, V4)) == {"short_rows", "vectors"}


def test_machines_without_masks_take_whole_tiles() -> None:
    fused = Machine("x86_64", 16, 16, (32768, 524288), True)
    assert {"whole_tiles", "packed"} <= set(versions(products.PRODUCTS, product(4), fused))
    assert "fits" not in versions(products.PRODUCTS, product(4), fused)
    assert "whole_tiles" not in versions(products.PRODUCTS, product(4), SHORT)          # without multiply-adds


def test_every_plan_has_steps_and_every_parameter_a_name() -> None:
    kinds = {c for m in MODULES for c in vars(m).values() if isinstance(c, type) and issubclass(c, Plan)} - {Plan, rows.Ahead}
    assert kinds == {*emit.OF_LOOPS, *emit.OF_PRODUCTS}
    assert all(p.what and (p.default is None or p.default in p.values) and re.fullmatch(r"[a-z]+\.[a-z]+", name) for name, p in PARAMETERS.items())
    assert {transposes.TRANSPOSES, products.PRODUCTS, maps.MAPS} < {*INNERMOST, *PASSES, *ACROSS}
