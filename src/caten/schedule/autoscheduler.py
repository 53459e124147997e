"""What to do with a program when nobody said: each nest is recognised by its structure, gets a plan, and the plan becomes steps.

`plans` says which plans there are and makes them, `emit` turns one into steps of the schedule language. Nothing here rewrites by itself; where a step
is refused, the next simpler plan has its turn.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from ..core.expr import Const
from ..core.program import Machine, Schedule, Size, Target
from ..loop import work
from ..loop.effects import writes
from ..loop.level import where_shown
from ..loop.simplify import simplify_program
from ..loop.statements import Aref, For, LoopProgram, Setf
from .analysis.classify import Chain, chain_of, contraction, outermost, reduction
from .apart import apart
from .asked import apply_asked
from .draft import Copies, Draft, reason_of, words
from .emit.emit import emit
from .emit.rows import ask
from .flattening import flattened
from .log import Chosen, Planned, Tried
from .made import Fissioned
from .planning import Planning
from .plans import rows
from .plans.parameters import DEFAULTS, Choices
from .plans.plan import Family, Given, NotApplicable, Planner, Version
from .plans.versions import ACROSS, COPIES, INNERMOST, ON_DEVICES, PASSES
from .script import is_applied, recorded


def schedule(program: LoopProgram, planning: Planning | None = None) -> LoopProgram:
    """The program with a schedule applied and recorded: the one it carries, else the planners' (from -O2 on); only simplified at -O1, and as
    it is at -O0. A program whose Schedule fact says that it was applied stays as it is. `planning` says whether every step is verified, and hears
    what was met."""
    planning = planning or Planning()
    asked = program.first(Schedule)
    if asked is not None and is_applied(asked):
        return program
    if asked is not None:
        return apply_asked(program, asked.steps, planning.verify)
    if program.opt == 0:
        return program
    simple = simplified(program, planning)
    return recommended(simple, planning) if program.opt >= 2 else simple


def simplified(program: LoopProgram, planning: Planning | None = None) -> LoopProgram:
    """The program with simpler expressions, but at -O0; where every step is verified, those after which it is shown to be right."""
    if program.opt == 0:
        return program
    simple = simplify_program(program)
    return where_shown(program, simple) if planning and planning.verify else simple  # type: ignore[return-value]   # of the same class


def as_written(program: LoopProgram) -> LoopProgram:
    """The program as it is, where nobody asked for another schedule; what was asked for is applied."""
    asked = program.first(Schedule)
    return schedule(program) if asked is not None else recorded(program, ())


def recommended(program: LoopProgram, planning: Planning | None = None) -> LoopProgram:
    """The planners' schedule, applied."""
    return recorded(drafted(program, planning=planning).program, ())


def drafted(program: LoopProgram, choices: Choices = DEFAULTS, likely: Mapping[str, int] | None = None, planning: Planning | None = None) -> Draft:
    """The planners' schedule, with these values of parameters; `likely`: sizes for which it may have copies. Nests beyond the budget stay as they
    are written."""
    draft = Draft(program, choices, likely, planning)
    target = program.first(Target)
    if target is None:
        return draft
    if target.machine.groups:
        _planned(draft, program.name, partial(_on_device, machine=target.machine))
        return draft
    flattened(draft)
    program = draft.program
    nests = [loop for kernel in program.kernels for loop in outermost(kernel.body)]
    blank = [loop for loop in nests if _is_begun_by_others(program, loop, nests)]
    draft.begun = frozenset([loop.name for loop in blank])
    for loop in [loop for loop in nests if loop not in blank]:
        _planned(draft, loop.name, partial(_nest_and_copy, name=loop.name, machine=target.machine))
    draft.begun = ()
    for name in [loop.name for kernel in draft.program.kernels for loop in kernel.body if loop in blank and isinstance(loop, For)]:
        _planned(draft, name, partial(_nest, name=name, machine=target.machine, threads=True))
    return draft


def _planned(draft: Draft, name: str, plan: Callable[[Draft], None]) -> None:
    """Run what plans a whole nest, by itself. Where the budget ends in it, the nest stays as it is; so it does where planning fails, unless that is
    raised."""
    if work.current().is_spent:
        draft.left(name)
        return
    part, at = apart(draft.program, name, draft.begun), len(draft.log)
    inner = draft if part is None else draft.on(part.program)
    before = inner.program
    draft.log.append(Planned(name))
    try:
        plan(inner)
    except work.OutOfBudget:
        inner.program = before
        draft.forget(at, Planned(name))
        draft.left(name)
    except Exception as problem:
        inner.program = before
        draft.forget(at, Planned(name, f"planning it failed: {reason_of(problem)}"))
        draft.planning.failed(problem)
    if part is not None and inner.program is not before:
        whole = part.back(inner.program)
        if whole is None:
            draft.planning.failed(RuntimeError(f"the nest of '{name}' is no longer where it was"))
        else:
            draft.program = whole


def _on_device(draft: Draft, machine: Machine) -> None:
    """Every statement a kernel, and every kernel a nest of groups and threads."""
    for name in [k.name for k in draft.program.kernels]:
        draft.tries(("separate", name))
    for kernel in draft.program.kernels:
        match kernel.body:
            case (For() as loop,):
                _planned_by(draft, chain_of(draft.loop(loop.name)), ON_DEVICES, Given(machine, False, draft.ask))


def _is_begun_by_others(program: LoopProgram, loop: For, nests: list[For]) -> bool:
    """Does a nest do nothing but setting what is added to later?"""
    match chain_of(loop).body:
        case (Setf(ref=Aref(buffer=name), value=Const()),):
            later = [chain_of(nest) for nest in nests[nests.index(loop) + 1:] if name in writes(nest)]
            sums = [contraction(program, chain) or reduction(chain) for chain in later]
            return any(total is not None and total.out.buffer == name for total in sums)
    return False


def _nest_and_copy(draft: Draft, name: str, machine: Machine) -> None:
    for each in (*_for_likely_sizes(draft, name), name):
        _nest(draft, each, machine, True)


def _for_likely_sizes(draft: Draft, name: str) -> tuple[str, ...]:
    """A copy of a nest in which the likely sizes are numbers, where that is chosen: its outermost loop."""
    equal = [("=", size.name, str(draft.likely[size.name])) for size in draft.program.all(Size) if size.name in draft.likely]
    if not equal or not draft.ask(COPIES, 0):
        return ()
    cond: Any = equal[0]
    for other in equal[1:]:
        cond = ("and", cond, other)
    copies = draft.tried(partial(_for_calls, name=name, cond=cond))
    return () if copies is None else (copies[name],)


def _for_calls(draft: Draft, name: str, cond: object) -> Copies:
    """A copy of a nest for calls of which a condition holds."""
    return draft.special(name, cond, "k")


def _nest(draft: Draft, name: str, machine: Machine, threads: bool) -> None:
    """Plan one nest: as a whole where it is perfect, else thread by its outer loops and nest by nest inside them."""
    chain, given = chain_of(draft.loop(name)), Given(machine, threads, draft.ask)
    if chain.is_leaf:
        at = len(draft.log)
        if not _planned_by(draft, chain, INNERMOST, given):
            draft.scalar(chain, at)
            if threads:
                draft.thread_two(*chain.names)
        return
    if (product := draft.tried(partial(_begun_apart, chain=chain))) is not None:
        for each in (name, product):
            _nest(draft, each, machine, threads)
        return
    if not _planned_by(draft, chain, PASSES, given) and _planned_by(draft, chain, ACROSS, given):
        return
    inner = list(outermost(chain.body))
    threaded = threads and draft.thread_two(*chain.names)
    asking = rows.ahead(draft.program, chain, given)
    for loop in sorted([loop.name for loop in inner], key=lambda name: asking is None or name != asking.loop):
        _nest(draft, loop, machine, threads and not threaded)
        if asking is not None and loop == asking.loop:
            ask(draft, chain, asking)


def _planned_by(draft: Draft, chain: Chain, families: Sequence[Family], given: Given) -> bool:
    """Does one of the families have a plan for a nest? The first that has is taken."""
    return any(draft.attempts(partial(_versions, chain=chain, family=family, given=given), f"plans of {family.name}") for family in families)


def _versions(draft: Draft, chain: Chain, family: Family, given: Given) -> None:
    """The versions of a nest that a family has: copies for some calls, and a plan for all that are left."""
    seen = family.seen(draft.program, chain, given)
    for planner in family.planners:
        made = draft.tried(partial(_version, chain=chain, seen=seen, planner=planner, given=given), f"the plan '{words(planner)}'")
        if made is not None and made.when is None:
            return
    if family.for_all:
        raise NotApplicable(next((e.why_not for e in reversed(draft.log) if isinstance(e, Tried) and e.depth == draft.depth), "it has no plan"))


def _version(draft: Draft, chain: Chain, seen: Any, planner: Planner, given: Given) -> Version:
    """One version of a nest."""
    version = planner(seen, given)
    draft.log.append(Chosen(str(version.plan), draft.depth))
    if version.when is None:
        with nullcontext() if given.machine.groups else draft.focused(chain.names[0]):         # a plan may make several kernels
            emit(draft, chain, version.plan, given)
        return version
    copies = draft.special_nest(chain.names, version.when, *([version.ending] if version.ending else []))
    with draft.focused(copies[chain.names[0]]):
        emit(draft, _copied(draft, chain, copies), version.plan, given)
    return version


def _copied(draft: Draft, chain: Chain, copies: Copies) -> Chain:
    """The copy of a chain: as many loops, whatever has become of what is inside."""
    loops = tuple([draft.loop(copies[name]) for name in chain.names])
    return Chain(loops, loops[-1].body)


def _begun_apart(draft: Draft, chain: Chain) -> str:
    """A product that sets each of its elements before it adds to it, as two nests: the outermost loop of the second."""
    match chain.body:
        case (Setf(ref=Aref() as ref, value=Const()), For() as last):
            rest = chain_of(last)
            whole = contraction(draft.program, Chain((*chain.loops, *rest.loops), rest.body))
            if whole is not None and whole.out == ref:
                for name in reversed(chain.names):
                    made = draft.take("fission", name, 1)
                assert isinstance(made, Fissioned)
                return made.second
    raise NotApplicable("its body is no product after a beginning")
