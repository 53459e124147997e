"""The schedule language: steps are primitives with arguments. They are checked, applied and recorded."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.node import Node
from ..core.program import Schedule
from ..core.text import MAX_FORMS, Form, flat, form_of, place_in, read_forms, show
from ..echo import spelled
from ..errors import CatenError, Diagnostic, Place, did_you_mean, error
from ..frozen import frozen
from ..loop.statements import LoopProgram
from ..loop.verifier import verify as verify_program
from . import thread_programs
from .analysis.loop_queries import refusal
from .primitives.bind import MARKS, bind
from .primitives.compute_at import compute_at
from .primitives.contract import contract
from .primitives.fission import fission
from .primitives.flatten import flatten
from .primitives.fuse import fuse
from .primitives.hoist import hoist
from .primitives.inline import inline
from .primitives.interior import interior
from .primitives.jam import jam
from .primitives.merge import merge
from .primitives.pad import pad
from .primitives.parallel import parallel
from .primitives.partition import partition
from .primitives.precompute import precompute
from .primitives.prefetch import prefetch
from .primitives.prefetch_at import prefetch_at
from .primitives.reorder import reorder
from .primitives.separate import separate
from .primitives.specialize import specialize
from .primitives.split import TAILS, split
from .primitives.spread import spread
from .primitives.stage import HOWS, stage
from .primitives.stream import stream
from .primitives.transpose import transpose
from .primitives.unchecked import unchecked
from .primitives.unflatten import unflatten
from .primitives.unfuse import unfuse
from .primitives.unguard import unguard
from .primitives.unroll import unroll
from .primitives.vectorize import vectorize
from .primitives.widen import widen
from .step_results import Made

Step = tuple[Any, ...]                # words, and conditions as nested tuples of words
# The kind of an argument: `loop`, `buffer`, `kernel`, `name`, `count`, `loop or count`, `loop or loops` (a list),
# `condition`, `extent`, or the words that it may be.
Kind = str | tuple[str, ...]

MOST_NODES = 200_000                   # of a scheduled program, written out, or
GROWTH = 8                             # times the nodes before the step, if that is more, but at most MAX_FORMS

APPLIED: Step = ("applied",)          # the last entry of a Schedule whose steps the program has taken


@frozen
class Primitive:
    """A primitive and the kinds of its arguments: `words` are required, `options` may follow in this order, and `rest`
    may be repeated at the end."""

    run: Callable[..., tuple[LoopProgram, Made]]
    words: tuple[Kind, ...]
    options: tuple[Kind, ...] = ()
    rest: Kind = ""

    def loops(self, values: tuple[Any, ...]) -> list[str]:
        """The arguments of a step that name loops."""
        kinds = [*self.words, *self.options, *[self.rest] * len(values)]
        found = [value for value, kind in zip(values, kinds, strict=False) if "loop" in kind]
        return [name for value in found if not isinstance(value, int)
                for name in ([value] if isinstance(value, str) else value)]

    def usage(self, name: str) -> str:
        """(split LOOP COUNT [cut|min|pad] [NAME] [NAME])"""
        def spelled(kind: Kind) -> str:
            kind = kind.replace("loops", "(loop loop…)") if isinstance(kind, str) else kind
            return kind.upper().replace(" OR ", "|") if isinstance(kind, str) else "|".join(kind)
        parts = [name, *map(spelled, self.words), *[f"[{spelled(k)}]" for k in self.options],
                 *([f"{spelled(self.rest)}…"] if self.rest else [])]
        return f"({' '.join(parts)})"


def _split(program: LoopProgram, loop: str, factor: int, tail: str = "cut", outer: str = "",
           inner: str = "") -> tuple[LoopProgram, Made]:
    return split(program, loop, factor, tail, (outer, inner) if outer else None)


PRIMITIVES: dict[str, Primitive] = {
    "split": Primitive(_split, ("loop", "count"), (TAILS, "name", "name")),
    "reorder": Primitive(reorder, ("loop", "loop"), (), "loop"),
    "hoist": Primitive(hoist, ("loop",), ("buffer",)),
    "unroll": Primitive(unroll, ("loop",), (("mark", "full"),)),
    "jam": Primitive(jam, ("loop",)),
    "partition": Primitive(partition, ("loop",), ("name",)),
    "interior": Primitive(interior, ("loop",), ("name", "name")),
    "vectorize": Primitive(vectorize, ("loop",)),
    "parallel": Primitive(parallel, ("loop",)),
    "bind": Primitive(bind, ("loop", MARKS)),
    "separate": Primitive(separate, ("kernel",)),
    "spread": Primitive(spread, ("loop", "count"), ("name",)),
    "stage": Primitive(stage, ("loop", "buffer", HOWS, ("register", "stack", "scratch", "shared")), (),
                       "loop or loops"),
    "precompute": Primitive(precompute, ("buffer",)),
    "prefetch": Primitive(prefetch, ("loop", "buffer", "count"), (("write",),)),
    "prefetch_at": Primitive(prefetch_at, ("loop", "loop", "buffer", "count")),
    "stream": Primitive(stream, ("loop", "buffer")),
    "contract": Primitive(contract, ("loop",)),
    "transpose": Primitive(transpose, ("loop", "loop")),
    "fuse": Primitive(fuse, ("loop", "loop"), ("name",)),
    "unfuse": Primitive(unfuse, ("loop", "extent"), ("name", "name")),
    "merge": Primitive(merge, ("loop", "loop")),
    "fission": Primitive(fission, ("loop", "loop or count"), ("name",)),
    "compute_at": Primitive(compute_at, ("buffer", "loop"), (("register", "stack", "scratch"),)),
    "inline": Primitive(inline, ("buffer",)),
    "pad": Primitive(pad, ("loop", "count")),
    "flatten": Primitive(flatten, ("buffer",), ("count",)),
    "unflatten": Primitive(unflatten, ("buffer", "count", "extent")),
    "widen": Primitive(widen, ("buffer", "count")),
    "specialize": Primitive(specialize, ("loop", "condition"), ("name",)),
    "unguard": Primitive(unguard, ("loop", "buffer"), ("name",)),
    "unchecked": Primitive(unchecked, ("loop",), ("name",)),
}


class StepRefused(CatenError):
    """A step is malformed, or would change the result."""

    def __init__(self, step: Step, diagnostics: Iterable[Diagnostic]):
        super().__init__(*diagnostics)
        self.step = step


def apply(program: LoopProgram, steps: Iterable[Any], verify: bool = False) -> LoopProgram:
    """Apply `steps`, and record them in the Schedule fact of the program. Raises CatenError E50x for a malformed step,
    E51x to E537, E540 and E541 for a refused one, and, with `verify`, E48x for one after which the verifier fails."""
    done: list[Step] = []
    for step in steps:
        words = tuple([plain(word) for word in step])
        if words == APPLIED:
            continue
        program, _ = _run(program, words)
        done.append(words)
        if verify:
            verify_program(recorded(program, done))
    return recorded(program, done)


def take(program: LoopProgram, step: Iterable[Any], verify: bool = False) -> tuple[LoopProgram, Made]:
    """Apply one step. Returns the program and the result of the step. Raises as `apply` does."""
    words = tuple([plain(word) for word in step])
    after, made = _run(program, words)
    after = recorded(after, [words])
    if verify:
        verify_program(after)
    return after, made


def _run(program: LoopProgram, words: Step) -> tuple[LoopProgram, Made]:
    try:
        values = check(words)
        thread_programs.check(program, words, PRIMITIVES[words[0]].loops(values))
        after, made = PRIMITIVES[words[0]].run(program, *values)
        return of_bounded_size(after, words, program), made
    except CatenError as problem:
        raise StepRefused(words, [d.at(written(program, words)) for d in problem.diagnostics]) from None


def of_bounded_size(program: LoopProgram, step: Step, before: LoopProgram) -> LoopProgram:
    """The program after a step. E539 if its text is too long: shared nodes take little memory, but a walk over nested
    conditions that double, for example, would never end."""
    most = max(MOST_NODES, min(GROWTH * _size(before), MAX_FORMS))
    if (size := _size(program)) > most:
        raise refusal("E539", flat(step)[1:-1],
                      f"the text of the program would have {spelled(size)} symbols, and may have {most}")
    return program


def _size(program: LoopProgram) -> int:
    """The nodes of the kernels, written out."""
    return sum([kernel.written_out for kernel in program.kernels])


def plain(word: Any) -> Any:
    """An argument of a step in its plain form: a word as text, a condition as nested tuples of words. It may be given
    as an expression, text or a form."""
    if isinstance(word, Node):
        return form_of(word)
    if isinstance(word, tuple):
        return tuple([plain(part) for part in word])
    text = str(word)
    return plain(read_forms(text)[0]) if text.startswith("(") else text


def written(program: LoopProgram, step: Step) -> Place | None:
    """The position of this step in the spec."""
    return program.place_of(flat(step))


def recorded(program: LoopProgram, steps: Iterable[Step]) -> LoopProgram:
    """The program with steps added to its record of applied steps. A schedule that was to be applied is replaced."""
    before = program.first(Schedule)
    taken = before.steps[:-1] if before is not None and is_applied(before) else ()
    fact = Schedule((*taken, *steps, APPLIED))
    if before is None:
        return program.adding(fact)
    return program.replace(clauses=tuple([fact if c is before else c for c in program.clauses]))


def is_applied(fact: Schedule) -> bool:
    """Does the fact record applied steps, and not steps that are to be applied?"""
    return fact.steps[-1:] == (APPLIED,)


def check(step: Step, place: Place | None = None) -> tuple[Any, ...]:
    """The checked arguments of a step. Raises E502 for an unknown primitive and E503 for wrong arguments."""
    name, *words = step or ("",)
    row = PRIMITIVES.get(name) if isinstance(name, str) else None
    if row is None:
        known = list(PRIMITIVES)
        raise error("E502", f"there is no schedule step '{name}'; the steps are: {', '.join(known)}", place,
                    hint=did_you_mean(name, known))
    kinds = [*row.words, *row.options]
    if len(words) < len(row.words) or (len(words) > len(kinds) and not row.rest):
        raise error("E503", f"{flat(step)}: {len(words)} words do not fit {row.usage(name)}", place)
    if (name, len(words)) in (("split", 4), ("unfuse", 3)):
        raise error("E503", f"{flat(step)}: name both loops, the outer and the inner one", place)
    kinds += [row.rest] * (len(words) - len(kinds))
    return tuple([_value(word, kind, step, place) for word, kind in zip(words, kinds, strict=False)])


def _value(word: str, kind: Kind, step: Step, place: Place | None) -> Any:
    if isinstance(kind, tuple):
        if word not in kind:
            raise error("E503", f"{flat(step)}: expected one of {', '.join(kind)}, not '{flat(word)}'", place,
                        hint=did_you_mean(flat(word), kind))
        return word
    if kind in ("condition", "extent"):
        return word
    if kind == "loop or loops" and not isinstance(word, str):
        if len(word) < 2:
            raise error("E503", f"{flat(step)}: expected a loop, or two or more in parentheses, not {flat(word)}",
                        place)
        return tuple([_value(name, "loop", step, place) for name in word])
    if not isinstance(word, str):
        raise error("E503", f"{flat(step)}: expected a word, not {flat(word)}", place)
    if kind == "count" or (kind == "loop or count" and word.isdigit()):
        if not word.isascii() or not word.isdigit() or len(word) > 9:
            raise error("E503", f"{flat(step)}: expected a number, not '{word}'", place)
        return int(word)
    if not word.replace("_", "a").isalnum() or not word.isascii() or word[0].isdigit():
        what = "new loop" if kind == "name" else kind.split()[0]
        raise error("E503", f"{flat(step)}: expected the name of a {what}, not '{word}'", place)
    return word


def parse_schedule(text: str, spot: str | Callable[[int], Place] = "<schedule>", operator: str = "") -> Schedule:
    """Read a schedule: the text `(schedule step…)`, or a printed program that contains it. The text may hold several
    programs `(loop NAME … (schedule step…))`, one for each `operator`. Steps are checked as far as possible without a
    program. `spot`: the name of the file, or a function from offsets to positions. Raises E504 for other texts, E502
    and E503 for steps."""
    return Schedule(tuple([step for step, _ in _steps(text, spot, operator)]))


def schedules_text(programs: Sequence[LoopProgram]) -> str:
    """The applied schedules of programs as text for `parse_schedule`: `(schedule step…)` for one program, else a
    `(loop NAME (schedule step…))` for each."""
    taken = [Schedule(tuple([s for s in fact.steps if s != APPLIED])) if (fact := p.first(Schedule)) else Schedule(())
             for p in programs]
    if len(programs) == 1:
        return f"{show(taken[0])}\n"
    return "".join([f"{show(LoopProgram(p.name, (fact,)))}\n" for p, fact in zip(programs, taken, strict=True)])


def asked_at(text: str, file: str, step: Step) -> Place | None:
    """The position of a step in the text of a schedule."""
    names = [str(form[1]) for form in read_forms(text) if isinstance(form, Form) and form[:1] == ("loop",)
             and len(form) > 1]
    return next((place for name in names or [""] for asked, place in _steps(text, file, name) if asked == step), None)


def _steps(text: str, spot: str | Callable[[int], Place], operator: str = "") -> list[tuple[Step, Place]]:
    def here(pos: int) -> Place:
        return place_in(text, pos, spot) if isinstance(spot, str) else spot(pos)
    forms = read_forms(text, here)
    loops = [form for form in forms if isinstance(form, Form) and form[:1] == ("loop",)]
    if len(loops) > 1 and len(loops) == len(forms):
        names = [str(loop[1]) for loop in loops if len(loop) > 1]
        loops = [loop for loop in loops if loop[1:2] == (operator,)]
        if len(loops) != 1:
            count = f"are {len(loops)} schedules" if loops else "is no schedule"
            raise error("E504", f"there {count} for {operator or 'an operator without a name'}",
                        here(loops[1].pos if loops else 0),
                        hint=did_you_mean(operator, names)
                        or f"expected one (loop {operator or 'NAME'} (schedule step…))")
        forms = [*loops]
    if len(forms) == 1 and forms == loops:
        forms = [clause for clause in loops[0] if isinstance(clause, Form) and clause[:1] == ("schedule",)]
    if len(forms) != 1 or not isinstance(forms[0], Form) or forms[0][:1] != ("schedule",):
        raise error("E504", "expected one (schedule step…)", here(0),
                    hint="for example (schedule (split i 8) (vectorize ii))")
    steps: list[tuple[Step, Place]] = []
    for form in forms[0][1:]:
        if not isinstance(form, Form) or not all(isinstance(word, str) for word in form[:2]):
            raise error("E504", "expected a step, (NAME word…), here", here(getattr(form, "pos", 0)))
        step = tuple([plain(word) for word in form])
        if step != APPLIED:
            check(step, here(form.pos))
            steps.append((step, here(form.pos)))
    return steps
