"""The autoscheduler: recognise each nest by its structure, choose a plan, and turn the plan into schedule steps.

`plans` holds the planners, `emit` turns a plan into steps. Nothing here rewrites the program itself. If a step is
refused, the next plan is tried.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from .. import build_progress
from ..core.expr import Const
from ..core.program import Machine, Schedule, Size, Target
from ..core.unique_names import declared_names
from ..errors import CatenError
from ..loop import operation_count
from ..loop.effects import reads, writes
from ..loop.simplify import simplify_program
from ..loop.statements import Aref, For, LoopProgram, Setf
from ..loop.verifier import where_shown
from . import planning_processes
from .analysis.classify import (
    Chain,
    Contraction,
    Reduction,
    chain_of,
    contraction,
    outermost,
    reduction,
    shares_operand,
)
from .analysis.loop_queries import loops_in
from .checked_loops import free_of_checks
from .draft import Copies, Draft, reason_of, words
from .emit.emit import emit
from .emit.row_steps import emit_row_prefetch
from .flattening import flatten_arrays
from .phase_loops import unroll_phases
from .planning import Planning
from .planning_log import Chosen, Planned, Tried
from .planning_processes import Answer, Task, with_free_names
from .plans import row_passes
from .plans.parameters import DEFAULTS, Choices
from .plans.plan import OTHER_SIZES, NestKind, NotApplicable, PlanContext, Planner, Version
from .plans.versions import COPIES, DEVICE_NESTS, OUTER_LOOPS, PERFECT_NESTS, ROW_PASSES, WHOLE_NESTS
from .reshaped_loops import unflatten_arrays, unfuse_reshaped
from .script import is_applied, recorded
from .single_nest import Apart, apart
from .step_results import OneLoop
from .user_steps import apply_asked


def schedule(program: LoopProgram, planning: Planning | None = None) -> LoopProgram:
    """Apply and record a schedule: the program's own, or that of the planners (-O2 and above). At -O1 the program is
    only simplified; at -O0, or if its schedule is applied already, it stays as it is."""
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
    """Simplify the program, except at -O0. If steps are verified, keep only simplifications after which it is proven
    right."""
    if program.opt == 0:
        return program
    simple = simplify_program(program)
    return where_shown(program, simple) if planning and planning.verify else simple


def as_written(program: LoopProgram) -> LoopProgram:
    """The program as written, or with its own schedule applied."""
    asked = program.first(Schedule)
    return schedule(program) if asked is not None else recorded(program, ())


def recommended(program: LoopProgram, planning: Planning | None = None) -> LoopProgram:
    """Apply the planners' schedule."""
    return recorded(drafted(program, planning=planning).program, ())


def drafted(program: LoopProgram, choices: Choices = DEFAULTS, likely: Mapping[str, int] | None = None,
            planning: Planning | None = None) -> Draft:
    """The draft of the planners' schedule. `choices`: parameter values. `likely`: sizes for which nests may have
    specialised copies. Nests beyond the budget stay as written."""
    draft = Draft(program, choices, likely, planning)
    target = program.first(Target)
    if target is None:
        return draft
    for change in () if target.machine.groups else (free_of_checks, unroll_phases, unfuse_reshaped):
        _within_budget(draft, change)
    for change in (unflatten_arrays, flatten_arrays):
        _within_budget(draft, change)
    if target.machine.groups:
        _planned(draft, program.name, partial(_on_device, machine=target.machine))
        return draft
    program = draft.program
    nests = [loop for kernel in program.kernels for loop in outermost(kernel.body)]
    blank = [loop for loop in nests if _is_begun_by_others(program, loop, nests)]
    mapped = [loop for loop in nests if _is_epilogue(program, loop, nests)]
    draft.begun = frozenset([loop.name for loop in (*blank, *mapped)])
    names = [loop.name for loop in nests if loop not in blank and loop not in mapped]
    with planning_processes.planned_before(partial(_tasks, draft, names, target.machine), names, planned_apart,
                                           draft.planning.kept) as answers:
        for done, name in enumerate(names):
            build_progress.tell(done, len(names), "scheduling")
            found = answers.of(name, partial(_task, draft, name, target.machine))
            if found is None or not _taken_over(draft, *found):
                _planned(draft, name, partial(nest_and_copy, name=name, machine=target.machine))
    draft.begun = ()
    rest = loops_in(draft.program)
    for name in [loop.name for loop in mapped if loop in rest]:
        _planned(draft, name, partial(nest_and_copy, name=name, machine=target.machine))
    for name in [s.name for kernel in draft.program.kernels for s in kernel.body if s in blank and isinstance(s, For)]:
        _planned(draft, name, partial(_nest, name=name, machine=target.machine, threads=True))
    return draft


def _within_budget(draft: Draft, change: Callable[[Draft], object]) -> None:
    """Change all nests, or none if the budget ends."""
    if operation_count.current().is_spent:
        return
    before, at = draft.program, len(draft.log)
    try:
        change(draft)
    except operation_count.OutOfBudget:
        draft.program = before
        del draft.log[at:]


def _planned(draft: Draft, name: str, plan: Callable[[Draft], None]) -> None:
    """Plan one nest as a program of its own, with a budget of its own. If that ends or planning fails, the nest stays
    as written."""
    part, at = apart(draft.program, name, draft.begun), len(draft.log)
    inner = draft if part is None else draft.on(part.program)
    inner.parts = tuple([each for each in (part,) if each is not None])
    before = inner.program
    draft.log.append(Planned(name))
    try:
        with operation_count.nest_counted():
            plan(inner)
    except operation_count.OutOfBudget:
        inner.program = before
        draft.roll_back_log(at, Planned(name))
        draft.skip(name)
    except Exception as problem:
        inner.program = before
        draft.roll_back_log(at, Planned(name, f"planning it failed: {reason_of(problem)}"))
        draft.planning.failed(problem)
    if part is not None and inner.program is not before:
        whole = inner.parts[0].back(inner.program)
        if whole is None:
            draft.planning.failed(RuntimeError(f"the nest of '{name}' is no longer where it was"))
        else:
            draft.program = whole


def planned_apart(task: Task) -> Answer | None:
    """The nest of a task, planned. None where planning fails: it is planned again in its program, where its faults are
    told."""
    planning = Planning(task.verify)
    draft = Draft(task.program, task.choices, task.likely, planning)
    draft.begun = task.begun
    try:
        with operation_count.counted(operation_count.Work(operation_count.BUDGET)) as work:
            nest_and_copy(draft, name=task.name, machine=task.machine)
    except Exception:
        return None
    return Answer(draft.program, tuple(planning.log), draft.asked, work.spent)


def _task(draft: Draft, name: str, machine: Machine) -> Task | None:
    """What is needed to plan a nest apart from the program; None where it is not."""
    part = apart(draft.program, name, draft.begun)
    return None if part is None else Task(part.program, name, draft.begun, machine, draft.choices, draft.likely,
                                          draft.planning.verify)


def _tasks(draft: Draft, names: Sequence[str], machine: Machine) -> dict[str, Task]:
    """The tasks of these nests."""
    found = {name: _task(draft, name, machine) for name in names}
    return {name: task for name, task in found.items() if task is not None}


def _taken_over(draft: Draft, task: Task, answer: Answer) -> bool:
    """Put a nest that was planned apart in its place. False where planning it here might give another one: where its
    names are not known, or the budget would end."""
    part, work = apart(draft.program, task.name, draft.begun), operation_count.current()
    if part is None or (work.budget is not None and answer.spent > work.budget):
        return False
    made = with_free_names(answer, task.program, part.program)
    whole = None if made is None else _put_back(part, made, task)
    if made is None or whole is None:
        return False
    work.greatest = max(work.greatest, made.spent)
    draft.program = whole
    draft.log.extend([Planned(task.name), *made.log])
    for parameter, default in made.asked.items():
        draft.asked.setdefault(parameter, default)
    return True


def _put_back(part: Apart, made: Answer, task: Task) -> LoopProgram | None:
    """The program with a nest as planned. Arrays of the program that the nest views with other axes, all nests view so
    from here on."""
    arrays, schedule = declared_names(task.program), made.program.first(Schedule)
    found: Apart | None = part
    for step in () if schedule is None else schedule.steps:
        if step[0] == "flatten" and step[1] in arrays and found is not None:
            try:
                found = found.flattened(step[1], *map(int, step[2:]))
            except CatenError:
                return None                                 # it is no whole array in another nest
    return None if found is None else found.back(made.program)


def _on_device(draft: Draft, machine: Machine) -> None:
    """Make every statement a kernel, and every kernel a grid of blocks of threads."""
    for name in [k.name for k in draft.program.kernels]:
        draft.try_steps(("separate", name))
    for kernel in draft.program.kernels:
        match kernel.body:
            case (For() as loop,):
                context = PlanContext(machine, False, draft.ask)
                _planned_by(draft, chain_of(draft.loop(loop.name)), DEVICE_NESTS, context)


def _is_begun_by_others(program: LoopProgram, loop: For, nests: list[For]) -> bool:
    """Does a nest only initialise the accumulators of a later nest?"""
    match chain_of(loop).body:
        case (Setf(ref=Aref(buffer=name)),):
            later = [chain_of(nest) for nest in nests[nests.index(loop) + 1:] if name in writes(nest)]
            sums = [contraction(program, chain) or reduction(chain) for chain in later]
            return any(total is not None and total.out.buffer == name for total in sums)
    return False


def _is_epilogue(program: LoopProgram, loop: For, nests: list[For]) -> bool:
    """Does a nest map the results of the product before it?"""
    at = nests.index(loop)
    total = _product(program, chain_of(nests[at - 1])) if at else None
    return total is not None and chain_of(loop).is_leaf and total.out.buffer in reads(loop) & writes(loop)


def _product(program: LoopProgram, chain: Chain) -> Contraction | Reduction | None:
    """The nest as a contraction or a matrix-vector product; None if it is neither."""
    total = reduction(chain)
    return contraction(program, chain) or (total if total is not None and shares_operand(chain, total) else None)


def nest_and_copy(draft: Draft, name: str, machine: Machine) -> None:
    """Plan one nest, and before it a copy for the likely sizes, if that is chosen."""
    for each in (*_for_likely_sizes(draft, name), name):
        _nest(draft, each, machine, True)


def _for_likely_sizes(draft: Draft, name: str) -> tuple[str, ...]:
    """Copy a nest for the likely sizes, if that is chosen. Returns the outermost loop of the copy."""
    sizes = [size.name for size in draft.program.all(Size) if size.name in draft.likely]
    if not sizes or not draft.ask(COPIES, 0):
        return ()
    conds: list[Any] = [("=", size, str(draft.likely[size])) for size in sizes]
    cond = reduce(lambda whole, other: ("and", whole, other), conds)
    copies = draft.result_of(lambda d: d.specialize(name, cond, "k"), f"the step 'for calls {name}'")
    return () if copies is None else (copies[name],)


def _nest(draft: Draft, name: str, machine: Machine, threads: bool) -> None:
    """Plan one nest: as a whole if it is perfect, otherwise its outer loops and each inner nest."""
    chain, context = chain_of(draft.loop(name)), PlanContext(machine, threads, draft.ask)
    if chain.is_leaf:
        at = len(draft.log)
        if not _planned_by(draft, chain, PERFECT_NESTS, context):
            draft.log_scalar(chain, at)
            if threads:
                draft.parallelize_two(*chain.names)
        return
    if (product := draft.result_of(partial(_begun_apart, chain=chain))) is not None:
        for each in (name, product):
            _nest(draft, each, machine, threads)
        return
    if _planned_by(draft, chain, WHOLE_NESTS, context):
        return
    if not _planned_by(draft, chain, ROW_PASSES, context) and _planned_by(draft, chain, OUTER_LOOPS, context):
        return
    inner = list(outermost(chain.body))
    threaded = threads and draft.parallelize_two(*chain.names)
    asking = row_passes.row_prefetch(draft.program, chain, context)
    late = [loop.name for loop in inner if _is_epilogue(draft.program, loop, inner)]
    late += [loop.name for loop in inner if _is_begun_by_others(draft.program, loop, inner)]
    order = sorted([loop.name for loop in inner], key=lambda name: asking is None or name != asking.loop)
    for loop in [*[name for name in order if name not in late], *late]:
        if loop in late and not any(n.name == loop for n in loops_in(draft.program)):
            continue                                              # it is a part of a contraction now
        _nest(draft, loop, machine, threads and not threaded)
        if asking is not None and loop == asking.loop:
            emit_row_prefetch(draft, chain, asking)


def _planned_by(draft: Draft, chain: Chain, kinds: Sequence[NestKind], context: PlanContext) -> bool:
    """Take the first kind that has a plan for a nest. Returns whether there is one."""
    return any(draft.attempt(partial(_versions, chain=chain, kind=kind, context=context), f"plans of {kind.name}")
               for kind in kinds)


def _versions(draft: Draft, chain: Chain, kind: NestKind, context: PlanContext) -> None:
    """Make the versions of a nest (loop versioning): specialised copies, then a plan for all remaining calls."""
    matched = kind.match(draft.program, chain, context)
    for planner in kind.planners:
        steps = partial(_version, chain=chain, matched=matched, planner=planner, context=context)
        made = draft.result_of(steps, f"the plan '{words(planner)}'")
        if made is not None and (made.when is None or not draft.has_loop(chain.names[0])):
            return                                        # no call is left: `specialize` may leave the original out
    if kind.is_total:
        tried = [e for e in reversed(draft.log) if isinstance(e, Tried) and e.depth == draft.depth]
        raise NotApplicable(tried[0].why_not if tried else "it has no plan")


def _version(draft: Draft, chain: Chain, matched: Any, planner: Planner, context: PlanContext) -> Version:
    """Make one version of a nest."""
    version = planner(matched, context)
    if version.when is not None and draft.is_always(chain.names[0], version.when):
        version = replace(version, when=None)
    draft.log.append(Chosen(str(version.plan), draft.depth))
    if version.when is None:
        with nullcontext() if context.machine.groups else draft.focus(chain.names[0]):  # GPU: several kernels
            emit(draft, chain, version.plan, context)
        return version
    copies = draft.specialize_nest(chain.names, version.when, *([version.ending] if version.ending else []))
    if draft.is_unreachable(copies[chain.names[-1]]):
        raise NotApplicable(OTHER_SIZES)
    with draft.focus(copies[chain.names[0]]):
        emit(draft, _copied(draft, chain, copies), version.plan, context)
    return version


def _copied(draft: Draft, chain: Chain, copies: Copies) -> Chain:
    """The copy of a chain, with the same number of loops."""
    loops = tuple([draft.loop(copies[name]) for name in chain.names])
    return Chain(loops, loops[-1].body)


def _begun_apart(draft: Draft, chain: Chain) -> str:
    """Fission a product that initialises each element itself. Returns the outermost loop of the product proper."""
    match chain.body:
        case (Setf(ref=Aref() as ref, value=Const()), For() as last):
            rest = chain_of(last)
            whole = Chain((*chain.loops, *rest.loops), rest.body)
            total = reduction(whole)
            if total is not None and total.out == ref and total.kept == chain.names and _product(draft.program, whole):
                for name in reversed(chain.names):
                    made = draft.take("fission", name, 1)
                assert isinstance(made, OneLoop)
                return made.loop
    raise NotApplicable("its body is no product after a beginning")
