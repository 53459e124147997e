"""Options to facts: what a command line adds to a fresh program, or to the text of an earlier stage."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .core.dtypes import is_packed
from .core.expr import Var, index
from .core.program import At, Bind, Config, InOrder, Lines, Opt, Program, Scalar, Schedule, Size, Target, Unchecked
from .core.text import flat, form_of
from .errors import Diagnostic, UsageError, did_you_mean
from .frontend.composite import named
from .frontend.op import OpProgram, Rewrite
from .loop.statements import ExternCall
from .options import Options
from .passes import level_of
from .runtime import discover, library_cache
from .runtime.protocol import Host, Runtime

# The fields of Options that each level has used up when its text is printed.
USED: dict[str, tuple[str, ...]] = {
    "op": ("strided",), "tensor": ("strided", "opt", "binds", "unchecked", "in_order"),
    "loop": ("strided", "opt", "binds", "unchecked", "in_order", "runtime", "config", "schedule"),
}


def runtime_of(options: Options) -> Runtime:
    """The configured runtime that the options name."""
    host = Host(cc=options.cc, cflags=options.cflags, ldflags=options.ldflags, temp=Path(options.temp_dir)
                if options.temp_dir else None,
                timeout=options.cc_timeout, debug=options.lines,
                cache=library_cache.default_directory(options.cache_dir) if options.use_cache else None)
    return discover.find(options.runtime, options.runtime_path).configure(options.config, host)


def target_of(options: Options) -> Target:
    """The target as it stands in every text: runtime, resolved machine, options as given."""
    return Target(options.runtime, runtime_of(options).machine(), tuple(Config(k, v) for k, v in options.config))


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
    return _with_rules(_with_schedule(program, options), options).adding(*facts)


def _with_rules(program: Program, options: Options) -> Program:
    """The program with the rules that hold under these options: its own and the runtime's."""
    own = program.all(Rewrite)
    if options.no_rewrite:
        return program.without(Rewrite) if own else program
    runtime = runtime_of(options)
    rules: Sequence[Rewrite] = own
    if runtime.rewrites:
        from .frontend.spec import runtime_rules
        rules = [*own, *runtime_rules(runtime.rewrites, str(runtime.file), options)]
    kept = [r for r in dict.fromkeys(rules) if (not r.library or f"-l{r.library}" in options.ldflags)
            and (runtime.calls_c or not any(isinstance(n, ExternCall) for n in r.replacement.unique()))]
    return program if kept == list(own) else program.without(Rewrite).adding(*kept)


def _with_schedule(program: Program, options: Options) -> Program:
    if options.schedule is None:
        return program
    before = program.first(Schedule)
    steps = {flat(form_of(step)) for step in before.steps} if before is not None else set()
    rest = program.replace(clauses=tuple([c for c in program.clauses if c is not before
                                          and not (isinstance(c, At) and c.what in steps)]))
    from .schedule import script
    return rest.adding(script.parse_schedule(options.schedule, options.schedule_file, program.name))


def _strided(program: Program, name: str) -> Program:
    """One int64 stride in elements per axis of an array but the fastest, passed after the sizes."""
    found = named(name, program.buffers)
    if found is None:
        raise UsageError(Diagnostic("E922", f"-fstrided={name}: {program.name} has no array called '{name}'",
                                    hint=did_you_mean(name, list(program.buffers))
                                    or f"the arrays are {', '.join(program.buffers)}"))
    name, buffer = found, program.buffers[found]
    if is_packed(buffer.type):
        raise UsageError(Diagnostic("E922",
                                    f"-fstrided={name}: two elements of '{name}' share a byte, so it has no strides"))
    fastest = buffer.order[-1] if buffer.order else None
    names = {axis: f"{name}_stride{axis}" for axis in range(len(buffer.shape)) if axis != fastest}
    strides = tuple(Var(names[a], "i64") if a in names else index(1) for a in range(len(buffer.shape)))
    clauses = tuple(buffer.replace(strides=strides) if c is buffer else c for c in program.clauses)
    last = max(n for n, c in enumerate(clauses) if isinstance(c, (Size, Scalar)) or hasattr(c, "shape"))
    return program.replace(clauses=(*clauses[:last + 1], *[Scalar(n, "i64") for n in names.values()],
                                    *clauses[last + 1:]))


def reconcile(program: Program, options: Options) -> Program:
    """Apply options to the text of an earlier stage. Options that the text has used already must agree with it."""
    level = level_of(program)
    target = program.first(Target)
    said: dict[str, Any] = {
        "opt": program.opt, "binds": tuple((b.name, b.value) for b in program.all(Bind)),
                            "unchecked": program.first(Unchecked) is not None,
        "in_order": program.first(InOrder) is not None,
        "lines": program.first(Lines) is not None, "runtime": target.runtime if target else options.runtime,
        "config": tuple((c.key, c.value) for c in target.config) if target else options.config,
        "strided": tuple(b.name for b in program.buffers.values() if b.strides), "schedule": None,
    }
    wanted = {name: getattr(options, name) for name in options.given if name in said
              and getattr(options, name) != said[name]}
    for name in USED[level]:
        if name in wanted:
            raise UsageError(Diagnostic("E923", f"{program.name}: the ({level} …) text was made with {name} = "
                                                f"{_shown(said[name])}, "
                                        f"the command line says {_shown(wanted[name])}",
                                        hint="start again from the spec, or leave the option out"))
    if "schedule" in wanted:
        program = _with_schedule(program, options)
    if isinstance(program, OpProgram) and program.first(Rewrite) is not None:
        program = _with_rules(program, options)
    fresh = replace(options, **{n: v for n, v in said.items() if n not in wanted and n != "schedule"})
    facts: list[Any] = [Opt(fresh.opt), target if target and not {"runtime", "config"} & wanted.keys()
                        else target_of(fresh)]
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


def runtime_for(programs: Sequence[Program], options: Options) -> Runtime:
    """The runtime that the programs were made for, with the surroundings of this call."""
    target = programs[0].first(Target)
    if target is None:
        return runtime_of(options)
    return runtime_of(replace(options, runtime=target.runtime, config=tuple((c.key, c.value) for c in target.config)))
