"""Plans as data: which versions planners make of what they are shown, for which calls, without a program being
changed."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from caten.core.program import Machine
from caten.core.text import flat, read_forms
from caten.schedule.emit import emit
from caten.schedule.plans import contractions, gpu, maps, reductions, row_passes, transposes
from caten.schedule.plans.convolutions import PackedConvolution, TapByTap, TapsAtOnce
from caten.schedule.plans.packed_products import PackedGemm
from caten.schedule.plans.parameters import Parameter
from caten.schedule.plans.plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version
from caten.schedule.plans.product import Product
from caten.schedule.plans.reductions import Sum
from caten.schedule.plans.versions import MODULES, OUTER_LOOPS, PARAMETERS, PERFECT_NESTS, ROW_PASSES

V3 = Machine("x86_64_v3", 32, 16, (32768, 524288), True)
V4 = Machine("x86_64_v4", 64, 32, (32768, 1048576), True)
SHARED = Machine("x86_64_v4", 64, 32, (32768, 1048576), True, (), True)
SHORT = Machine("x86_64", 16, 16, (32768, 524288), False)
FAR = Machine("znver4", 64, 32, (32768, 1048576), True, (), False, True)
M, N, K, B = (Axis(name.lower(), name, name) for name in "MNKB")


def axis(name: str, count: int) -> Axis:
    return Axis(name, str(count), count=count)


def versions(kind: NestKind, what: Any, machine: Machine, threads: bool = True,
             ask: Callable[[Parameter, int], int] = lambda p, d: d) -> dict[str, Version]:
    """The versions that planners of a kind of nest have, by the planners' names, down to the first that is for all
    calls."""
    found: dict[str, Version] = {}
    for planner in kind.planners:
        try:
            found[planner.__name__] = planner(what, PlanContext(machine, threads, ask))
        except NotApplicable:
            continue
        if found[planner.__name__].when is None:
            break
    return found


def product(lanes: int, left: str = "k", right: str = "n", **more: Any) -> Product:
    return Product("f32", lanes, (), (M,), (N,), (K,), left, right, **more)


def total(lanes: int, kept: tuple[Axis, ...], summed: tuple[Axis, ...], along: bool, row: Axis | None = None,
          **more: Any) -> Sum:
    return Sum("f32", lanes, kept, summed, along, row, **more)


# What is planned, the machine, and of each version the planner, the text of the plan and the condition.
PLANS: tuple[tuple[str, NestKind, Any, Machine, dict[str, tuple[str, str]]], ...] = (
    ("a product of rows and columns", contractions.PRODUCTS, product(16), V4, {
        "short_dots": ("(single-column (reduction (row-per-lane (lanes 16))))", "(and (< 0 K) (and (= N 1) (<= K 15)))"),
        "matrix_vector": ("(single-column (reduction (row-reduction (lanes 16) (vectors 4) (tree) (rows 8))))", "(and (= N 1) (and (<= 16 K) (<= 8 M)))"),
        "few_columns": ("(unpacked-gemm (heights 6) (widths 4 2) (lanes 16) (lanes-along sum) (row-widths 4 2) (transpose-right))",
                        "(and (< 0 K) (and (< 0 M) (or (or (<= N 1) (and (<= N 3) (<= 16 K))) (and (<= 24 M) (or (and (<= N 10) (<= 48 K)) (and (and (<= 17 N) (<= N 24)) (<= 192 K)))))))"),
        "streamed_right": ("(streamed-gemm (rows 4) (columns 32) (lanes 16) (depth 8) (block 32))",
                           "(and (<= 128 K) (and (or (< 131072 (* K N)) (and (<= M 7) (and (<= 32 N) (< 16384 (* K N))))) (and (<= 2 M) (<= M 128))))"),
        "three_vectors": ("(unpacked-gemm (heights 8 3) (lanes 16) (lanes-along columns) (masked 16) (masked-vectors 3))",
                          "(and (< 0 K) (and (< 0 M) (and (<= 33 N) (and (<= N 48) (and (<= 32 K) (<= (* K N) 131072))))))"),
        "right_fits_cache": ("(unpacked-gemm (heights 8 3) (widths 32) (lanes 16) (lanes-along columns) (row-widths 64) (masked 16))",
                 "(and (< 0 K) (and (< 0 M) (or (or (<= (* K N) 16384) (and (or (<= M 128) (<= N 128)) (<= (* K N) 131072))) (<= N 16))))"),
        "few_rows": ("(column-reduction (lanes 16) (vectors 2) (rows 8) (block 8192))", "(or (< M 2) (< K 2))"),
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum))", "")}),
    ("the same on 16 registers", contractions.PRODUCTS, product(8), V3, {
        "short_dots": ("(single-column (reduction (row-per-lane (lanes 8))))", "(and (< 0 K) (and (= N 1) (<= K 7)))"),
        "matrix_vector": ("(single-column (reduction (row-reduction (lanes 8) (vectors 4) (tree) (rows 8))))", "(and (= N 1) (and (<= 8 K) (<= 8 M)))"),
        "few_columns": ("(unpacked-gemm (heights 2) (widths 4 2) (lanes 8) (lanes-along sum) (row-widths 4 2) (transpose-right))",
                        "(and (< 0 K) (and (< 0 M) (or (or (<= N 1) (and (<= N 3) (<= 8 K))) (and (<= 24 M) (or (and (<= N 5) (<= 48 K)) (and (and (<= 9 N) (<= N 12)) (<= 192 K)))))))"),
        "streamed_right": ("(streamed-gemm (rows 4) (columns 16) (lanes 8) (depth 8) (block 64))",
                           "(and (<= 128 K) (and (or (< 65536 (* K N)) (and (<= M 5) (and (<= 32 N) (< 16384 (* K N))))) (and (<= 2 M) (<= M 64))))"),
        "right_fits_cache": ("(unpacked-gemm (heights 6 3) (widths 16) (lanes 8) (lanes-along columns) (row-widths 32) (masked 8))",
                 "(and (< 0 K) (and (< 0 M) (or (or (<= (* K N) 16384) (and (or (<= M 128) (<= N 128)) (<= (* K N) 65536))) (<= N 8))))"),
        "few_rows": ("(column-reduction (lanes 8) (vectors 2) (rows 8) (block 8192))", "(or (< M 2) (< K 2))"),
        "packed": ("(packed-gemm (rows 6) (columns 16) (lanes 8) (depth 256) (panel-rows 252) (panel-columns 512) (prefetch 4) (unroll 1) (pack-along-sum))", "")}),
    ("a product whose right operand lies along the sum", contractions.PRODUCTS, product(16, right="k"), V4, {
        "short_dots": ("(single-column (reduction (row-per-lane (lanes 16))))", "(and (< 0 K) (and (= N 1) (<= K 15)))"),
        "matrix_vector": ("(single-column (reduction (row-reduction (lanes 16) (vectors 4) (tree) (rows 8))))", "(and (= N 1) (and (<= 16 K) (<= 8 M)))"),
        "few_columns": ("(unpacked-gemm (heights 6 2) (widths 4 2) (lanes 16) (lanes-along sum) (row-widths 8 2))",
                        "(and (< 0 K) (and (< 0 M) (or (or (<= N 1) (and (<= N 3) (<= 16 K))) (or (and (<= M 16) (<= 48 K)) (or (and (<= N 12) (<= 48 K)) (and (and (<= 17 N) (<= N 24)) (<= 192 K)))))))"),
        "three_vectors": ("(unpacked-gemm (heights 8 3) (lanes 16) (lanes-along columns) (masked 16) (transpose-right) (masked-vectors 3))",
                          "(and (< 0 K) (and (< 0 M) (and (<= 33 N) (and (<= N 48) (and (<= 32 K) (<= (* K N) 131072))))))"),
        "right_fits_cache": ("(unpacked-gemm (heights 8 3) (widths 32) (lanes 16) (lanes-along columns) (row-widths 64) (masked 16) (transpose-right))",
                 "(and (< 0 K) (and (< 0 M) (or (<= (* K N) 16384) (and (<= N 128) (<= (* K N) 131072)))))"),
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum) (transpose-right))", "")}),
    ("a product of a left operand that lies along the rows", contractions.PRODUCTS, product(16, left="m"), V4, {
        "few_columns_transposed": ("(unpacked-gemm (heights 8 3) (widths 32) (lanes 16) (lanes-along columns) (row-widths 64) (masked 16) (transposed))", "(and (< 0 K) (and (< 0 N) (<= N 8)))"),
        "streamed_right": ("(streamed-gemm (rows 4) (columns 32) (lanes 16) (depth 8) (block 32))",
                           "(and (<= 128 K) (and (or (< 131072 (* K N)) (and (<= M 7) (and (<= 32 N) (< 16384 (* K N))))) (and (<= 2 M) (<= M 128))))"),
        "three_vectors": ("(unpacked-gemm (heights 8 3) (lanes 16) (lanes-along columns) (masked 16) (masked-vectors 3))",
                          "(and (< 0 K) (and (< 0 M) (and (<= 33 N) (and (<= N 48) (and (<= 32 K) (<= (* K N) 131072))))))"),
        "right_fits_cache": ("(unpacked-gemm (heights 8 3) (widths 32) (lanes 16) (lanes-along columns) (row-widths 64) (masked 16))",
                 "(and (< 0 K) (and (< 0 M) (or (or (<= (* K N) 16384) (and (or (<= M 128) (<= N 128)) (<= (* K N) 131072))) (<= N 16))))"),
        "few_rows": ("(column-reduction (lanes 16) (vectors 2) (rows 8) (block 8192))", "(or (< M 2) (< K 2))"),
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1))", "")}),
    ("a matrix of known size times many vectors", contractions.PRODUCTS,
     Product("f32", 16, (), (M,), (axis("n", 3),), (axis("k", 4),), "k", "n"), V4, {"tiny_matrix": ("(scalar-accumulator)", "")}),
    ("many products of matrices whose rows are shorter vectors", contractions.PRODUCTS,
     Product("f32", 16, (B,), (axis("m", 4),), (axis("n", 4),), (axis("k", 4),), "k", "n"), V4, {"tiny_matrix": ("(scalar-accumulator)", "")}),
    ("a product of known size", contractions.PRODUCTS,
     Product("f32", 16, (), (axis("m", 64),), (axis("n", 64),), (axis("k", 64),), "k", "n"), V4, {
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum))", "")}),
    ("a product of weights that lie along the sum", contractions.PRODUCTS,
     Product("f32", 16, (), (M,), (axis("n", 768),), (axis("k", 3072),), "k", "k"), V4, {
        "several_rows": ("(unpacked-gemm (heights 6 3) (widths 4 2) (lanes 16) (lanes-along sum) (row-widths 4 2) (columns-outer))",
                                 "(and (<= 2 M) (<= M 16))"),
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum) (transpose-right))", "")}),
    ("a product of weights that lie along the columns", contractions.PRODUCTS,
     Product("f32", 16, (), (M,), (axis("n", 768),), (axis("k", 3072),), "k", "n"), V4, {
        "streamed_right": ("(streamed-gemm (rows 4) (columns 32) (lanes 16) (depth 8) (block 32))",
                           "(and (<= 2 M) (<= M 128))"),
        "few_rows": ("(column-reduction (lanes 16) (vectors 2) (rows 8) (block 8192))", "(< M 2)"),
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum))", "")}),
    ("a product of five rows and such weights, on threads", contractions.PRODUCTS,
     Product("f32", 16, (), (axis("m", 5),), (axis("n", 768),), (axis("k", 768),), "k", "n"), SHARED, {
        "streamed_right": ("(streamed-gemm (rows 4) (columns 32) (lanes 16) (depth 8) (block 4))", "")}),
    ("a product of some rows and few columns, on threads", contractions.PRODUCTS,
     Product("f32", 16, (), (M,), (axis("n", 300),), (axis("k", 768),), "k", "n"), SHARED, {
        "streamed_in_small_blocks": ("(streamed-gemm (rows 4) (columns 32) (lanes 16) (depth 8) (block 2))",
                                     "(and (<= 2 M) (<= M 64))"),
        "few_rows": ("(column-reduction (lanes 16) (vectors 2) (rows 8) (block 512))", "(< M 2)"),
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum))", "")}),
    ("a product of five rows and such weights", contractions.PRODUCTS,
     Product("f32", 8, (), (axis("m", 5),), (axis("n", 768),), (axis("k", 768),), "k", "k"), V3, {
        "several_rows": ("(unpacked-gemm (heights 2) (widths 4 2) (lanes 8) (lanes-along sum) (row-widths 4 2) (columns-outer))", "")}),
    ("a batch of products, on threads", contractions.PRODUCTS, Product("f32", 16, (B,), (M,), (N,), (K,), "k", "n"),
     SHARED, {
        "whole_tiles": ("(unpacked-gemm (heights 8) (widths 32) (lanes 16) (lanes-along columns))",
                        "(and (<= (* K N) 16384) (and (= (mod N 32) 0) (= (mod M 8) 0)))"),
        "batch_fits_cache": ("(unpacked-gemm (heights 8) (widths 32) (lanes 16) (lanes-along columns) (row-widths 64) (masked 16))",
                            "(and (< 0 K) (and (< 0 M) (and (<= (* K N) 16384) (or (<= 4 B) (<= M 32)))))"),
        "small_batch": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum) (parallel-product))", "(< B 4)"),
        "packed": ("(packed-gemm (rows 8) (columns 32) (lanes 16) (depth 256) (panel-rows 512) (panel-columns 1024) (prefetch 4) (unroll 1) (pack-along-sum))", "")}),
    ("a convolution with windows of 3 × 3", contractions.PRODUCTS,
     Product("f32", 16, (B,), (M,), (Axis("y", "H", "H"), Axis("x", "W", "W")), (K, axis("r", 3), axis("s", 3)), None,
             "x", (Axis("y", "H", "H"), Axis("x", "W", "W")), True), V4, {
         "wide_tiles": ("(packed-convolution (rows 8) (lines 2) (width 16) (lanes 16) (depth 32) (panel-rows 512) (prefetch 4) (constant-window) (unroll-inner))",
                        "(< (* (floordiv (+ H 1) 2) (floordiv (+ W 15) 16)) (* (floordiv (+ H 3) 4) (floordiv (+ W 7) 8)))"),
         "convolution": ("(packed-convolution (rows 8) (lines 4) (width 8) (lanes 16) (depth 32) (panel-rows 512) (prefetch 4) (constant-window) (unroll-inner))", "")}),
    ("a convolution with windows of 3 × 3, of shorter vectors", contractions.PRODUCTS,
     Product("f32", 8, (B,), (M,), (Axis("y", "H", "H"), Axis("x", "W", "W")), (K, axis("r", 3), axis("s", 3)), None,
             "x", (Axis("y", "H", "H"), Axis("x", "W", "W")), True), V3, {
         "narrow_tiles": ("(packed-convolution (rows 6) (lines 4) (width 4) (lanes 8) (depth 32) (panel-rows 252) (prefetch 4) (constant-window) (unroll-inner))",
                          "(and (<= 65 M) (<= (* (* (floordiv (+ H 3) 4) (floordiv (+ W 3) 4)) 10) (* (* (floordiv (+ H 1) 2) (floordiv (+ W 7) 8)) 9)))"),
         "wide_tiles": ("(packed-convolution (rows 6) (lines 1) (width 16) (lanes 8) (depth 32) (panel-rows 252) (prefetch 4) (constant-window) (unroll-inner))",
                        "(< (* (floordiv (+ H 0) 1) (floordiv (+ W 15) 16)) (* (floordiv (+ H 1) 2) (floordiv (+ W 7) 8)))"),
         "convolution": ("(packed-convolution (rows 6) (lines 2) (width 8) (lanes 8) (depth 32) (panel-rows 252) (prefetch 4) (constant-window) (unroll-inner))", "")}),
    ("a convolution of lines", contractions.PRODUCTS,
     Product("f32", 16, (B,), (M,), (Axis("x", "W", "W"),), (K, axis("s", 3)), None, "x", (Axis("x", "W", "W"),)), V4, {
         "convolution": ("(packed-convolution (rows 8) (lines 1) (width 32) (lanes 16) (depth 128) (panel-rows 512) (prefetch 4) (constant-window) (unroll-inner))", "")}),
    ("a convolution with windows of 3 × 3, on threads", contractions.PRODUCTS,
     Product("f32", 16, (B,), (M,), (Axis("y", "H", "H"), Axis("x", "W", "W")), (K, axis("r", 3), axis("s", 3)), "s",
             "x", (Axis("y", "H", "H"), Axis("x", "W", "W")), True), SHARED, {
         "few_pixels_in_wide_tiles": ("(packed-convolution (rows 8) (lines 2) (width 16) (lanes 16) (depth 64) (panel-rows 64) (prefetch 4) (constant-window) (unroll-inner) (transpose-left) (parallel-filters))",
                                      "(and (and (<= 128 M) (<= (* (* B H) W) 1024)) (< (* (floordiv (+ H 1) 2) (floordiv (+ W 15) 16)) (* (floordiv (+ H 3) 4) (floordiv (+ W 7) 8))))"),
         "few_pixels": ("(packed-convolution (rows 8) (lines 4) (width 8) (lanes 16) (depth 64) (panel-rows 64) (prefetch 4) (constant-window) (unroll-inner) (transpose-left) (parallel-filters))",
                        "(and (<= 128 M) (<= (* (* B H) W) 1024))"),
         "wide_tiles": ("(packed-convolution (rows 8) (lines 2) (width 16) (lanes 16) (depth 32) (panel-rows 512) (prefetch 4) (constant-window) (unroll-inner) (transpose-left))",
                        "(< (* (floordiv (+ H 1) 2) (floordiv (+ W 15) 16)) (* (floordiv (+ H 3) 4) (floordiv (+ W 7) 8)))"),
         "convolution": ("(packed-convolution (rows 8) (lines 4) (width 8) (lanes 16) (depth 32) (panel-rows 512) (prefetch 4) (constant-window) (unroll-inner) (transpose-left))", "")}),
    ("a sum of rows", reductions.ROW_SUMS, total(16, (M,), (N,), True, M), V4, {
        "short_rows": ("(row-per-lane (lanes 16))", "(< N 16)"),
        "medium_rows": ("(row-reduction (lanes 16) (vectors 1) (masked))", "(and (<= N 128) (< 0 (mod N 64)))"),
        "rows": ("(row-reduction (lanes 16) (vectors 4) (tree))", "")}),
    ("a matrix-vector product", reductions.ROW_SUMS, total(16, (M,), (N,), True, M, shared=True), V4, {
        "short_rows": ("(row-per-lane (lanes 16))", "(< N 16)"),
        "matrix_vector": ("(row-reduction (lanes 16) (vectors 4) (tree) (rows 8))", "(and (<= 16 N) (<= 8 M))"),
        "rows": ("(row-reduction (lanes 16) (vectors 4) (tree))", "")}),
    ("a matrix-vector product of known size", reductions.ROW_SUMS,
     total(16, (axis("m", 100),), (axis("n", 40),), True, axis("m", 100), shared=True), V4, {
        "matrix_vector": ("(row-reduction (lanes 16) (vectors 4) (tree) (rows 8))", "")}),
    ("a matrix-vector product of few rows", reductions.ROW_SUMS,
     total(16, (axis("m", 7),), (axis("n", 40),), True, axis("m", 7), shared=True), V4, {
        "rows": ("(row-reduction (lanes 16) (vectors 4) (tree))", "")}),
    ("a sum of rows of 33 elements", reductions.ROW_SUMS, total(16, (M,), (axis("n", 33),), True, M), V4, {
        "medium_rows": ("(row-reduction (lanes 16) (vectors 1) (masked))", "")}),
    ("a sum of rows of 64 elements", reductions.ROW_SUMS, total(16, (M,), (axis("n", 64),), True, M), V4, {
        "rows": ("(row-reduction (lanes 16) (vectors 4) (tree))", "")}),
    ("one long sum", reductions.ROW_SUMS, total(8, (), (N,), True), V3,
     {"rows": ("(row-reduction (lanes 8) (vectors 4) (tree) (block 65536))", "")}),
    ("one long sum, where streams pay", reductions.ROW_SUMS, total(16, (), (N,), True), FAR, {
        "rows": ("(row-reduction (lanes 16) (vectors 4) (tree) (block 65536) (stream-distance 262144))", "")}),
    ("a sum of columns, on threads", reductions.COLUMN_SUMS, total(16, (N,), (M,), False, N), SHARED, {
        "single_column": ("(single-column (reduction (row-reduction (lanes 16) (vectors 4) (tree) (block 65536))))",
                          "(= N 1)"),
        "narrow_columns": ("(vector-accumulator (lanes 16))", "(<= N 32)"),
        "strips": ("(vector-accumulator (lanes 16) (vectors 4))", "(<= (* N M) 196608)"),
        "single_block": ("(column-reduction (lanes 16) (vectors 2) (rows 8) (block 512))", "(<= N 2048)"),
        "columns": ("(column-reduction (lanes 16) (vectors 2) (rows 8) (block 2048))", "")}),
    ("a sum of three columns", reductions.COLUMN_SUMS, total(16, (axis("n", 3),), (M,), False, axis("n", 3)), V4,
     {"few_columns": ("(row-by-row)", "")}),
    ("sums of rows of three elements", reductions.SHORT_SUMS, total(16, (M,), (axis("n", 3),), True, M), V4,
     {"tiny_rows": ("(scalar-accumulator)", "")}),
    ("sums of rows of nine elements, where masks take time", reductions.SHORT_SUMS, total(8, (M,), (axis("n", 9),), True, M), V3,
     {"known_rows": ("(scalar-accumulator)", "")}),
    ("sums of rows of eleven elements there", reductions.SHORT_SUMS, total(8, (M,), (axis("n", 11),), True, M), V3, {}),
    ("sums of rows of eight elements there", reductions.SHORT_SUMS, total(4, (M,), (axis("n", 8),), True, M), V3, {}),
    ("sums of rows of nine elements, where masks are free", reductions.SHORT_SUMS, total(8, (M,), (axis("n", 9),), True, M), V4, {}),
    ("sums of rows of 33 integers", reductions.SHORT_SUMS, replace(total(8, (M,), (axis("n", 33),), True, M), dtype="i32"), V3,
     {"known_rows": ("(scalar-accumulator)", "")}),
    ("the same of exponentials", reductions.SHORT_SUMS, total(16, (M,), (axis("n", 3),), True, M, compute_bound=True),
     V4, {"tiny_rows": ("(row-per-lane (lanes 16))", "")}),
    ("a window of nine", reductions.SHORT_SUMS, total(16, (M, N), (axis("r", 3), axis("s", 3)), False, N), V4,
     {"few_terms": ("(vector-accumulator (lanes 16) (unrolled))", "")}),
    ("a map of rows, on threads", maps.MAPS, maps.Map(16, N, (M,)), SHARED, {
        "short_rows": ("(scalar-loops (parallel-rows))", "(< N 16)"),
                                                                             "rows_of_one_block": ("(vector-loop (lanes 16) (vectors 1) (prefetch 1024))", "(<= N 4096)"),
        "vectors": ("(vector-loop (lanes 16) (vectors 1) (block 4096) (prefetch 1024))", "")}),
    ("a map of one row, fetched ahead", maps.MAPS, maps.Map(16, N, ()), FAR,
     {"vectors": ("(vector-loop (lanes 16) (vectors 1))", "")}),
    ("passes over rows", row_passes.PASSES, row_passes.RowPasses(16, (M,), "N", True), V4, {
        "rows_of_one_element": ("(outer-loop-vectors (lanes 16) (outer-loops 1) (single-pass))",
                                "(= N 1)"), "short_rows": ("(outer-loop-vectors (lanes 16) (outer-loops 1))",
                                                           "(< N 32)")}),
    ("passes over contiguous rows", row_passes.PASSES, row_passes.RowPasses(16, (M,), "N", False, contiguous=True), V4, {
        "rows_of_one_element": ("(outer-loop-vectors (lanes 16) (outer-loops 1) (single-pass))", "(= N 1)"),
        "rows_at_once": ("(rows-at-once (lanes 16) (rows 4))", "(and (<= 16 N) (< N 128))"),
        "short_rows": ("(outer-loop-vectors (lanes 16) (outer-loops 1))", "(< N 16)")}),
    ("compute-bound passes on machines whose masked stores take long", row_passes.PASSES,
     row_passes.RowPasses(8, (M,), "N", True, contiguous=True), V3, {
        "rows_of_one_element": ("(outer-loop-vectors (lanes 8) (outer-loops 1) (single-pass))", "(= N 1)"),
        "rows_at_once": ("(rows-at-once (lanes 8) (rows 4))", "(and (<= 14 N) (< N 128))"),
        "short_rows": ("(outer-loop-vectors (lanes 8) (outer-loops 1))", "(< N 16)")}),
    ("passes over rows of local arrays", row_passes.PASSES, row_passes.RowPasses(16, (M,), "N", True, contiguous=True, in_cache=True), V4, {
        "rows_of_one_element": ("(outer-loop-vectors (lanes 16) (outer-loops 1) (single-pass))", "(= N 1)"),
        "rows_at_once": ("(rows-at-once (lanes 16) (rows 4))", "(and (<= 14 N) (< N 512))"),
        "short_rows": ("(outer-loop-vectors (lanes 16) (outer-loops 1))", "(< N 32)")}),
    ("passes over rows of a known length", row_passes.KNOWN_PASSES, row_passes.RowPasses(16, (M,), "20", True, contiguous=True),
     V4, {"rows_at_once": ("(rows-at-once (lanes 16) (rows 4))", "")}),
    ("passes over rows of a known length below a vector", row_passes.KNOWN_PASSES,
     row_passes.RowPasses(16, (M,), "10", True, contiguous=True), V4, {"short_rows": ("(outer-loop-vectors (lanes 16) (outer-loops 1))", "")}),
    ("passes over rows that are written out", row_passes.KNOWN_PASSES, row_passes.RowPasses(16, (M,), "8", True, contiguous=True), V4, {}),
    ("passes over long rows of a known length", row_passes.KNOWN_PASSES, row_passes.RowPasses(16, (M,), "200", True, contiguous=True), V4, {}),
    ("functions of short rows, replaced", maps.MAPS, maps.Map(16, N, (M,), compute_bound=True, in_place=True, is_inner=True), V4, {
        "rows_as_lanes": ("(outer-loop-vectors (lanes 16) (outer-loops 1) (masked))", "(<= N 6)"),
        "rows_in_place": ("(rows-in-place (lanes 16) (rows 8))", "(< N 128)"), "vectors": ("(vector-loop (lanes 16) (vectors 1) (prefetch 1024))", "")}),
    ("short rows, replaced", maps.MAPS, maps.Map(16, N, (M,), in_place=True, is_inner=True), V4, {
        "short_rows": ("(scalar-loops (parallel-rows))", "(< N 16)"), "vectors": ("(vector-loop (lanes 16) (vectors 1) (prefetch 1024) (short-tail))", "")}),
    ("the same where masked stores take long", maps.MAPS, maps.Map(8, N, (M,), in_place=True, is_inner=True), V3, {
        "rows_as_lanes": ("(outer-loop-vectors (lanes 8) (outer-loops 1))", "(<= N 3)"),
        "short_rows": ("(scalar-loops (parallel-rows))", "(< N 8)"), "vectors": ("(vector-loop (lanes 8) (vectors 1) (prefetch 1024))", "")}),
)


@pytest.mark.parametrize(("kind", "what", "machine", "expected"), [p[1:] for p in PLANS], ids=[p[0] for p in PLANS])
def test_the_versions_of_a_nest(kind: NestKind, what: Any, machine: Machine,
                                expected: dict[str, tuple[str, str]]) -> None:
    found = versions(kind, what, machine)
    assert {name: (str(v.plan), "" if v.when is None else flat(v.when)) for name, v in found.items()} == expected


def test_a_device_has_groups_of_as_many_threads_as_it_may() -> None:
    device = Machine("gpu", 4, 0, (), True, (32, 256, 49152))
    group = gpu.GridNest(1, ("i",))
    made = [str(v.plan) for family in gpu.KINDS for v in versions(family, group, device).values()]
    assert made == ["(shared-transpose (size 32) (columns 8))",
                    "(shared-gemm (rows 64) (columns 128) (depth 16) (thread-rows 4) (threads-across 16))",
                    "(group-reduction (threads 256) (block 16384))", "(group-per-row (row-loops 1) (threads 256))",
                    "(columns-in-blocks (threads 256) (block 256))", "(group-per-row (row-loops 1) (threads 256))",
                    "(thread-per-element (loops i) (threads 256))",
                    "(thread-per-element (loops i) (threads 256) (outermost))"]


def test_a_plan_is_a_form() -> None:
    for _, family, what, machine, _ in PLANS:
        for version in versions(family, what, machine).values():
            (form,) = read_forms(str(version.plan))
            assert flat(form) == str(version.plan)


def test_names_of_loops_choose_nothing() -> None:
    def renamed(what: Any) -> Any:
        return replace(what, **{k: tuple([replace(a, name=f"{a.name}x") for a in v]) if isinstance(v, tuple)
                                else f"{v}x" if k.endswith("_along") and v else v
                                for k, v in vars(what).items()})
    for _, family, what, machine, _ in PLANS:
        if isinstance(what, Product):
            assert versions(family, renamed(what), machine) == versions(family, what, machine)


@pytest.mark.parametrize(("parameter", "value", "text"),
                         [("gemm.rows", 4, "(rows 4)"), ("gemm.depth", 64, "(depth 64)"),
                          ("gemm.order", 1, "(rows-outer)"), ("gemm.unroll", 2, "(unroll 2)")])
def test_a_parameter_changes_the_plan(parameter: str, value: int, text: str) -> None:
    found = versions(contractions.PRODUCTS, product(16), V4, ask=lambda p,
                     default: value if p.name == parameter else default)
    assert text in str(found["packed"].plan)


def test_one_thread_shares_nothing() -> None:
    """Threads are asked for by the machine, and by the nest."""
    what = maps.Map(16, N, (M,))
    assert set(versions(maps.MAPS, what, SHARED,
                        threads=False)) == set(versions(maps.MAPS, what, V4)) == {"short_rows", "vectors"}


def test_machines_without_masks_take_whole_tiles() -> None:
    fused = Machine("x86_64", 16, 16, (32768, 524288), True)
    assert {"whole_tiles", "packed"} <= set(versions(contractions.PRODUCTS, product(4), fused))
    assert "right_fits_cache" not in versions(contractions.PRODUCTS, product(4), fused)
    assert "whole_tiles" not in versions(contractions.PRODUCTS, product(4), SHORT)          # without multiply-adds


def test_every_plan_has_steps_and_every_parameter_a_name() -> None:
    kinds = {c for m in MODULES for c in vars(m).values() if isinstance(c, type)
             and issubclass(c, Plan)} - {Plan, row_passes.RowPrefetch}
    assert kinds == {*emit.OF_LOOPS, *emit.OF_PRODUCTS}
    assert all(p.what and (p.default is None or p.default in p.values) and re.fullmatch(r"[a-z]+\.[a-z]+", name)
               for name, p in PARAMETERS.items())
    assert {transposes.TRANSPOSES, contractions.PRODUCTS, maps.MAPS} < {*PERFECT_NESTS, *ROW_PASSES, *OUTER_LOOPS}


def test_threads_share_panels_of_a_small_product() -> None:
    found = versions(contractions.PRODUCTS, product(16), SHARED)["small_product"]
    assert "(panel-rows 256) (panel-columns 64)" in str(found.plan)
    assert "(parallel-panels)" in str(found.plan)
    assert flat(found.when) == "(and (<= 128 N) (<= (* (* M N) K) 16777216))"
    assert "small_product" not in versions(contractions.PRODUCTS, product(16), V4)


def tiny(kind: str, rows: int | None, sums: int, columns: int, batch: bool = False) -> bool:
    m = M if rows is None else axis("m", rows)
    lanes = V4.vector_bytes // {"f32": 4, "f64": 8}[kind]
    what = Product(kind, lanes, (B,) if batch else (), (m,), (axis("n", columns),), (axis("k", sums),), "k", "n")
    return "tiny_matrix" in versions(contractions.PRODUCTS, what, V4)


@pytest.mark.parametrize(("kind", "sums", "columns", "is_tiny"), [
    ("f32", 3, 3, True), ("f32", 8, 4, True), ("f32", 9, 4, False), ("f32", 3, 5, False), ("f64", 3, 3, True), ("f64", 3, 4, False)])
def test_rows_of_a_small_matrix_are_shorter_than_a_vector(kind: str, sums: int, columns: int, is_tiny: bool) -> None:
    assert tiny(kind, None, sums, columns) == is_tiny


@pytest.mark.parametrize(("sums", "blocks"), [
    (("k", "l"), {"long_last_sum": (256, 1), "packed": (16, 0)}), (("k", "l", "b"), {"long_last_sum": (256, 2), "packed": (16, 1)}),
    (("k", "3"), {"packed": (128, 0)}), (("3", "k"), {"long_last_sum": (256, 1), "packed": (16, 0)}), (("k", "l", "3"), {"long_last_sum": (128, 1), "packed": (16, 0)}),
    (("2", "3"), {"packed": (128, 0)})])
def test_blocks_of_a_sum_over_several_axes_fit_caches(sums: tuple[str, ...], blocks: dict[str, tuple[int, int]]) -> None:
    """Block and loops around it: of the innermost axis of unknown extent if that is long, else of a few of the lines that it is."""
    axes = tuple([axis(n, int(n)) if n.isdigit() else Axis(n, n.upper(), n.upper()) for n in sums])
    found = versions(contractions.PRODUCTS, Product("f32", 8, (), (M,), (N,), axes, "k", "n"), V3)
    assert {name: (v.plan.depth, v.plan.outside) for name, v in found.items() if isinstance(v.plan, PackedGemm)} == blocks
    assert found["packed"].when is None


@pytest.mark.parametrize(("machine", "taps", "filters", "plan"), [
    (V3, (2,), None, TapByTap(8, 8, 64, None, 1024)), (V3, (3, 3), None, TapByTap(8, 8, 64, 16, 64)), (V3, (3, 2, 2), 9, TapByTap(6, 8, 60, 16, 64)),
    (V4, (3, 3), 24, TapByTap(12, 16, 60, 16, 64)), (V4, (7, 7), 40, TapByTap(14, 16, 56, 16, 64)), (V4, (7, 7), 1, TapByTap(2, 16, 64, 16, 64)), (V3, (), None, None)])
def test_gradients_of_weights_are_tiles_of_filters_and_channels(machine: Machine, taps: tuple[int, ...], filters: int | None, plan: TapByTap | None) -> None:
    """Tiles of an even number of filters cover all of them in as few as possible."""
    moving = tuple([axis(f"p{n}", count) for n, count in enumerate(taps)])
    sums = (B, *[Axis(f"y{n}", f"Y{n}", f"Y{n}") for n in range(len(taps))])
    rows = M if filters is None else axis("m", filters)
    found = versions(contractions.PRODUCTS, Product("f32", machine.vector_bytes // 4, (), (rows,), (N, *moving), sums, None, "y0", moving, len(taps) > 1), machine)
    made = found.get("tap_by_tap")
    assert (made and made.plan) == plan
    if made is not None:
        assert made.when == ("<=", str(machine.vector_bytes // 4 * 3 // 4), "N")


@pytest.mark.parametrize(("pixels", "blocks"), [(3, (1, 64)), (8, (1, 64)), (28, (0, 32))])
def test_an_image_of_known_size_with_windows_of_unknown_size_is_no_gradient_of_weights(pixels: int, blocks: tuple[int, int]) -> None:
    """Loops of the sum around a block, and the block: of channels there."""
    moving = (axis("p", pixels), axis("q", pixels))
    found = versions(contractions.PRODUCTS, Product("f32", 8, (), (M,), (N, *moving), (K, Axis("y", "R", "R"), Axis("x", "S", "S")), None, "x",
                                                    moving, True), V3)
    plan = found["convolution"].plan
    assert isinstance(plan, PackedConvolution)
    assert (plan.outside, plan.depth) == blocks


@pytest.mark.parametrize(("kind", "rows", "sums", "columns", "is_tiny"), [
    ("f32", 4, 4, 4, True), ("f32", 8, 8, 8, True), ("f64", 4, 4, 4, True), ("f32", 3, 3, 3, False), ("f32", 3, 3, 4, False), ("f32", 4, 8, 4, False),
    ("f32", 8, 4, 4, False)])
def test_many_small_matrices_are_squares_of_short_vectors(kind: str, rows: int, sums: int, columns: int, is_tiny: bool) -> None:
    assert tiny(kind, rows, sums, columns, batch=True) == is_tiny


@pytest.mark.parametrize(("machine", "filters", "taps", "rows"), [
    (V3, None, 3, 3), (V3, 64, 3, 3), (V3, 4, 3, 2), (V3, 1, 3, 1), (V3, 16, 5, 2), (V3, 16, 7, 1), (V3, 16, 12, 1), (V3, 16, 13, None), (V4, 16, 3, 8),
    (V4, 10, 3, 5), (V4, 16, 7, 2), (SHORT, 16, 3, 3)])
def test_gradients_of_weights_have_lanes_along_the_lines_of_images(machine: Machine, filters: int | None, taps: int, rows: int | None) -> None:
    """Filters of a register tile: as many as leave registers for what is loaded, in tiles that cover all filters in the least time."""
    moving = (axis("k", 3), axis("l", taps))
    left = M if filters is None else axis("m", filters)
    sums = (B, Axis("y", "Y", "Y"), Axis("x", "X", "X"))
    found = versions(contractions.PRODUCTS, Product("f32", machine.vector_bytes // 4, (), (left,), (N, *moving), sums, "x", "x", moving, True), machine)
    made = found.get("taps_at_once")
    assert (made.plan.rows if made is not None and isinstance(made.plan, TapsAtOnce) else None) == rows
    if made is not None:
        lanes = machine.vector_bytes // 4
        line = f"(<= (* (* (floordiv (+ X {lanes - 1}) {lanes}) {lanes}) 65) (* X 100))"
        few = [f"(< (* {n} 100) (* (* (floordiv (+ {n} {tile - 1}) {tile}) {tile}) 75))" for n, tile in (
            ("M", max(2, machine.registers // 2)), ("N", lanes))][filters is not None:]
        tiles = few[0] if len(few) == 1 else f"(or {few[0]} {few[1]})"
        assert flat(made.when) == (line if filters == 1 else f"(and {line} {tiles})")           # one filter always leaves half of a tile empty
