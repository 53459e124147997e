"""Faults planted in the primitives: the nets that every rewriting goes through catch each of them, on the texts of the
goldens and of the refusals."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from schedule_nets import SIZES, assert_same, program
from test_schedule_goldens import FOLDER, cases
from test_schedule_refusals import REFUSALS

from caten.core.expr import Expr, Op, Var, index
from caten.core.node import substitute
from caten.errors import CatenError
from caten.loop.affine import canonical
from caten.loop.effects import reads, writes
from caten.loop.statements import Aref, For, Local, LoopProgram
from caten.schedule import script
from caten.schedule.analysis import accumulator_init, producers
from caten.schedule.analysis.producers import Produced
from caten.schedule.primitives import compute_at, fuse, merge, specialize, stage, unchecked, unfuse, widen


def unasked(program: LoopProgram, array: str, refuse: Callable[..., CatenError]) -> Produced:
    """The array, its producers and its readers, whatever stands between them."""
    known = {s.name: (s, stmts) for stmts in producers.lists(program) for s in stmts if isinstance(s, Local)}
    if array not in known:
        raise refuse("there is none")
    local, around = known[array]
    made = tuple([s for s in around if array in writes(s)])
    readers = tuple([s for s in around if array in reads(s) and s not in made])
    return Produced(local, around, made, readers, ())


def unproven(program: LoopProgram, found: For, ref: Aref, axes: Any, fn: str, shape: Any,
             right: Callable[..., Any] = stage.beginning) -> tuple[LoopProgram, Expr]:
    """The first sum of each element, whichever elements there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulator_init, "obstacle_to_cover", lambda *_: None)
        made: tuple[LoopProgram, Expr] = right(program, found, ref, axes, fn, shape)
    return made


PLANTED: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "fuse: a remainder that is forgotten": (
        "fuse", "fuse.canonical", lambda e,
                                            right=fuse.canonical: substitute(right(e),
                                                                             {Op("mod", (Var("ij", "i64"), index(6))): index(0)})),
    "merge: the second keeps its own variable": (
        "merge", "merge.with_value", lambda stmts, loop, value,
                                                 right=merge.with_value: right(stmts, loop, value + loop.lo)),
    "merge: nothing stands against it": ("merge", "merge.obstacle_to_merge", lambda program, first, second: None),
    "fission: nothing stands against it": ("fission", "fission.obstacle_to_fission", lambda program, loop, at: None),
    "jam: nothing stands against it": ("jam", "jam.obstacle_to_any_order", lambda loop, context: (None, False)),
    "jam: each value is the same in all iterations": ("jam", "jam._Jamming.is_same", lambda self, e: True),
    "pad: no conditions": ("pad", "pad.guarded", lambda stmts, conds: stmts),
    "flatten: rows that overlap": ("flatten", "flatten._joined", lambda row, cell,
                                   length: canonical(row * (length - 1) + cell)),
    "unfuse: multiples of the extent are taken for it": (
        "unfuse", "unfuse._Parts._divided", lambda self, out, value, by,
                                                   right=unfuse._Parts._divided: right(self, out, value, self.length)),
    "unflatten: an index is not asked to be below the extent": (
        "unflatten", "unflatten.is_inside", lambda context, position, extent: True),
    "split: iterations that read what they wrote are repeated": ("split", "split._check_overlap", lambda *given: None),
    "unchecked: an index that the loop changes": ("unchecked", "unchecked._is_changed", lambda value, changed: False),
    "unchecked: the last iteration is not asked": ("unchecked", "unchecked.canonical", lambda e, right=unchecked.canonical: right(
        substitute(e, {Var("M", "i64"): index(1), Var("K", "i64"): index(1)}))),
    "unguard: any condition is dropped": ("unguard", "unguard._is_zero_without", lambda value, cond, context: True),
    "unguard: any value is zero": ("unguard", "unguard._is_zero", lambda value: True),
    "widen: rows become shorter": ("widen", "widen.canonical", lambda extent,
                                   right=widen.canonical: right(extent - 20)),
    "inline: what is read in between is not asked": ("inline", "inline.produced", unasked),
    "compute_at: one element less": ("compute_at", "compute_at.largest", lambda e,
                                     right=compute_at.largest: (right(e) or 2) - 1),
    "compute_at: what is read in between is not asked": ("compute_at", "compute_at.produced", unasked),
    "stage: a tile is taken to be set": ("stage", "stage._Staged._is_set", lambda tile, stmts, context: True),
    "stage: elements without a first sum are not seen": ("stage", "stage.beginning", unproven),
    "stage: elements that a condition leaves out are not seen": ("stage", "stage._Staged._leaves_out", lambda tile, cond,
                                                                 begun: False),
    "stage: cells that meet are not seen": ("stage", "staging.obstacle_to_one_to_one", lambda ref, axes, extents,
                                            context: None),
    "specialize: a size is taken for another": (
        "specialize", "specialize.equalities", lambda cond,
                                                find=specialize.equalities: [(v, index(c.value + 1))
                                                                             for v, c in find(cond)]),
}


@pytest.mark.slice(4)
@pytest.mark.parametrize("title", PLANTED)
@pytest.mark.slow
def test_a_planted_fault_is_caught(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, target, fault = PLANTED[title]
    monkeypatch.setattr(f"caten.schedule.{target if target.startswith('staging') else 'primitives.' + target}", fault)
    good = [(steps, text) for steps, text, _ in cases(FOLDER / f"{name}.txt").values()]
    bad = [(steps, text) for _, steps, text, _ in REFUSALS if f"({name} " in steps]
    assert any(is_caught(steps, text) for steps, text in good + bad)


def is_caught(steps: str, text: str) -> bool:
    """Does the verifier or the interpreter tell that something is wrong?"""
    before = program(text)
    try:
        assert_same(before, script.apply(before, script.parse_schedule(f"(schedule {steps})").steps, verify=True),
                    SIZES)
    except AssertionError:
        return True
    except CatenError as problem:
        return all(d.code.startswith("E48") for d in problem.diagnostics)
    return False
