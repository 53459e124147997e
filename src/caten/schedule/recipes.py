"""What to do with a program when nobody said: recipes that recognise nests by their structure and write a schedule for them.

A recipe never rewrites by itself: it takes steps of the schedule language, and where one is refused the next simpler recipe has its turn.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ..core.dtypes import is_complex
from ..core.expr import Const
from ..core.program import Machine, Schedule, Size, Target
from ..loop import work
from ..loop.level import where_shown
from ..loop.simplify import simplify_program
from ..loop.statements import Aref, For, If, LoopProgram, Setf, Stmt
from .across import is_serial_inside, lanes_across, short_rows, short_sums
from .analysis.classify import Chain, Contraction, along_memory, chain_of, contraction, reduction
from .apart import apart
from .asked import apply_asked
from .choices import DEFAULTS, Choices
from .convolution import convolution, pictures, single_places, slides
from .dots import dot_products, one_column
from .draft import Copies, Draft, NotApplicable, reason_of
from .flattening import flattened
from .gemm import gemm
from .log import Planned
from .made import Fissioned
from .narrow import few, narrow
from .planning import Planning
from .rows import ahead, are_rows, ask, rows_of_one
from .script import is_applied, recorded
from .small import small
from .streams import maps, maps_with_sums, sums_across, sums_along, sums_of_rows
from .tiles import lanes_of
from .transposes import transposes, transposition
from .windows import windows

Recipe = Callable[[Draft], None]


def schedule(program: LoopProgram, verify: bool = False, careful: bool = False, planning: Planning | None = None) -> LoopProgram:
    """The program with a schedule applied and recorded: the one it carries, else the recipes' (from -O2 on); only simplified at -O1, and as
    it is at -O0. A program whose Schedule fact says that it was applied stays as it is. `verify`: check the program after every step;
    `careful`: simplify nothing, and leave out recipes after which it is not shown to be right (what was asked for is never left
    out). `planning` says what the recipes may cost, and hears what they met."""
    asked = program.first(Schedule)
    if asked is not None and is_applied(asked):
        return program
    if asked is not None:
        return apply_asked(program, asked.steps, verify)
    if program.opt == 0:
        return program
    if not careful:
        simple = simplify_program(program)
        program = where_shown(program, simple) if verify else simple  # type: ignore[assignment]   # of the same class
    return recommended(program, verify, careful, planning) if program.opt >= 2 else program


def as_written(program: LoopProgram) -> LoopProgram:
    """The program as it is, where nobody asked for another schedule; what was asked for is applied."""
    asked = program.first(Schedule)
    return schedule(program) if asked is not None else recorded(program, ())


def recommended(program: LoopProgram, verify: bool = False, careful: bool = False, planning: Planning | None = None) -> LoopProgram:
    """The recipes' schedule, applied."""
    return recorded(drafted(program, verify, careful, planning=planning).program, ())


def drafted(program: LoopProgram, verify: bool = False, careful: bool = False, choices: Choices = DEFAULTS,
            likely: Mapping[str, int] | None = None, planning: Planning | None = None) -> Draft:
    """The recipes' schedule, with these values of its holes; `likely`: sizes for which it may have copies. Nests beyond the budget stay as they
    are written."""
    draft = Draft(program, verify, careful, choices, likely, planning)
    target = program.first(Target)
    if target is None:
        return draft
    if target.machine.groups:
        from .devices import on_threads  # few programs are for devices
        _planned(draft, program.name, lambda draft: on_threads(draft, target.machine))
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


def _planned(draft: Draft, name: str, recipe: Recipe) -> None:
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
        recipe(inner)
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


def _is_begun_by_others(program: LoopProgram, loop: For, nests: list[For]) -> bool:
    """Does a nest do nothing but setting what is added to later?"""
    match chain_of(loop).body:
        case (Setf(ref=Aref(buffer=name), value=Const()),):
            later = [chain_of(nest) for nest in nests[nests.index(loop) + 1:]]
            sums = [contraction(program, chain) or reduction(chain) for chain in later]
            return any(total is not None and total.out.buffer == name for total in sums)
    return False


def _nest_and_copy(draft: Draft, name: str, machine: Machine) -> None:
    for each in (*_for_likely_sizes(draft, name), name):
        _nest(draft, each, machine, True)


def _for_likely_sizes(draft: Draft, name: str) -> tuple[str, ...]:
    """A copy of a nest in which the likely sizes are numbers, where that is chosen: its outermost loop."""
    equal = [("=", size.name, str(draft.likely[size.name])) for size in draft.program.all(Size) if size.name in draft.likely]
    if not equal or not draft.choice("nest.copies", 0):
        return ()
    cond: Any = equal[0]
    for other in equal[1:]:
        cond = ("and", cond, other)
    copies = draft.tried(partial(_for_calls, name=name, cond=cond))
    return () if copies is None else (copies[name],)


def _for_calls(draft: Draft, name: str, cond: object) -> Copies:
    """A copy of a nest for calls of which a condition holds."""
    return draft.special(name, cond, "k")


def outermost(stmts: tuple[Stmt, ...]) -> Iterator[For]:
    """The loops that no loop surrounds."""
    for stmt in stmts:
        if isinstance(stmt, For):
            yield stmt
        elif isinstance(stmt, If):
            yield from outermost((*stmt.then, *stmt.otherwise))


def _nest(draft: Draft, name: str, machine: Machine, threads: bool) -> None:
    """The recipe for one nest: as a whole where it is perfect, else thread by its outer loops and nest by nest inside them."""
    chain = chain_of(draft.loop(name))
    if chain.is_leaf:
        at = len(draft.log)
        if not any(draft.attempts(recipe) for recipe in _recipes(draft.program, chain, machine, threads)):
            draft.scalar(chain, at)
            if threads:
                draft.thread_two(*chain.names)
        return
    if (product := draft.tried(partial(_begun_apart, chain=chain))) is not None:
        for each in (name, product):
            _nest(draft, each, machine, threads)
        return
    inner = list(outermost(chain.body))
    lanes = lanes_of(machine, [n.dtype for s in chain.body for n in s.unique() if isinstance(n, Aref)])
    if lanes > 1 and are_rows(chain, inner):
        if threads:
            draft.attempts(partial(rows_of_one, chain=chain, passes=inner, machine=machine, threads=threads))
        draft.attempts(partial(short_rows, chain=chain, passes=inner, lanes=lanes, threads=threads))
    elif lanes > 1 and is_serial_inside(draft.program, chain, lanes) and draft.attempts(
            partial(lanes_across, chain=chain, lanes=lanes, threads=threads)):
        return
    threaded = threads and draft.thread_two(*chain.names)
    asking = ahead(draft.program, chain, inner)
    for loop in sorted([loop.name for loop in inner], key=lambda name: asking is None or name != asking.loop):
        _nest(draft, loop, machine, threads and not threaded)
        if asking is not None and loop == asking.loop:
            ask(draft, chain, asking, machine)


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


def _recipes(program: LoopProgram, chain: Chain, machine: Machine, threads: bool) -> Iterator[Recipe]:
    """What fits a perfect nest, the best first."""
    copy = transposition(program, chain)
    if copy is not None:
        yield partial(transposes, t=copy, machine=machine, threads=threads)
    types = [n.dtype for s in chain.body for n in s.unique() if isinstance(n, Aref)]
    lanes = lanes_of(machine, types)
    if lanes < 2 or any(is_complex(t) for t in types):
        return
    product, total = contraction(program, chain), reduction(chain)
    if product is not None:
        yield partial(_product, c=product, chain=chain, machine=machine, lanes=lanes, threads=threads)
    if total is not None and product is None and along_memory(program, chain, total):
        yield partial(short_sums, chain=chain, total=total, lanes=lanes, threads=threads)
    elif total is not None and product is None:
        yield partial(windows, chain=chain, total=total, lanes=lanes, threads=threads)
    if total is not None:
        for sums in (sums_of_rows, sums_across) if along_memory(program, chain, total) else (sums_across, sums_along):
            yield partial(sums, chain=chain, total=total, lanes=lanes, threads=threads)
    if chain.is_leaf and total is None:
        yield partial(maps_with_sums, chain=chain, lanes=lanes, threads=threads)
    yield partial(maps, chain=chain, lanes=lanes, threads=threads)


def _product(draft: Draft, c: Contraction, chain: Chain, machine: Machine, lanes: int, threads: bool) -> None:
    """Copies for the products that are no squares, then tiles."""
    if not c.batch and len(c.rows) + len(c.columns) + len(c.sums) == 3:
        draft.attempts(partial(one_column, c=c, chain=chain, lanes=lanes, threads=threads))
        draft.attempts(partial(dot_products, c=c, chain=chain, machine=machine, lanes=lanes, threads=threads))
    small(draft, c, chain, machine, lanes, threads)
    narrow(draft, c, chain, machine, lanes, threads)
    if slides(c):
        draft.attempts(partial(single_places, c=c, chain=chain, machine=machine, threads=threads))
    elif len(c.columns) > 1:
        draft.attempts(partial(pictures, c=c, chain=chain, machine=machine, threads=threads))
    if threads and machine.threads and not slides(c):
        few(draft, c, chain, machine)
    with draft.focused(chain.names[0]):
        if not slides(c) or not draft.attempts(partial(convolution, c=c, machine=machine, threads=threads)):
            gemm(draft, c, machine, threads)
