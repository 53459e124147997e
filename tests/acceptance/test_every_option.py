"""Each option of every command does what its help says: without it and with it, a product, a stream or the exit code differs."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import Result, caten

from caten.cli.app import COMMANDS, cli
from spec_texts import AXPY

TESTED_AXPY = AXPY + """
[test]
code = "lambda a, X, Y: a * X + Y"
[[test.case]]
name = "small"
sizes = { N = 5 }
tags = ["quick"]
[[test.case]]
name = "larger"
sizes = { N = 50 }
"""
TAKE = """[composite]
name = "Take"
inputs = ["X{float}[N]", "I{int64}[M]", "Y{float}[M]"]
outputs = ["Y"]
[implementation]
code = "(dotimes (i M) (setf (aref Y i) (aref X (aref I i))))"
"""
CLI_TESTS = Path(__file__).resolve().parents[1] / "cli"
LISP = "(composite Twice ((A{float}[N]) -> (B{float}[N])) (dotimes (i N) (setf (aref B i) (* 2.0 (aref A i)))))"
TWO = """include = ["axpy_of_lib.toml"]
[composite]
name = "Two"
inputs = ["a{float}[]", "X{float}[N]", "Y{float}[N]"]
outputs = ["Y"]
[implementation]
code = "(call Axpy a X Y)"
"""


@dataclass(frozen=True)
class Row:
    """An option at work: the words of a command line around it, what they do with it and without."""

    words: str
    option: str
    where: str                  # out err code files: what differs
    says: str = ""              # a part of the stream with it that is not in the one without it; or the name of a file
    code: int = 0               # with it


SUM = "(composite Sum ((X{float}[M N]) -> (Y{float}[M])) (dotimes (i M) (setf (aref Y i) 0) (dotimes (j N) (incf (aref Y i) (aref X i j)))))"
RULE = """[composite]
name = "Map"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
code = "(dotimes (i N) (setf (aref y i) (+ (exp (aref x i)) (exp (- (aref x i))))))"
[rewrite]
name = "cosh"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
lang = "python"
pattern = "return np.exp(x) + np.exp(-x)"
replacement = "return 2 * np.cosh(x)"
"""
ANY = """[composite]
name = "Any"
inputs = ["X{T}[~]"]
outputs = ["Y{T}[~]"]
[implementation]
lang = "python"
code = "Y = X * 2"
"""
FAIL = "-o fail.c"
ROWS: dict[str, Row] = {
    # build
    "-i": Row("parse", "-i axpy.toml", "out", "(op Axpy"),
    "-x": Row("parse - <lisp", "-x toml", "err", "error", 1),
    "-I": Row("parse two.toml", "-I lib", "out", "(op Two"),
    "--only": Row("parse axpy.toml take.toml", "--only Take", "out"),
    "-D": Row("render axpy.toml", "-DN=96", "out", "96"),
    "--instance": Row("parse any.toml", '--instance X=float64[M,N]', "out", "(buffer X f64 (M N)"),
    "-O": Row("render axpy.toml", "-O0", "out"),
    "-s": Row("schedule axpy.toml", "-s s.lisp", "out", "(split i 4"),
    "-fstrided": Row("parse take.toml", "-fstrided=X", "out", "(buffer X f32 (N) (0) in 1)"),
    "-fbounds-check": Row("render take.toml -fno-bounds-check", "-fbounds-check", "out", "(aref X (aref I i))"),
    "-fno-bounds-check": Row("render take.toml", "-fno-bounds-check", "out"),
    "-freassociate": Row("ir sum.lisp -fno-reassociate", "-freassociate", "out", "reduce"),
    "-fno-reassociate": Row("ir sum.lisp", "-fno-reassociate", "out", "(in-order)"),
    "-frewrite": Row("ir rule.toml -fno-rewrite", "-frewrite", "out", "cosh"),
    "-fno-rewrite": Row("ir rule.toml", "-fno-rewrite", "out", "(exp"),
    "-g": Row("render axpy.toml", "-g", "out", "#line"),
    "--verify": Row("schedule axpy.toml --debug 1", "--verify", "verified"),
    "-r": Row("parse axpy.toml", "-r numpy", "out", '(target "numpy"'),
    "--config": Row("render axpy.toml", "--config OMP=1", "out", "omp parallel"),
    "-march": Row("parse axpy.toml", "-march=x86_64_v2", "out", "x86_64_v2"),
    "-fopenmp": Row("render axpy.toml", "-fopenmp", "out", "omp parallel"),
    "-fno-openmp": Row("render axpy.toml -fopenmp", "-fno-openmp", "out"),
    "-l": Row("axpy.toml -O0 -###", "-lfoo", "err", "-lfoo"),
    "-L": Row("axpy.toml -O0 -###", "-L/bar", "err", "-L/bar"),
    "--cc-timeout": Row("axpy.toml -O0 --no-cache", "--cc-timeout 0.0001", "err", "E622", 3),
    "--no-cache": Row("axpy.toml -O0 -v", "--no-cache", "err", "compiled with"),
    "-o": Row("parse axpy.toml", "-o there.op", "files", "there.op"),
    "-d": Row("parse axpy.toml", "--debug 4", "debug"),
    "-v": Row("axpy.toml -O0", "-v", "err", "gcc"),
    "-W": Row("axpy.toml -O0 -o w.so <badcache", "-Werror", "err", "error: the cache folder", 1),
    "-w": Row("axpy.toml -O0 -o w.so <badcache", "-w", "err"),
    "--diagnostics-format": Row("parse wrong.toml", "--diagnostics-format json", "err", '"code": "', 1),
    "-E": Row("axpy.toml -o x.c", "-E", "files"),
    "-S": Row("axpy.toml -O0", "-S", "files", "axpy.s"),
    "-c": Row("axpy.toml -O0", "-c", "files", "axpy.o"),
    "--emit": Row("axpy.toml -O0", "--emit=ir,schedule", "files", "axpy.ir.lisp"),
    "-MD": Row("axpy.toml -o x.c", "-MD", "files", "x.d"),
    "-MF": Row("axpy.toml -o x.c", "-MF dep.mk", "files", "dep.mk"),
    "-MT": Row("axpy.toml -o x.c -MD", "-MT goal", "depfile", "goal: "),
    "-MP": Row("axpy.toml -o x.c -MD", "-MP", "depfile", "\n\n"),
    "--save-temps": Row("axpy.toml -O0", "--save-temps", "files", "axpy.schedule.lisp"),
    "-###": Row("axpy.toml -O0", "-###", "err", "-shared"),
    "-t": Row("axpy.toml -O0", "--test N=9", "out", "N=9"),
    "--print": Row("axpy.toml -O0", "--print=dtypes", "out", "f32"),
    "--seed": Row("axpy.toml -O0 --test N=9", "--seed 5", "seed"),
    "--fused": Row("ir axpy.toml", "--fused", "out", "(group k0 "),
    "--explain": Row("schedule axpy.toml", "--explain", "out", "the plan of the nest of 'i'"),
    "--steps": Row("schedule axpy.toml", "--steps", "out", "(vectorize ii))"),
    "--tag": Row("test axpy.toml -O0", "--tag quick", "out", "1 of 1 passed"),
    "--grad": Row("test axpy.toml -O0", "--grad", "out", "compared with central differences"),
    "--junit": Row("test axpy.toml -O0", "--junit j.xml", "files", "j.xml"),
    "--json": Row("test axpy.toml -O0", "--json j.json", "files", "j.json"),
    "-j": Row("test axpy.toml -O0", "-j 0", "err", "0 is not in the range", code=2),       # in parallel: test_test_command.py
    "--list": Row("explain E301", "--list", "out", "E909"),
}


ELSEWHERE = {"bench", "tune", "test-runtime", "fmt"}


@pytest.fixture
def work(folder: Path) -> Path:
    (folder / "lib").mkdir()
    files = {"axpy.toml": TESTED_AXPY, "take.toml": TAKE, "two.toml": TWO, "lib/axpy_of_lib.toml": TESTED_AXPY, "sum.lisp": SUM, "s.lisp": "(schedule (split i 4 cut))",
             "rule.toml": RULE, "any.toml": ANY, "wrong.toml": TESTED_AXPY.replace("aref X i", "aref Q i"), "lisp.txt": LISP}
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def run(work: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Result, dict[str, bytes]]:
    """What a command line does, and the files that it leaves, in a fresh copy of the folder."""
    before = {p.name for p in work.iterdir()}
    stdin = LISP if "<lisp" in words else ""
    with monkeypatch.context() as patch:
        if "<badcache" in words:
            (work / "badcache").touch()
            before.add("badcache")
            patch.setenv("CATEN_CACHE_DIR", str(work / "badcache"))
        result = caten(*[w for w in words if not w.startswith("<")], stdin=stdin)
    made = {p.name: p.read_bytes() for p in work.iterdir() if p.name not in before}
    for name in made:
        (work / name).unlink()
    return result, made


@pytest.mark.parametrize("name", ROWS)
def test_an_option_does_what_it_says(name: str, work: Path, tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("gcc")
    row = ROWS[name]
    seen: list[str] = []
    if row.where == "verified":
        from caten import passes
        for level, verify in list(passes.VERIFIERS.items()):
            monkeypatch.setitem(passes.VERIFIERS, level, lambda p, verify=verify: (seen.append(p.name), verify(p)))
    if row.where == "seed":
        import caten.testing.data as data
        drawn = data.draw
        monkeypatch.setattr(data, "draw", lambda *given: (seen.append(str(value := drawn(*given))), value)[1])
    if name == "--no-cache":
        run(work, row.words.split(), monkeypatch)                            # now it is in the cache
    without, files_without = run(work, row.words.split(), monkeypatch)
    before, seen[:] = list(seen), []
    with_it, files_with = run(work, [*row.words.split(), *row.option.split()], monkeypatch)
    assert with_it.code == row.code, with_it.err
    assert "Traceback" not in with_it.err
    match row.where:
        case "out" | "err":
            one, other = getattr(without, row.where), getattr(with_it, row.where)
            assert one != other
            assert row.says in other
            assert not row.says or row.says not in one
        case "files":
            assert files_without != files_with
            assert not row.says or row.says in files_with
        case "depfile":
            assert row.says in files_with["x.d"].decode()
            assert row.says not in files_without["x.d"].decode()
        case "debug":
            assert (without.err, with_it.out) == ("", without.out)
            levels = [run(work, ["render", "axpy.toml", "--debug", str(n)], monkeypatch)[0].err for n in range(5)]
            assert [("ms" in e, "int32_t ct_axpy" in e, "(tensor Axpy" in e, "; after add_checks" in e) for e in levels] == [
                (False, False, False, False), (True, False, False, False), (True, True, False, False), (True, True, True, levels[3].count("; after add_checks") > 0),
                (True, True, True, True)]
            assert levels[4].count("; after ") > levels[3].count("; after ") > 0
        case "verified":
            assert len(seen) > len(before) > 0
        case "seed":
            assert before != seen
            assert before
    again, files_again = run(work, [*row.words.split(), *row.option.split()], monkeypatch)
    if row.where not in ("seed", "verified", "debug") and not {"--test", "--junit", "--json"} & set(row.option.split()):   # these hold times
        assert (again.code, again.out, files_again) == (with_it.code, with_it.out, files_with)


def test_the_table_has_every_option_of_every_command() -> None:
    """What measures is never the same twice, what tests a runtime takes long, what formats writes its input: options of these commands alone are tried in tests of theirs."""
    context = click.Context(cli)
    listed: dict[str, set[str]] = {}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        for param in command.params:
            if isinstance(param, click.Option):
                for spelled in (param.opts[0], *param.secondary_opts):
                    listed.setdefault(spelled, set()).add(name)
    timed = {option for option, names in listed.items() if names <= ELSEWHERE and option.replace("--", "--no-") not in listed}
    tried = "".join([file.read_text() for name in ELSEWHERE for file in CLI_TESTS.glob(f"test_*{name.replace('-', '_')}*.py")])
    assert {option for option, names in listed.items() if not names <= ELSEWHERE} == set(ROWS)
    assert [option for option in sorted(timed) if f'"{option}"' not in tried and f'"{option} ' not in tried and f"{option}=" not in tried] == []


def test_what_has_no_effect_on_a_command_is_no_option_of_it(work: Path) -> None:
    for stage in ("parse", "ir", "schedule", "render", "check"):
        for words in (["--no-cache"], ["--emit=c"], ["--seed", "1"], ["-MD"]):
            assert caten(stage, "axpy.toml", *words).code == 2, (stage, words)


def test_O3_is_what_its_help_says(work: Path) -> None:
    text = " ".join(caten("build", "--help").out.split())
    assert "-O3 with the schedule from `caten tune`" in text
    o2, o3 = [caten("render", "axpy.toml", level).out for level in ("-O2", "-O3")]
    assert o2 == o3
    levels = {level: caten("render", "axpy.toml", level).out for level in ("-O0", "-O2")}
    assert len(set(levels.values())) == 2


def test_json_diagnostics_are_json(work: Path) -> None:
    (found,) = json.loads(caten("parse", "wrong.toml", "--diagnostics-format", "json").err)
    assert (found["file"], found["severity"], found["line"]) == ("wrong.toml", "error", 7)
