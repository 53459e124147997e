"""The stages in order, and the driver that runs a program from the level it is on to the one that is asked for.

    gemm.toml ──parse──▶ (op …) ──ir──▶ (tensor …) ──schedule──▶ (loop …) ──render──▶ C ──compile──▶ library
"""
from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from . import faults
from .collector import CollectingRarely
from .core.dtypes import is_packed
from .core.expr import Var, index
from .core.node import substitute
from .core.program import At, Bind, Config, InOrder, Lines, Opt, Program, Scalar, Schedule, Size, Source, Target, Unchecked, resolve
from .core.text import flat, form_of, parse, place_in, read, read_forms, show
from .echo import escape, escape_lines
from .errors import CatenError, Diagnostic, NothingMatched, Place, UsageError, did_you_mean, error
from .frontend import spec
from .frontend.composite import named
from .frontend.op import OpProgram
from .frontend.spec import SpecText
from .frozen import frozen
from .loop import accumulations, bounds, fills, simplify
from .loop import level as loop_level
from .loop.statements import Kernel, LoopProgram
from .loop.work import BUDGET, Work, counted, current
from .options import Options
from .runtime import cache, discover, records, trust
from .runtime.protocol import Host, Runtime
from .schedule import autoscheduler, script
from .schedule.log import Entry, StaysScalar, explained
from .schedule.planning import Planning
from .tensor import level as tensor_level
from .tensor.lower import lower
from .tensor.raising import raise_op
from .tensor.values import TensorProgram

_HEAD = re.compile(r"(?:\s|;[^\n]*\n)*\(\s*([^\s()]+)")      # the first word of a text of the stages, after comments
SCALAR = "E944"                 # given only where it is asked for
Check = Callable[[], None]      # a verification; CatenError where it refuses
LEVELS: dict[str, type[Program]] = {"op": OpProgram, "tensor": TensorProgram, "loop": LoopProgram}


@frozen
class Pass:
    """One step of the pipeline; `to` is the level that the stage it belongs to ends at. `verified`: the same, with checks of its own on the way.
    `careful`: the same, without what cannot be shown to be right; it has its turn where the verifier refuses what `run` made. `plain`: the least
    that makes a program of the next step; it has its turn where the others fail, which is a fault of ours."""

    name: str
    run: Callable[[Any], Any]
    to: str
    verified: Callable[[Any], Any] | None = None
    careful: Callable[[Any], Any] | None = None
    plain: Callable[[Any], Any] | None = None


PASSES: tuple[Pass, ...] = (
    Pass("add_checks", bounds.add_checks, "tensor"),                # accesses that are not proven inside get a check
    Pass("normalise", accumulations.normalise, "tensor",            # x = x + e is an accumulation, however it is written
         plain=lambda p: p),
    Pass("fill", fills.fill_outputs, "tensor"),                     # outputs that are not proven to be set everywhere hold 0 at first
    Pass("raise", raise_op, "tensor",                               # loop nests to index notation where they fit
         plain=partial(raise_op, as_written=True)),
    Pass("lower", lower, "loop"),                                   # index notation to loops
    Pass("bind", lambda p: bind_sizes(p), "loop"),                  # sizes known at compile time become numbers
    Pass("simplify", lambda p: simplify.simplify_program(p) if p.opt > 0 else p, "loop",
         verified=lambda p: loop_level.where_shown(p, simplify.simplify_program(p)) if p.opt > 0 else p,
         careful=lambda p: p, plain=lambda p: p),                   # an index stays as it was where it was checked
    Pass("schedule", autoscheduler.schedule, "loop",                #  the planners', or the one that was given
         verified=partial(autoscheduler.schedule, verify=True), careful=partial(autoscheduler.schedule, careful=True),
         plain=autoscheduler.as_written),
)
VERIFIERS: dict[str, Callable[[Any], None]] = {"op": loop_level.verify, "tensor": tensor_level.verify, "loop": loop_level.verify}
# The fields of Options that each level has used up when its text is printed.
USED: dict[str, tuple[str, ...]] = {
    "op": ("strided",), "tensor": ("strided", "opt", "binds", "unchecked", "in_order"),
    "loop": ("strided", "opt", "binds", "unchecked", "in_order", "runtime", "config", "schedule"),
}


def level_of(program: Program) -> str:
    """`op`, `tensor` or `loop`."""
    return next(name for name, cls in LEVELS.items() if isinstance(program, cls))


# -- reading what the user names ------------------------------------------------------------------------------------------------------------

def load_programs(source: SpecText, options: Options) -> list[Program]:
    """A spec, or the text that an earlier stage printed, as programs with the options attached. Those that --only leaves out are there, as they were:
    it selects among all that a command reads."""
    head = _HEAD.match(source.text)
    if head is not None and head[1] in LEVELS:
        return [reconcile(p, options) if _is_selected(p, options) else p for p in read_programs(source)]
    return [attach(p, options) if _is_selected(p, options) else p for p in spec.load(source, options)]


def _is_selected(program: Program, options: Options) -> bool:
    return not options.only or any(named(name, (program.name,)) for name in options.only)


def read_programs(source: SpecText) -> list[Program]:
    """The programs of a text of the stages, verified: a person may have edited it. Raises CatenError with everything that is wrong."""
    def spot(pos: int) -> Place:
        return place_in(source.text, pos, source.name)
    programs: list[Program] = []
    problems: list[Diagnostic] = []
    for form in read_forms(source.text, spot):
        try:
            node = parse(form, spot)
            if not isinstance(node, Program):
                raise error("E214", f"a text of the stages holds programs, not {flat(form_of(node))[:60]}",
                            hint="each starts with (op …), (tensor …) or (loop …)")
            program = resolve(node)
            # the accesses of an op are looked at by its first pass, which adds the checks
            VERIFIERS[level_of(program)](program.adding(Unchecked()) if isinstance(program, OpProgram) else program)
            programs.append(program)
        except CatenError as problem:
            problems += [_of_text(d, spot(form.pos)) for d in problem.diagnostics]
    if problems:
        raise CatenError(*problems)
    return programs


def _of_text(d: Diagnostic, place: Place) -> Diagnostic:
    """What a verifier says of a program that a person gave: not our fault, and the place is the program."""
    if d.code.startswith(("E47", "E48")):
        d = replace(d, code="E215", hint="correct the text, or make it again from the spec")
    return d.at(place)


def selected(programs: list[Program], only: Sequence[str]) -> list[Program]:
    """The programs that --only names (all without it). NothingMatched where it names none."""
    names = [p.name for p in programs]
    wanted = [named(name, names) for name in only]
    if None in wanted:
        name = only[wanted.index(None)]
        raise NothingMatched(Diagnostic("E920", f"no composite is called '{name}'",
                                        hint=did_you_mean(name, names) or f"there is: {', '.join(names)}"))
    return [p for p in programs if not only or p.name in wanted]


def runtime_of(options: Options) -> Runtime:
    """The configured runtime that the options name."""
    host = Host(cc=options.cc, cflags=options.cflags, ldflags=options.ldflags, temp=Path(options.temp_dir) if options.temp_dir else None,
                timeout=options.cc_timeout, debug=options.lines,
                cache=cache.default_directory(options.cache_dir) if options.use_cache else None)
    runtime = discover.find(options.runtime, options.runtime_path)
    return trust.answered(runtime, "configure", runtime.configure(options.config, host), type(runtime))


def target_of(options: Options) -> Target:
    """The target as it stands in every text: runtime, resolved machine, options as given."""
    runtime = runtime_of(options)
    return Target(options.runtime, trust.machine_of(runtime), tuple(Config(k, v) for k, v in options.config))


def attach(op: OpProgram, options: Options) -> Program:
    """A fresh op with the facts that the options add."""
    known = {*op.sizes, *[s.name for s in op.all(Scalar)]}
    sizes = [named(name, op.sizes) for name, _ in options.binds]
    for size, (name, _) in zip(sizes, options.binds, strict=True):
        if size is None:
            hint = did_you_mean(name, sorted(known)) or f"the sizes of {op.name} are {', '.join(op.sizes) or 'none'}"
            raise UsageError(Diagnostic("E921", f"-D{name}: {op.name} has no size called '{name}'", hint=hint))
    program: Program = op
    for name in options.strided:
        program = _strided(program, name)
    facts: list[Any] = [Opt(options.opt), target_of(options)]
    facts += [Bind(size, v) for size, (_, v) in zip(sizes, options.binds, strict=True) if size is not None]
    facts += [Unchecked()] if options.unchecked else []
    facts += [InOrder()] if options.in_order and op.first(InOrder) is None else []
    facts += [Lines()] if options.lines else []
    return _with_schedule(program, options).adding(*facts)


def _with_schedule(program: Program, options: Options) -> Program:
    if options.schedule is None:
        return program
    before = program.first(Schedule)
    steps = {flat(form_of(step)) for step in before.steps} if before is not None else set()
    rest = program.replace(clauses=tuple([c for c in program.clauses if c is not before and not (isinstance(c, At) and c.what in steps)]))
    return rest.adding(script.parse_schedule(options.schedule, options.schedule_file))


def _strided(program: Program, name: str) -> Program:
    """One int64 stride in elements per axis of an array but the fastest, passed after the sizes."""
    found = named(name, program.buffers)
    if found is None:
        raise UsageError(Diagnostic("E922", f"-fstrided={name}: {program.name} has no array called '{name}'",
                                    hint=did_you_mean(name, list(program.buffers)) or f"the arrays are {', '.join(program.buffers)}"))
    name, buffer = found, program.buffers[found]
    if is_packed(buffer.type):
        raise UsageError(Diagnostic("E922", f"-fstrided={name}: two elements of '{name}' share a byte, so it has no strides"))
    fastest = buffer.order[-1] if buffer.order else None
    names = {axis: f"{name}_stride{axis}" for axis in range(len(buffer.shape)) if axis != fastest}
    strides = tuple(Var(names[a], "i64") if a in names else index(1) for a in range(len(buffer.shape)))
    clauses = tuple(buffer.replace(strides=strides) if c is buffer else c for c in program.clauses)
    last = max(n for n, c in enumerate(clauses) if isinstance(c, (Size, Scalar)) or hasattr(c, "shape"))
    return program.replace(clauses=(*clauses[:last + 1], *[Scalar(n, "i64") for n in names.values()], *clauses[last + 1:]))


def reconcile(program: Program, options: Options) -> Program:
    """Options given beside the text of an earlier stage: applied where that text has not used them yet, else they must agree with it."""
    level = level_of(program)
    target = program.first(Target)
    said: dict[str, Any] = {
        "opt": program.opt, "binds": tuple((b.name, b.value) for b in program.all(Bind)), "unchecked": program.first(Unchecked) is not None,
        "in_order": program.first(InOrder) is not None,
        "lines": program.first(Lines) is not None, "runtime": target.runtime if target else options.runtime,
        "config": tuple((c.key, c.value) for c in target.config) if target else options.config,
        "strided": tuple(b.name for b in program.buffers.values() if b.strides), "schedule": None,
    }
    wanted = {name: getattr(options, name) for name in options.given if name in said and getattr(options, name) != said[name]}
    for name in USED[level]:
        if name in wanted:
            raise UsageError(Diagnostic("E923", f"{program.name}: the ({level} …) text was made with {name} = {_shown(said[name])}, "
                                        f"the command line says {_shown(wanted[name])}", hint="start again from the spec, or leave the option out"))
    if "schedule" in wanted:
        program = _with_schedule(program, options)
    fresh = replace(options, **{n: v for n, v in said.items() if n not in wanted and n != "schedule"})
    facts: list[Any] = [Opt(fresh.opt), target if target and not {"runtime", "config"} & wanted.keys() else target_of(fresh)]
    facts += [Bind(n, v) for n, v in fresh.binds]
    facts += [Unchecked()] if fresh.unchecked else []
    facts += [InOrder()] if fresh.in_order else []
    facts += [Lines()] if fresh.lines else []
    return program.without(Opt, Target, Bind, Unchecked, InOrder, Lines).adding(*facts)


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "none of its own"
    if isinstance(value, tuple):
        return ",".join("=".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value) or "nothing"
    return str(value)


# -- the stages -----------------------------------------------------------------------------------------------------------------------------

def ignore(warning: Diagnostic) -> None:
    """Does nothing with a warning."""


def advance(program: Program, to: str, options: Options, warn: records.Warn = ignore, due: list[Check] | None = None,
            log: list[Entry] | None = None) -> Program:
    """Run the passes from the level a program is on to the level `to` (`op`, `tensor`, `loop`). `warn` hears of records that are not used.
    With `due` the last verification is not run but added there, unless every pass is verified; who runs it begins again without `due` where it
    refuses, for the careful steps. What is planned and tried is added to `log`."""
    with CollectingRarely(), counted(Work(BUDGET)) as work:
        made = _advanced(program, to, options, warn, due, [] if log is None else log)
    if options.debug >= 1 and work.spent:
        print(f"caten: {program.name}: spent {work.share:.2%} of the compile-time budget", file=sys.stderr)
    return made


def _advanced(program: Program, to: str, options: Options, warn: records.Warn, due: list[Check] | None, log: list[Entry]) -> Program:
    order, here = list(LEVELS), level_of(program)
    if order.index(here) > order.index(to):
        raise UsageError(Diagnostic("E924", f"{program.name} is already at the {here} level, which comes after the {to} level",
                                    hint="give an earlier text, or run the stage that makes the next level"))
    todo = [p for p in PASSES if order.index(here) < order.index(p.to) <= order.index(to)]
    since: list[tuple[Pass, Program]] = []                 # the steps since the program was verified, with what each began from
    for n, step in enumerate(todo):
        last = n + 1 == len(todo)
        if step.run is autoscheduler.schedule:
            program = recalled(program, options, warn)
        since.append((step, program))
        with timed(f"{program.name}: {step.name}", options), _placed(options):
            program = _taken(step, program, options, warn, log)
        if last and due is not None and not options.verify:
            due.append(counted(current())(partial(VERIFIERS[to], program)))
        elif options.verify or last:
            program, since = _verified(program, since, options, warn, log), []
        if options.debug >= 4 or (options.debug == 3 and (last or todo[n + 1].to != step.to)):
            print(f"; after {step.name}\n{escape_lines(show(program))}", file=sys.stderr)
    return program


def _taken(step: Pass, program: Program, options: Options, warn: records.Warn, log: list[Entry]) -> Program:
    """The program after a step. Where the step fails unexpectedly, what the plain one makes, and a warning."""
    planning = Planning(tolerant=not _raises_faults(options), log=log)
    run = step.verified if options.verify and step.verified else step.run
    try:
        made: Program = run(program, **({"planning": planning} if step.run is autoscheduler.schedule else {}))
    except CatenError:
        raise
    except Exception as fault:
        if step.plain is None or _raises_faults(options):
            raise
        warn(_fault(f"{program.name}: the pass '{step.name}' failed ({type(fault).__name__}), and is left out", fault, program, options))
        return step.plain(program)  # type: ignore[no-any-return]
    for met in planning.faults[:1]:
        warn(_fault(f"{program.name}: planning a nest failed ({type(met).__name__}), and a simpler plan is taken", met, program, options))
    if planning.left:
        names = ", ".join([f"'{name}'" for name in planning.left[:5]]) + (" …" if len(planning.left) > 5 else "")
        message = f"{program.name}: {len(planning.left)} nests are not scheduled, for the program is larger than what is planned: {names}"
        warn(Diagnostic("E943", message, severity="warning", hint="they run as written; several smaller composites would each be scheduled"))
    if SCALAR in options.asked:
        for remark in dict.fromkeys(_scalar(program, planning.log)):
            warn(remark)
    if options.debug >= 3 and step.run is autoscheduler.schedule:
        print("".join([f"; {escape(line)}\n" for line in explained(planning.log)]), end="", file=sys.stderr)
    return made


def _scalar(program: Program, log: Sequence[Entry]) -> Iterator[Diagnostic]:
    """The nests of which no vectors are made, where they are written."""
    for entry in log:
        if isinstance(entry, StaysScalar):
            place = next((place for name in (entry.loop, *entry.stored) if (place := program.place_of(name)) is not None), None)
            yield Diagnostic(SCALAR, f"{program.name}: the loop over '{entry.loop}' stays scalar: {entry.why}", place, severity="warning",
                             hint="caten schedule --explain shows all that was tried")


def _raises_faults(options: Options) -> bool:
    """Does a fault of ours end the build?"""
    return options.strict or options.verify


def _fault(message: str, fault: Exception, program: Program, options: Options) -> Diagnostic:
    """A warning about a fault of ours that a build goes on after, with its report."""
    note = faults.kept(fault, message, options.cache_dir, {"program.txt": show(program)})
    return Diagnostic("E942", message, severity="warning", notes=((note, None),), hint=f"the library is right, and perhaps slower; {faults.PLEASE}")


@contextmanager
def _placed(options: Options) -> Iterator[None]:
    """A step that is refused has its place in the file of -s, where that asked for it."""
    try:
        yield
    except script.StepRefused as refused:
        if options.schedule is None:
            raise
        place = script.asked_at(options.schedule, options.schedule_file, refused.step)
        raise CatenError(*[d.at(place) for d in refused.diagnostics]) from None


def recalled(program: Program, options: Options, warn: records.Warn = ignore) -> Program:
    """At -O3 the program with the schedule that `caten tune` recorded for it, if there is one: replayed step by step and verified. A record that
    does not apply is not used; `warn` hears of it."""
    if program.opt < 3 or not isinstance(program, LoopProgram) or program.first(Schedule) is not None or program.first(Target) is None:
        return program
    record = records.find(records.key(program, runtime_for([program], options)), *record_places(program, options), warn)
    if options.debug >= 1:
        said = "no record of caten tune, scheduled as at -O2" if record is None else f"the schedule that caten tune found on {escape(record.date)}"
        print(f"caten: {program.name}: {said}", file=sys.stderr)
    if record is None:
        return program
    try:
        replayed = script.apply(program, script.parse_schedule(record.schedule).steps)
        loop_level.verify(replayed)
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
    return cache.default_directory(options.cache_dir) if options.use_cache else None, records.beside(source.file) if source else None


def unscheduled(program: Program, options: Options) -> LoopProgram:
    """The loops of a program as the schedule finds them: what records of `caten tune` are about."""
    for step in PASSES:
        if step.run is autoscheduler.schedule:
            break
        if list(LEVELS).index(level_of(program)) <= list(LEVELS).index(step.to):
            program = step.run(program)
    assert isinstance(program, LoopProgram)
    return program


def _verified(program: Program, since: list[tuple[Pass, Program]], options: Options, warn: records.Warn, log: list[Entry]) -> Program:
    """The program that these steps made, verified; where it is refused, what they make when the last one is careful, then the one before too,
    and so on; where that is refused as well, which is a fault of ours, what the plain ones make."""
    try:
        VERIFIERS[level_of(program)](program)
    except CatenError as refusal:
        careful = None if options.verify else _made_with_care(since, options, log)
        if careful is None:
            careful = None if _raises_faults(options) else _made_plainly(since)
            if careful is None:
                raise refusal
            log.clear()
            warn(_fault(f"{program.name}: what was made of it could not be verified, and is left out", refusal, program, options))
        program = careful
    if options.verify and resolve(read(show(program))[0]) is not program:
        raise error("E481", f"the text printed after {since[-1][0].name} does not read back to the same program")
    return program


def _made_with_care(since: list[tuple[Pass, Program]], options: Options, log: list[Entry]) -> Program | None:
    """What the steps make when as many of the last ones as it takes are careful; None where all of them are not enough. What they plan takes
    the place of what `log` holds."""
    for first in reversed([at for at, (step, _) in enumerate(since) if step.careful]):
        program = since[first][1]
        log.clear()
        try:
            for step, _ in since[first:]:
                with timed(f"{program.name}: {step.name}, carefully", options):
                    program = (step.careful or step.run)(program, **({"planning": Planning(log=log)} if step.run is autoscheduler.schedule else {}))
            VERIFIERS[level_of(program)](program)
        except CatenError:
            continue
        except Exception:
            if _raises_faults(options):
                raise
            continue
        return program
    return None


def _made_plainly(since: list[tuple[Pass, Program]]) -> Program | None:
    """What the steps make where those that can be are plain; None where that is refused, too, or was asked for."""
    program = since[0][1]
    try:
        for step, _ in since:
            program = (step.plain or step.run)(program)
        VERIFIERS[level_of(program)](program)
    except CatenError:
        return None
    return program


def bind_sizes(program: LoopProgram) -> LoopProgram:
    """Kernels with the sizes known at compile time replaced by their values; the parameters stay, and the entry checks compare."""
    values = {Var(b.name, "i64"): index(b.value) for b in program.all(Bind)}
    if not values:
        return program
    clauses = tuple(substitute(c, values) if isinstance(c, Kernel) else c for c in program.clauses)
    return program.replace(clauses=clauses)


@contextmanager
def timed(what: str, options: Options) -> Iterator[None]:
    """At --debug 1 and above: how long it took, on stderr."""
    start = time.perf_counter()
    yield
    if options.debug >= 1:
        print(f"caten: {what}: {(time.perf_counter() - start) * 1e3:.1f} ms", file=sys.stderr)


def render(programs: Sequence[Program], options: Options, warn: records.Warn = ignore) -> str:
    """The source text of programs at any level, as one library."""
    loops = [loop for p in programs if isinstance(loop := advance(p, "loop", options, warn), LoopProgram)]
    runtime = runtime_for(loops, options)
    with timed("render", options):
        text = trust.answered(runtime, "render", runtime.render(*loops), str)
    if options.debug >= 2:
        print(escape_lines(text), file=sys.stderr)
    return text


def runtime_for(programs: Sequence[Program], options: Options) -> Runtime:
    """The runtime that the programs were made for, with the surroundings of this call."""
    target = programs[0].first(Target)
    if target is None:
        return runtime_of(options)
    return runtime_of(replace(options, runtime=target.runtime, config=tuple((c.key, c.value) for c in target.config)))
