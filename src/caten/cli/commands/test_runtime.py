"""`caten test-runtime`: run the acceptance test of a runtime."""
from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ... import attach, cores
from ...conformance import execute, junit, markdown_report, probe, provenance, record, record_comparison, suite
from ...conformance.cases import Case, selected
from ...conformance.verdicts import BAD, Verdict
from ...errors import Diagnostic, NothingMatched, ToolError, error
from ...options import Options, environment
from ...runtime import discover, plugin_checks
from ..atomic_files import STDOUT, write
from ..option_values import read_config
from ..progress import shown
from ..shared_options import CC_TIMEOUT, GroupedCommand, GroupedOption, Seconds

SECONDS = 30.0
TESTED = "What is tested"
REPORT, RECORD, JUNIT = "Reports.md", "reports.json", "junit.xml"
_option = partial(click.option, cls=GroupedOption)
EXAMPLES = """\b
Examples:
  caten test-runtime --runtime clang                     Reports.md, reports.json, junit.xml
  caten test-runtime --runtime ./mine.py -o reports --jobs 4
  caten test-runtime --runtime gcc --filter operator/add --filter 'feature/tail-*/f32/*'
  caten test-runtime --runtime gcc --config OMP=1 --compare old/reports.json
  caten test-runtime --runtime numpy --library --filter library
  caten report merge clang/reports.json gcc/reports.json"""


@click.command("test-runtime", cls=GroupedCommand, epilog=EXAMPLES)
@_option("-r", "--runtime", default="clang", show_default=True, metavar="NAME", group=TESTED,
         help="The name of a runtime, or the path of a runtime file.")
@_option("--config", "config", multiple=True, metavar="K=V,…", group=TESTED, help="Options of the runtime.")
@_option("-O", "opt", type=click.Choice(("0", "1", "2")), default="2", show_default=True, group=TESTED,
         help="The optimisation level.")
@_option("--filter", "patterns", multiple=True, metavar="PATTERN", group=TESTED,
         help="Select cases, which are named kind/row/column/name: by one of these parts, by the first parts of the "
              "name, or by a pattern with * ? [ that matches the whole name. May be repeated.")
@_option("--library", is_flag=True, group=TESTED,
         help="Also test the operators of the library, `caten ops`: kind library.")
@_option("--seed", type=click.IntRange(min=0, max=(1 << 63) - 1), default=0, show_default=True, metavar="N",
         group=TESTED,
         help="The seed of the inputs.")
@_option("--jobs", type=click.IntRange(min=1), default=None, metavar="N", group="How",
         help="Use N processes. The default is the number of processors.")
@_option("--timeout", type=Seconds(), default=SECONDS, show_default=True, metavar="SECONDS", group="How",
         help="The time limit of one call.")
@_option("--no-cache", is_flag=True, group="How", help="Do not use the cache of compiled libraries.")
@_option("-o", "--output", default=".", metavar="DIR", group="Output", help="The folder of the reports.")
@_option("--compare", "old", metavar="FILE", group="Output",
         help="Compare with the reports.json of an earlier run: print regressions, and exit with 1 if there are any.")
@_option("--date", "dated", is_flag=True, group="Output", help="Include the date in the reports.")
def command(runtime: str, config: tuple[str, ...], opt: str, patterns: tuple[str, ...], library: bool, seed: int,
            jobs: int | None, timeout: float,
            no_cache: bool, output: str, old: str | None, dated: bool) -> int:
    """Test a runtime: every operator on every element type, every language feature, the samples, and inputs that must
    be rejected. Writes Reports.md, reports.json and junit.xml. The exit code is 0 if no verdict is FAIL, VACUOUS,
    CRASH, TIMEOUT, UNDECLARED or XPASS."""
    before = record.read(old) if old is not None else None
    settings = tuple({k.upper(): (k, v) for text in config
                      for k, v in read_config(text, lambda: _keys(runtime))}.values())
    options = Options(runtime=runtime, config=settings, opt=int(opt), seed=seed, cc_timeout=CC_TIMEOUT,
                      use_cache=not no_cache, **environment())
    plan = _plan(options, jobs or cores.available(), timeout)
    cases = suite.all_cases(plan.runtime, library)
    chosen = selected(cases, patterns)
    if not chosen:
        raise NothingMatched(Diagnostic("E835", f"no case matches --filter {' '.join(patterns)}",
                                        hint="a case is kind/row/column/name: operator/add/f32/nan"))
    if not Path(output).is_dir():
        raise error("E909", f"cannot write into {output}: there is no such folder",
                    hint=f"mkdir -p {shlex.quote(output)}")
    found = _found(cases, chosen, plan, patterns, library, dated)
    for name, text in ((REPORT, markdown_report.markdown(found)), (RECORD, record.to_json(found)),
                       (JUNIT, junit.junit(found))):
        write(str(Path(output) / name), text)
    ran = frozenset([c.id for c in chosen])
    if before is not None and ran.isdisjoint([r.id for r in before.rows if r.verdict.status != "NOT-RUN"]):
        raise NothingMatched(Diagnostic("E835",
                                        f"{old} has none of the {len(ran)} cases of this run: nothing was compared",
                                        hint="compare with a run of the same cases"))
    worse = record_comparison.regressions(before, found, ran) if before is not None else []
    write(STDOUT, _summary(found, chosen, worse, output))
    if plan.missing is not None:
        raise ToolError(plan.missing)
    bad = any(r.verdict.status in BAD for r in found.rows)
    return 1 if bad or worse else 0


def _keys(name: str) -> tuple[str, ...]:
    return tuple(discover.find(name, environment()["runtime_path"]).config)


def _plan(options: Options, workers: int, seconds: float) -> execute.Plan:
    """The execution plan. Another process checks whether the runtime is usable: a runtime file may crash or hang the
    process that loads it."""
    missing = probe.asked("whether it can be used", partial(_usable, options), options.cc_timeout)["missing"]
    said = Diagnostic(missing[0], missing[1], hint=missing[2]) if missing else None
    return execute.Plan(options, attach.runtime_of(options), workers, seconds, said)


def _usable(options: Options) -> dict[str, Any]:
    """{"missing": [code, message, hint]} if the runtime is unavailable, else {"missing": []}. Errors of the file itself
    are reported elsewhere."""
    try:
        missing = plugin_checks.why_unavailable(attach.runtime_of(options))
    except Exception:
        return {"missing": []}
    return {"missing": [] if missing is None else [missing.code, missing.message, missing.hint]}


def _found(cases: Sequence[Case], chosen: Sequence[Case], plan: execute.Plan, patterns: Sequence[str],
           library: bool, dated: bool) -> record.Record:
    """The record of the run, including the cases that --filter excluded."""
    with shown("testing") as progress:
        verdicts = execute.run(chosen, plan, progress)
    again = _words(plan.options) + (" --library" if library else "")
    typed = " ".join([again, *[f"--filter {shlex.quote(p)}" for p in patterns]])
    rows = [record.Row(c.kind, c.row, c.column, c.name, verdicts.get(c.id, Verdict("NOT-RUN", "left out by --filter")))
            for c in cases]
    return record.Record(provenance.facts(plan, typed, again, dated), tuple(rows), _decomposed(rows, plan.options))


def _decomposed(rows: Sequence[record.Row], options: Options) -> tuple[str, ...]:
    """The tested operators that the runtime's table lacks."""
    native = attach.runtime_of(options).ops
    return tuple(dict.fromkeys([r.row for r in rows if r.kind == "operator" and r.row not in native]))


def _words(options: Options) -> str:
    """The command line that repeats the test, without filters."""
    default = Options()
    variables = (("CC", options.cc or ""), ("CFLAGS", shlex.join(options.cflags)),
                 ("LDFLAGS", shlex.join(options.ldflags)))
    words = ["caten", "test-runtime", "--runtime", options.runtime,
             *[w for k, v in options.config for w in ("--config", f"{k}={v}")],
             *([f"-O{options.opt}"] if options.opt != default.opt else []),
             *(["--seed", str(options.seed)] if options.seed else [])]
    return " ".join([*[f"{name}={shlex.quote(value)}" for name, value in variables if value], shlex.join(words)])


def _summary(found: record.Record, chosen: Sequence[Case], worse: Sequence[str], folder: str) -> str:
    """The printed summary: bad cases, regressions, scores, and the number of excluded cases."""
    bad = [r for r in found.rows if r.verdict.status in BAD]
    lines = [f"{r.verdict.status} {r.id}: {r.verdict.note}" for r in bad[:markdown_report.MOST]]
    lines += [f"… and {len(bad) - markdown_report.MOST} more"] if len(bad) > markdown_report.MOST else []
    lines += [f"worse: {line}" for line in worse]
    left = len(found.rows) - len(chosen)
    lines += [f"{found.runtime}: {line}" for line in markdown_report.score(found).split("\n")]
    lines += [f"{left} of the {len(found.rows)} cases were left out by --filter"] if left else []
    lines += [f"written: {', '.join([str(Path(folder) / name) for name in (REPORT, RECORD, JUNIT)])}"]
    return "".join([f"{line}\n" for line in lines])
