"""Run the passes from a program's level to the requested one, and render; time, verify and dump as requested."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from . import faults
from .attach import runtime_for
from .collector import CollectingRarely
from .core.program import At, Program, Schedule, Source, Target, resolve
from .core.text import read, show
from .echo import escape, escape_lines
from .errors import CatenError, Diagnostic, Place, UsageError, error
from .loop.operation_count import BUDGET, Work, counted, current
from .loop.statements import LoopProgram
from .options import Options
from .passes import LEVELS, LOWER, PASSES, RAISE, SCHEDULE, VERIFIERS, Pass, level_of
from .runtime import library_cache, tuning_records
from .schedule.planning import Planning, PlanStore
from .schedule.planning_log import Entry, Ignored, StaysNest, StaysScalar, explained

SCALAR, NEST = "E944", "E945"   # given only where they are asked for
Check = Callable[[], None]      # a verification; CatenError where it refuses
Step = Pass[Program, Program]


def ignore(warning: Diagnostic) -> None:
    """Does nothing with a warning."""


def once(warn: tuning_records.Warn) -> tuning_records.Warn:
    """Tells each warning once, however often what it is about is done again."""
    heard: list[Diagnostic] = []

    def tell(warning: Diagnostic) -> None:
        if warning not in heard:
            heard.append(warning)
            warn(warning)
    return tell


def advance(program: Program, to: str, options: Options, warn: tuning_records.Warn = ignore,
            due: list[Check] | None = None,
            log: list[Entry] | None = None, kept: PlanStore | None = None, as_given: bool = False) -> Program:
    """Run the passes from the level a program is on to the level `to` (`op`, `tensor`, `loop`). `warn` hears of records
    that are not used. With `due` the last verification is not run but added there, unless every pass is verified; who
    runs it begins again without `due` where it refuses. What is planned and tried is added to `log`. `kept`: where
    nests are looked for before they are planned, and kept. `as_given`: plan the loops that a schedule which is given
    meets, so that the steps can be given."""
    with CollectingRarely(), counted(Work(BUDGET)) as work:
        made = _advanced(program, to, options, warn, due, [] if log is None else log, kept, as_given)
    if options.debug >= 1 and work.share:
        print(f"caten: {program.name}: spent {work.share:.2%} of the compile-time budget", file=sys.stderr)
    return made


def _advanced(program: Program, to: str, options: Options, warn: tuning_records.Warn, due: list[Check] | None,
              log: list[Entry], kept: PlanStore | None, as_given: bool) -> Program:
    order, here = list(LEVELS), level_of(program)
    if order.index(here) > order.index(to):
        raise UsageError(Diagnostic("E924",
                                    f"{program.name} is already at the {here} level, which comes after the {to} level",
                                    hint="give an earlier text, or run the stage that makes the next level"))
    todo = [p for p in PASSES if order.index(here) < order.index(p.to) <= order.index(to)]
    # The steps since the program was verified, with what each began from.
    since: list[tuple[Step, Program]] = []
    for n, step in enumerate(todo):
        last = n + 1 == len(todo)
        if step.name == LOWER and as_given and program.first(Schedule) is None:
            program = program.adding(Schedule(()))
        if step.name == SCHEDULE:
            if as_given and (given := program.first(Schedule)) is not None and not given.steps:
                program = program.without(Schedule)
            program = recalled(program, options, warn)
        since.append((step, program))
        with timed(f"{program.name}: {step.name}", options), _placed(options):
            program = _taken(step, program, options, warn, log, kept)
        if last and due is not None and not options.verify:
            from .loop.context import Context
            Context.of(program)                        # kept with the program: the verification goes on with its memo
            due.append(counted(current())(partial(VERIFIERS[to], program)))
        elif options.verify or last:
            program, since = _verified(program, since, options, warn, log), []
        if options.debug >= 4 or (options.debug == 3 and (last or todo[n + 1].to != step.to)):
            print(f"; after {step.name}\n{escape_lines(show(program))}", file=sys.stderr)
    return program


def _taken(step: Step, program: Program, options: Options, warn: tuning_records.Warn, log: list[Entry],
           kept: PlanStore | None) -> Program:
    """The program after a step. Where the step fails unexpectedly, what the plain one makes, and a warning."""
    planning = Planning(options.verify, tolerant=not _raises_faults(options), log=log,
                        kept=None if options.verify else kept)
    try:
        made = step.run(program, planning)
    except CatenError:
        raise
    except Exception as fault:
        if step.plain is None or _raises_faults(options):
            raise
        warn(_fault(f"{program.name}: the pass '{step.name}' failed ({type(fault).__name__}), and is left out", fault,
                    program, options))
        return step.plain(program)
    for met in planning.faults[:1]:
        warn(_fault(f"{program.name}: planning a nest failed ({type(met).__name__}), and a simpler plan is taken", met,
                    program, options))
    if planning.left:
        names = ", ".join([f"'{name}'" for name in planning.left[:5]]) + (" …" if len(planning.left) > 5 else "")
        many = f"{len(planning.left)} nests are" if len(planning.left) > 1 else "a nest is"
        message = f"{program.name}: {many} not scheduled, for planning takes too long there: {names}"
        warn(Diagnostic("E943", message, severity="warning",
                        hint="what is not scheduled runs as written; divide it into several nests"))
    if step.name == LOWER:
        for remark in _ignored(program, planning.log):
            warn(remark)
    remarks = {SCHEDULE: (SCALAR, _scalar), RAISE: (NEST, _nests)}.get(step.name)
    if remarks is not None and remarks[0] in options.asked:
        for remark in dict.fromkeys(remarks[1](program, planning.log)):
            warn(remark)
    if options.debug >= 3 and step.name == SCHEDULE:
        print("".join([f"; {escape(line)}\n" for line in explained(planning.log)]), end="", file=sys.stderr)
    return made


def _ignored(program: Program, log: Sequence[Entry]) -> Iterator[Diagnostic]:
    """The requests to fusion that the device cannot meet, where they are written."""
    for entry in log:
        if isinstance(entry, Ignored):
            yield Diagnostic("E946", f"{program.name}: {entry.request} is ignored: this device has no kernels of "
                             "blocks of rows", program.place_of(entry.request), severity="warning",
                             hint="it counts for CPUs; -Wno-requests silences this warning")


def _scalar(program: Program, log: Sequence[Entry]) -> Iterator[Diagnostic]:
    """The nests of which no vectors are made, where they are written."""
    for entry in log:
        if isinstance(entry, StaysScalar):
            place = next((place for name in (entry.loop, *entry.stored)
                          if (place := program.place_of(name)) is not None), None) or _place_of_store(program, entry)
            yield Diagnostic(SCALAR, f"{program.name}: the loop over '{entry.loop}' stays scalar: {entry.why}", place,
                             severity="warning",
                             hint="caten schedule --explain shows all that was tried")


def _place_of_store(program: Program, entry: StaysScalar) -> Place | None:
    """Where an element of an array of the nest is written, if it is one place: a loop may have another name than in the
    source file."""
    arrays = {_array_of(access) for access in entry.stored}
    written = [a.what for a in program.all(At) if a.what.startswith("(aref ") and _array_of(a.what) in arrays]
    return program.place_of(written[0]) if len(written) == 1 else None


def _array_of(access: str) -> str:
    return access.split()[1].rstrip(")")


def _nests(program: Program, log: Sequence[Entry]) -> Iterator[Diagnostic]:
    """The loops that have no index notation, where they are written."""
    for entry in log:
        if isinstance(entry, StaysNest):
            yield Diagnostic(NEST, f"{program.name}: {entry.what} keeps the order of its iterations: {entry.told}",
                             entry.place, severity="warning",
                             hint="no other loop is fused with it; caten explain E945 says what helps")


def _raises_faults(options: Options) -> bool:
    """Does a fault of ours end the build?"""
    return options.strict or options.verify


def _fault(message: str, fault: Exception, program: Program, options: Options) -> Diagnostic:
    """A warning about a fault of ours that a build goes on after, with its report."""
    note = faults.kept(fault, message, options.cache_dir, {"program.txt": show(program)})
    return Diagnostic("E942", message, severity="warning", notes=((note, None),),
                      hint=f"the library is right, and perhaps slower; {faults.PLEASE}")


@contextmanager
def _placed(options: Options) -> Iterator[None]:
    """A step that is refused has its place in the file of -s, where that asked for it."""
    if options.schedule is None:
        yield
        return
    from .schedule import script
    try:
        yield
    except script.StepRefused as refused:
        place = script.asked_at(options.schedule, options.schedule_file, refused.step)
        raise CatenError(*[d.at(place) for d in refused.diagnostics]) from None


def recalled(program: Program, options: Options, warn: tuning_records.Warn = ignore) -> Program:
    """At -O3 the program with the schedule that `caten tune` recorded for it, if there is one: replayed step by step
    and verified. A record that does not apply is not used; `warn` hears of it."""
    scheduled = program.first(Schedule) is not None or program.first(Target) is None
    if program.opt < 3 or not isinstance(program, LoopProgram) or scheduled:
        return program
    record = tuning_records.find(tuning_records.key(program, runtime_for([program], options)),
                                 *record_places(program, options), warn)
    if options.debug >= 1:
        said = ("no record of caten tune, scheduled as at -O2" if record is None else
                f"the schedule that caten tune found on {escape(record.date)}")
        print(f"caten: {program.name}: {said}", file=sys.stderr)
    if record is None:
        return program
    from .schedule import script
    try:
        replayed = script.apply(program, script.parse_schedule(record.schedule).steps)
        VERIFIERS["loop"](replayed)
    except Exception as problem:
        if not isinstance(problem, CatenError) and _raises_faults(options):
            raise
        reason = problem.diagnostics[0].message if isinstance(problem, CatenError) else type(problem).__name__
        warn(Diagnostic("E653", f"the recorded schedule of {program.name} does not apply: {reason}", severity="warning",
                        hint="tune again; until then the schedule is that of -O2"))
        return program
    return replayed


def record_places(program: Program, options: Options) -> tuple[Path | None, Path | None]:
    """Where records of a program are looked for: the folder of the cache, the collection beside its spec."""
    source = program.first(Source)
    return (library_cache.default_directory(options.cache_dir) if options.use_cache else None,
            tuning_records.beside(source.file) if source else None)


def unscheduled(program: Program, options: Options) -> LoopProgram:
    """The loops of a program as the schedule finds them: what records of `caten tune` are about."""
    for step in PASSES:
        if step.name != SCHEDULE and list(LEVELS).index(level_of(program)) <= list(LEVELS).index(step.to):
            program = step.run(program, Planning())
    assert isinstance(program, LoopProgram)
    return program


def _verified(program: Program, since: list[tuple[Step, Program]], options: Options, warn: tuning_records.Warn,
              log: list[Entry]) -> Program:
    """The program after these steps, verified; if the verifier refuses it, verified after each step."""
    try:
        VERIFIERS[level_of(program)](program)
    except CatenError as refusal:
        if options.verify:
            raise
        program = _made_again(refusal, since, options, warn, log)
    if options.verify and resolve(read(show(program))[0]) is not program:
        raise error("E481", f"the text printed after {since[-1][0].name} does not read back to the same program")
    return program


def _made_again(refusal: CatenError, since: list[tuple[Step, Program]], options: Options, warn: tuning_records.Warn,
                log: list[Entry]) -> Program:
    """What the steps make when all that they do is verified at once, and what is not shown to be right is left out: of
    simplifying, that may be; of planning, it is a fault of ours, and so it is where even this is refused and the plain
    passes have their turn."""
    planning, program = Planning(verify=True, tolerant=not _raises_faults(options), log=log), since[0][1]
    log.clear()
    try:
        for step, _ in since:
            with timed(f"{program.name}: {step.name}, verified step by step", options):
                program = step.run(program, planning)
        VERIFIERS[level_of(program)](program)
        left_out = planning.faults[:1]
    except Exception:
        if _raises_faults(options):
            raise
        plain = _made_plainly(since)
        if plain is None:
            raise refusal from None
        log.clear()
        program, left_out = plain, [refusal]
    for fault in left_out:
        warn(_fault(f"{program.name}: what was made of it could not be verified, and is left out", fault, program,
                    options))
    return program


def _made_plainly(since: list[tuple[Step, Program]]) -> Program | None:
    """What the steps make where those that can be are plain; None where that is refused, too, or was asked for."""
    program = since[0][1]
    try:
        for step, _ in since:
            program = step.plain(program) if step.plain is not None else step.run(program, Planning())
        VERIFIERS[level_of(program)](program)
    except CatenError:
        return None
    return program


@contextmanager
def timed(what: str, options: Options) -> Iterator[None]:
    """At --debug 1 and above: how long it took, on stderr."""
    start = time.perf_counter()
    yield
    if options.debug >= 1:
        print(f"caten: {what}: {(time.perf_counter() - start) * 1e3:.1f} ms", file=sys.stderr)


def render(programs: Sequence[Program], options: Options, warn: tuning_records.Warn = ignore) -> str:
    """The source text of programs at any level, as one library."""
    loops = [loop for p in programs if isinstance(loop := advance(p, "loop", options, warn), LoopProgram)]
    runtime = runtime_for(loops, options)
    with timed("render", options):
        text = runtime.render(*loops)
    if options.debug >= 2:
        print(escape_lines(text), file=sys.stderr)
    return text
