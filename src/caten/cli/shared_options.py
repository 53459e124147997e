"""The options that commands share, and the `Request` made from them."""
from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from ..errors import Diagnostic, UsageError
from ..frontend.generic_signature import read_instance
from ..frozen import frozen
from ..options import Options, environment
from ..testing.sizes_and_scalars import read_settings
from .diagnostics import FORMATS, Reporter
from .option_values import read_binds, read_config
from .output_kinds import KINDS, Emit, read_emit
from .warning_flags import ON_REQUEST, WARNINGS, read_policy

PRINTS = ("runtimes", "ops", "dtypes", "config", "cache-dir", "cc", "cpu", "target", "version")
LANGUAGES = ("toml", "lisp")
CC_TIMEOUT = 120.0
MAX_SCHEDULE_BYTES = 1 << 24
# The headings of --help, in order; headings of a single command come before them.
ORDER = INPUT, CODE, MACHINE, OUTPUT, REPORT, OTHER = (
    "Input", "Code generation", "Machine and runtime", "Output", "Reporting", "Other options")


@frozen
class Dependencies:
    """The depfile of -MD -MF -MT -MP: its file (None: named after the product), targets (empty: the products), and
    phony rules."""

    file: str | None = None
    targets: tuple[str, ...] = ()
    phony: bool = False


@frozen
class Request:
    """One parsed command line: the options of the compilation, and its inputs and outputs."""

    inputs: tuple[str, ...]
    options: Options
    reporter: Reporter
    language: str | None = None
    output: str | None = None
    emits: tuple[Emit, ...] = ()
    test: tuple[tuple[str, int | float], ...] | None = None
    depfile: Dependencies | None = None
    verbose: bool = False
    dry_run: bool = False
    save_temps: bool = False
    prints: tuple[str, ...] = ()

    def warn(self, warning: Diagnostic) -> None:
        """Show a warning now."""
        self.reporter.show([warning])


class Seconds(click.FloatRange):
    """A time in seconds, above 0 and up to one day."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=86400.0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if seconds != seconds:
            self.fail(f"{value} is not a time in seconds", param, ctx)
        return seconds


class GroupedOption(click.Option):
    """An option that `--help` lists under a heading."""

    def __init__(self, *args: Any, group: str = OTHER, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.group = group

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Completions by the kind of value."""
        from .completion import config, files, runtimes  # imported here: only completion needs them
        if self.name in ("runtime", "config"):
            return (runtimes if self.name == "runtime" else config)(ctx, self, incomplete)
        if self.metavar in ("FILE", "DIR", "KIND[=PATH],…"):
            return files(ctx, self, incomplete)
        return super().shell_complete(ctx, incomplete)


class Files(click.Argument):
    """File arguments."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """File names."""
        from .completion import files
        return list(files(ctx, self, incomplete))


class GroupedCommand(click.Command):
    """A command whose `--help` lists the options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            # the usage line shows the arguments
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                name, text = record
                groups.setdefault(getattr(param, "group", OTHER), []).append((name.replace(" =", "="), text))
        for title, records in sorted(groups.items(),
                                     key=lambda group: ORDER.index(group[0]) if group[0] in ORDER else -1):
            with formatter.section(title):
                formatter.write_dl(records)


def _option(group: str, *names: str, **attributes: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=GroupedOption, group=group, **attributes)


def _flag(group: str, *names: str, help: str) -> Callable[[Any], Any]:
    return _option(group, *names, is_flag=True, help=help)


SHARED: tuple[Callable[[Any], Any], ...] = (
    click.argument("files", nargs=-1, metavar="FILE…", cls=Files),
    _option(INPUT, "-i", "--input", "inputs", multiple=True, metavar="FILE",
            help="An input spec, the same as FILE without -i. '-' is stdin."),
    _option(INPUT, "-x", "language", type=click.Choice(LANGUAGES),
            help="The input language. Without it the text decides: it is lisp if it starts with a parenthesis."),
    _option(INPUT, "-I", "include_dirs", multiple=True, metavar="DIR",
            help="Also search DIR for included and called specs."),
    _option(INPUT, "--only", multiple=True, metavar="NAME",
            help="Select the operators with this name. `test` also accepts names of test cases, and selects all "
                 "instances of an operator."),
    _option(INPUT, "-D", "binds", multiple=True, metavar="M=100",
            help="Fix a size at compile time. Calls with another size fail. May be repeated."),
    _option(INPUT, "--instance", "instances", multiple=True, metavar="A=float32[M,N]",
            help="Compile a generic spec for these types, ranks and attributes (axis=0). Repeat the option for more "
                 "instances. In a spec with several operators, write `NAME: A=…`."),
    _option(CODE, "-O", "opt", type=click.Choice(("0", "1", "2", "3")), default="2", show_default=True,
            help="-O0 loops as written, -O1 simplified, -O2 scheduled for the machine, "
                 "-O3 with the schedule from `caten tune`."),
    _option(CODE, "-s", "--schedule", "schedule_file", metavar="FILE",
            help="Apply the schedule in FILE, (schedule STEP…), instead of the compiler's own."),
    _option(CODE, "-fstrided", "strided", multiple=True, metavar="=NAME",
            help="Pass strides for array NAME: one for each axis but the fastest-varying one."),
    _option(CODE, "-fbounds-check/-fno-bounds-check", "bounds_check", default=True,
            help="Check at run time the accesses that are not proven to be in bounds."),
    _option(CODE, "-frewrite/-fno-rewrite", "rewrite", default=True,
            help="Apply the rules of [rewrite] in specs, and those of the runtime."),
    _option(CODE, "-freassociate/-fno-reassociate", "reassociate", default=True,
            help="Allow reordering of floating-point sums and products."),
    _flag(CODE, "-g", "lines", help="Emit debug information with the line numbers of the spec."),
    _flag(CODE, "--verify", help="Verify the program after every pass and every schedule step."),
    _option(MACHINE, "-r", "--runtime", default="clang", show_default=True, metavar="NAME",
            help="The target: the name of a runtime, or the path of a runtime file."),
    _option(MACHINE, "--config", "config", multiple=True, metavar="K=V,…",
            help="Options of the runtime, such as OMP=1,MARCH=native. --print=config lists them."),
    _option(MACHINE, "-march", "march", metavar="=NAME", help="The same as --config MARCH=NAME."),
    _option(MACHINE, "-fopenmp/-fno-openmp", "openmp", default=None, help="The same as --config OMP=1."),
    _option(MACHINE, "-l", "libraries", multiple=True, metavar="NAME", help="Also link library NAME."),
    _option(MACHINE, "-L", "library_dirs", multiple=True, metavar="DIR", help="Also search DIR for libraries."),
    _option(OUTPUT, "-o", "--output", metavar="FILE",
            help="The output file; its suffix selects the kind. '-' is stdout, for text."),
    _option(REPORT, "-d", "--debug", type=click.IntRange(0, 4), default=0, show_default=True,
            help="Print on stderr: 1 timings, 2 also the source, 3 also every stage, 4 also every pass."),
    _option(REPORT, "-W", "warnings", multiple=True, metavar="NAME",
            help="-WNAME and -Wall enable warnings, -Wno-NAME disables one, and -Werror and -Werror=NAME turn them "
                 f"into errors. Names: {' '.join(WARNINGS)}."),
    _flag(REPORT, "-w", "no_warnings", help="Suppress all warnings."),
    _option(REPORT, "--diagnostics-format", "diagnostics_format", type=click.Choice(FORMATS), default="text",
            show_default=True,
            help="The format of diagnostics on stderr."),
)

TOOLS: tuple[Callable[[Any], Any], ...] = (
    _option(MACHINE, "--cc-timeout", type=Seconds(), default=CC_TIMEOUT, show_default=True, metavar="SECONDS",
            help="The time limit for one run of the host compiler."),
    _flag(MACHINE, "--no-cache", help="Do not use the cache of compiled libraries."),
    _flag(REPORT, "-v", "verbose", help="Print the compiler commands on stderr."),
)

RUNS: tuple[Callable[[Any], Any], ...] = (
    _option(REPORT, "--seed", type=click.IntRange(min=0, max=(1 << 63) - 1), default=0, show_default=True, metavar="N",
            help="The seed for random test inputs."),
)

PRODUCT: tuple[Callable[[Any], Any], ...] = (
    _flag(OUTPUT, "-E", "emit_spec", help="Stop after validation and print the expanded spec (to stdout without -o)."),
    _flag(OUTPUT, "-S", "emit_asm", help="Stop after compilation and write assembly."),
    _flag(OUTPUT, "-c", "emit_obj",
            help="Stop before linking and write an object file. With several of -E, -S, -c the earliest stage wins, "
                 "as in gcc."),
    _option(OUTPUT, "--emit", "emit", multiple=True, metavar="KIND[=PATH],…",
            help=f"Write these kinds: {' '.join(KINDS)}. May be combined with -E, -S or -c."),
    _flag(OUTPUT, "-MD", "depfile", help="Write the dependencies of the output as a Makefile rule."),
    _option(OUTPUT, "-MF", "depfile_name", metavar="FILE", help="Write that rule to FILE (implies -MD)."),
    _option(OUTPUT, "-MT", "depfile_targets", multiple=True, metavar="TARGET",
            help="Set the target of that rule. The default is the outputs."),
    _flag(OUTPUT, "-MP", "depfile_phony",
          help="Add a phony rule for each dependency but the first, so that a deleted file does not stop make."),
    _flag(OUTPUT, "--save-temps", help="Keep intermediate files: spec, ir, schedule, C, assembly. Also -save-temps."),
    _flag(OUTPUT, "-###", "dry_run", help="Print the commands without running them."),
    _option(REPORT, "-t", "--test", "test", metavar="M=100,A=2.0",
            help="Run the kernel at these sizes, check it against the reference, and time it."),
    _option(REPORT, "--print", "prints", multiple=True, type=click.Choice(PRINTS),
            help="Print this fact about the installation and exit. -dumpmachine is --print=target, "
                 "-dumpversion is --print=version."),
)


def compiles(*, products: bool = False, runs: bool = False, tools: bool = False) -> Callable[[Callable[..., Any]],
                                                                                             Callable[..., Any]]:
    """Decorate a command with the shared options; it gets one `Request` and its own options. `products`: options that
    select outputs; `runs`: of test runs; `tools`: of the host compiler."""
    tools |= products or runs
    shared = (*SHARED, *(TOOLS if tools else ()), *(PRODUCT if products else ()), *(RUNS if products or runs else ()))

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(**values: Any) -> Any:
            own = {name: values.pop(name) for name in list(values) if name not in names}
            return command(request_from(values, click.get_current_context().find_object(Reporter) or Reporter()), **own)
        before = len(getattr(command, "__click_params__", []))
        decorated: Callable[..., Any] = wrapped
        for option in reversed(shared):
            decorated = option(decorated)
        params: list[click.Parameter] = vars(decorated)["__click_params__"]      # where click keeps them
        names = {param.name for param in params[before:]}
        return decorated
    return decorate


def request_from(given: dict[str, Any], reporter: Reporter) -> Request:
    """The Request for option values from click. This is the only function that reads the environment."""
    reporter.policy = read_policy(given["warnings"], given["no_warnings"])
    link = [*[f"-L{d}" for d in given.get("library_dirs", ())], *[f"-l{name}" for name in given.get("libraries", ())]]
    options = Options(
        runtime=given["runtime"], config=_config(given), opt=int(given["opt"]), binds=read_binds(given["binds"]),
        strided=_names("-fstrided", given["strided"]), unchecked=not given["bounds_check"],
        in_order=not given["reassociate"], no_rewrite=not given["rewrite"],
        lines=given["lines"], include_dirs=tuple(given["include_dirs"]), only=tuple(given["only"]),
        instances=tuple([read_instance(text) for text in given["instances"]]),
        schedule=_schedule(given["schedule_file"]),
        verify=given["verify"], asked=ON_REQUEST - reporter.policy.silenced,
        seed=given.get("seed", 0), debug=given["debug"], cc_timeout=given.get("cc_timeout", CC_TIMEOUT),
        use_cache=not given.get("no_cache", False),
        schedule_file=given["schedule_file"] or "<schedule>", given=_explicit(), **environment(link))
    # as in gcc: the earliest stage, whatever the order
    emits = [Emit(kind) for kind in ("spec", "asm", "obj") if given.get(f"emit_{kind}")][:1]
    emits += [emit for text in given.get("emit", ()) for emit in read_emit(text)]
    wants_depfile = given.get("depfile") or given.get("depfile_name") is not None
    if (given.get("depfile_targets") or given.get("depfile_phony")) and not wants_depfile:
        raise UsageError(Diagnostic("E900", "-MT and -MP change the dependency file, but none is written",
                                    hint="add -MD, or -MF FILE"))
    return Request(
        inputs=(*given["inputs"], *given["files"]), options=options, reporter=reporter, language=given["language"],
        output=given["output"],
        emits=tuple(emits),
        test=None if given.get("test") is None else read_settings(given["test"], "--test"),
        depfile=Dependencies(given["depfile_name"], tuple(given["depfile_targets"]), given["depfile_phony"])
        if wants_depfile else None,
        verbose=given.get("verbose", False), dry_run=given.get("dry_run", False),
        save_temps=given.get("save_temps", False),
        prints=tuple(given.get("prints", ())))


# Command-line parameter -> the field of Options that it sets.
_FIELDS = {"opt": "opt", "binds": "binds", "bounds_check": "unchecked", "reassociate": "in_order", "lines": "lines",
           "runtime": "runtime", "config": "config", "march": "config",
           "openmp": "config", "strided": "strided", "schedule_file": "schedule"}


def _explicit() -> frozenset[str]:
    """The fields of Options that the command line sets explicitly."""
    context = click.get_current_context()
    return frozenset([field for name, field in _FIELDS.items()
                      if context.get_parameter_source(name) is ParameterSource.COMMANDLINE])


def _names(option: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The names in comma-separated lists."""
    names = [name.strip() for text in texts for name in text.split(",")]
    if "" in names:
        raise UsageError(Diagnostic("E903", f"{option} lacks a name", hint=f"write {option}=A"))
    return tuple(names)


def _config(given: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The runtime's options. --config overrides -march and -fopenmp; for one key the last value counts."""
    pairs = [("MARCH", given["march"])] if given["march"] is not None else []
    if given["openmp"] is not None:
        pairs.append(("OMP", "1" if given["openmp"] else "0"))
    for text in given["config"]:
        pairs += read_config(text, lambda: _keys(given["runtime"]))
    return tuple({key.upper(): (key, value) for key, value in pairs}.values())


def _keys(runtime: str) -> tuple[str, ...]:
    """The option keys of a runtime. Needed only for texts without '=', so a cached build loads no runtime."""
    from ..runtime import discover
    return tuple(discover.find(runtime, environment()["runtime_path"]).config)


def _schedule(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as stream:
            data = stream.read(MAX_SCHEDULE_BYTES + 1)
        if len(data) <= MAX_SCHEDULE_BYTES:
            return data.decode("utf-8")
        reason = f"it is larger than {MAX_SCHEDULE_BYTES >> 20} MiB"
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except ValueError as problem:
        reason = "it is not UTF-8 text" if isinstance(problem, UnicodeDecodeError) else str(problem)
    raise UsageError(Diagnostic("E902", f"cannot read the schedule {path}: {reason}"))
