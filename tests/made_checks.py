"""What a step says that it made, compared with the programs before and after it."""
from __future__ import annotations

from collections.abc import Mapping

from caten.loop.statements import LoopProgram
from caten.schedule import script, step_results
from caten.schedule.analysis.loop_queries import locals_in, loops_in
from caten.schedule.loop_names import declared
from caten.schedule.script import Step
from caten.schedule.step_results import Made


def taken(before: LoopProgram, step: Step) -> LoopProgram:
    """The program after a step, of which what it made is all that is new."""
    after, told = script.take(before, step)
    assert after is script.apply(before, [step])
    assert_told(before, after, told, step)
    return after


def assert_told(before: LoopProgram, after: LoopProgram, told: Made, step: Step) -> None:
    known = {node.name for kernel in before.kernels for node in declared(kernel.body)} | {local.name for local in locals_in(before)}
    assert set(told.loops) == {loop.name for loop in loops_in(after)} - known, f"{step}: {told}"
    assert set(told.arrays) == {local.name for local in locals_in(after)} - known, f"{step}: {told}"
    assert len(set(told.loops)) == len(told.loops), f"{step}: {told}"
    assert in_text_order(told, after), f"{step}: {told}"
    for copies in mappings(told):
        assert set(copies) <= {loop.name for loop in loops_in(before)}, f"{step}: {copies} stand for loops that were not there"


def mappings(told: Made) -> list[Mapping[str, str]]:
    match told:
        case step_results.Split(copies=copies) | step_results.Specialized(copies=copies) | step_results.Unguarded(copies=copies) | step_results.Spread(shared=copies):
            return [copies]
        case step_results.Unrolled(iterations=iterations):
            return list(iterations)
        case step_results.Staged(nests=nests):
            return [nest.loops for nest in nests]
    return []


def in_text_order(told: Made, after: LoopProgram) -> bool:
    """Does each of its mappings name loops from the first to the last in the text?"""
    at = {loop.name: n for n, loop in enumerate(loops_in(after))}
    return all(list(copies.values()) == sorted(copies.values(), key=at.__getitem__) for copies in mappings(told))
