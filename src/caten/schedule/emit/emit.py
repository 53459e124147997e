"""The table that turns a plan into schedule steps: one function per class of plan."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..analysis.classify import Chain, Contraction, contraction
from ..draft import Draft
from ..plans.contractions import StreamedGemm, UnpackedGemm
from ..plans.convolutions import ConvolutionOverFilters, DirectConvolution, PackedConvolution, TapByTap, TapsAtOnce
from ..plans.gpu import ColumnsInBlocks, GroupPerRow, GroupReduction, SharedGemm, SharedTranspose, ThreadPerElement
from ..plans.maps import OuterLoopVectors, RowsInPlace, ScalarLoops, VectorLoop
from ..plans.packed_products import PackedGemm
from ..plans.plan import NotApplicable, Plan, PlanContext
from ..plans.reductions import (
    ColumnReduction,
    RowByRow,
    RowPerLane,
    RowReduction,
    ScalarAccumulator,
    SingleColumn,
    VectorAccumulator,
)
from ..plans.row_passes import RowsAtOnce
from ..plans.scans import PrefixVectors
from ..plans.scatters import ScatterRows
from ..plans.transposes import BlockedTranspose, ShortAxisInside
from ..plans.windows import PaddedLines, TapsOfLines
from . import (
    convolution_over_filters,
    direct_convolution,
    gpu_steps,
    packed_convolution,
    packed_gemm,
    row_steps,
    scan_steps,
    scatter_steps,
    transpose_steps,
    unpacked_gemm,
    vector_loops,
    weight_gradient,
    window_steps,
)

OF_PRODUCTS: dict[type[Plan], Callable[[Draft, Chain, Contraction, Any, PlanContext], None]] = {
    SharedGemm: gpu_steps.emit_shared_gemm, PackedGemm: packed_gemm.emit_packed_gemm,
    PackedConvolution: packed_convolution.emit_packed_convolution, UnpackedGemm: unpacked_gemm.emit_unpacked_gemm,
    ConvolutionOverFilters: convolution_over_filters.emit_convolution_over_filters,
    DirectConvolution: direct_convolution.emit_direct_convolution,
    StreamedGemm: unpacked_gemm.emit_streamed_gemm, TapsAtOnce: weight_gradient.emit_taps_at_once,
    TapByTap: weight_gradient.emit_tap_by_tap,
}
OF_LOOPS: dict[type[Plan], Callable[[Draft, Chain, Any, PlanContext], None]] = {
    VectorLoop: vector_loops.emit_vector_loop, ScalarLoops: vector_loops.emit_scalar_loops,
    RowReduction: vector_loops.emit_row_reduction, ColumnReduction: vector_loops.emit_column_reduction,
    SingleColumn: vector_loops.emit_single_column, RowByRow: vector_loops.emit_row_by_row,
    ScalarAccumulator: vector_loops.emit_scalar_accumulator, RowPerLane: vector_loops.emit_row_per_lane,
    VectorAccumulator: vector_loops.emit_vector_accumulator, BlockedTranspose: transpose_steps.emit_blocked_transpose,
    ShortAxisInside: transpose_steps.emit_short_axis_inside,
    OuterLoopVectors: row_steps.emit_outer_loop_vectors, RowsAtOnce: row_steps.emit_rows_at_once,
    RowsInPlace: row_steps.emit_rows_in_place,
    ThreadPerElement: gpu_steps.emit_thread_per_element,
    ColumnsInBlocks: gpu_steps.emit_columns_in_blocks,
    GroupPerRow: gpu_steps.emit_group_per_row, GroupReduction: gpu_steps.emit_group_reduction,
    SharedTranspose: gpu_steps.emit_shared_transpose, PrefixVectors: scan_steps.emit_prefix_vectors,
    ScatterRows: scatter_steps.emit_scatter_rows, PaddedLines: window_steps.emit_padded_lines,
    TapsOfLines: window_steps.emit_taps_of_lines,
}


def emit(draft: Draft, chain: Chain, plan: Plan, context: PlanContext) -> None:
    """Apply the steps of a plan to a nest. Raises NotApplicable, or the error of a refused step."""
    if type(plan) in OF_LOOPS:
        OF_LOOPS[type(plan)](draft, chain, plan, context)
        return
    c = contraction(draft.program, chain)
    if c is None:                             # the condition of a copy may have simplified it away
        raise NotApplicable(f"'{chain.names[0]}' is no longer a product")
    OF_PRODUCTS[type(plan)](draft, chain, c, plan, context)
