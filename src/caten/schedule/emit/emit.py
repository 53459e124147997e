"""The one place where a plan becomes steps: what each kind of plan is made of."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..analysis.classify import Chain, Contraction, contraction
from ..draft import Draft
from ..plans.devices import Elements, GroupRows, GroupSum, SharedTiles, SharedTurn
from ..plans.maps import AsWritten, Sweep
from ..plans.plan import Given, NotApplicable, Plan
from ..plans.products import Packed, Tiles, Windows
from ..plans.rows import LanesAcross
from ..plans.sums import ColumnSum, Held, Lanes, RowByRow, SumAcross, SumAlong, Terms
from ..plans.transposes import Turned
from . import devices, packed, rows, sweeps, tiles, turns, windows

OF_PRODUCTS: dict[type[Plan], Callable[[Draft, Chain, Contraction, Any, Given], None]] = {
    SharedTiles: devices.tiles, Packed: packed.packed, Windows: windows.windows, Tiles: tiles.tiles,
}
OF_LOOPS: dict[type[Plan], Callable[[Draft, Chain, Any, Given], None]] = {
    Sweep: sweeps.swept, AsWritten: sweeps.as_written, SumAlong: sweeps.summed_along, SumAcross: sweeps.summed_across, ColumnSum: sweeps.column,
    RowByRow: sweeps.row_by_row, Held: sweeps.held, Lanes: sweeps.lanes, Terms: sweeps.terms, Turned: turns.turned, LanesAcross: rows.lanes_across,
    Elements: devices.elements, GroupRows: devices.rows, GroupSum: devices.long_sum, SharedTurn: devices.turned,
}


def emit(draft: Draft, chain: Chain, plan: Plan, given: Given) -> None:
    """Take the steps of a plan for a nest. Raises NotApplicable, or what a refused step raises."""
    if type(plan) in OF_LOOPS:
        OF_LOOPS[type(plan)](draft, chain, plan, given)
        return
    c = contraction(draft.program, chain)
    if c is None:                             # what a copy knows of its sizes may leave none
        raise NotApplicable(f"'{chain.names[0]}' is no product any more")
    OF_PRODUCTS[type(plan)](draft, chain, c, plan, given)
