"""The stage commands: each prints its level, takes any earlier one, and they pipe."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spec_texts import MAP

STAGES = ("parse", "ir", "schedule", "render")


@pytest.mark.parametrize(("stage", "head"), [("parse", "(op Gemm"), ("ir", "(tensor Gemm"), ("schedule", "(loop Gemm")])
def test_each_stage_prints_its_level(caten: Any, stage: str, head: str) -> None:
    result = caten(stage, "gemm.toml")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(head)


def test_they_pipe_from_any_stage_to_any_later_one(caten: Any) -> None:
    direct = {stage: caten(stage, "axpy.toml", "-march=x86_64_v3").out for stage in STAGES}
    for n, first in enumerate(STAGES[:3]):
        for later in STAGES[n + 1:]:
            piped = caten(later, "-", stdin=direct[first])
            assert (piped.code, piped.err) == (0, "")
            assert piped.out == direct[later], f"{first} | {later}"


def test_kernels_of_fusion_pipe(caten: Any) -> None:
    fused = caten("ir", "gemm.toml", "-march=x86-64-v2", "--fused").out
    assert "(group k0 (outer (i M) (j N)) (form contraction)" in fused
    (kernel,) = [line for line in fused.splitlines() if "(group" in line]
    assert kernel in caten("ir", "-", stdin=fused).out
    assert caten("ir", "-", "--fused", stdin=fused).out == caten("ir", "-", stdin=fused).out
    assert caten("schedule", "-", stdin=fused).out == caten("schedule", "gemm.toml", "-march=x86-64-v2").out


def test_several_specs_are_several_programs(caten: Any) -> None:
    out = caten("parse", "gemm.toml", "axpy.toml").out
    assert out.index("(op Gemm") < out.index("(op Axpy")
    assert caten("ir", "-", stdin=out).out == caten("ir", "gemm.toml", "axpy.toml").out
    assert "(op Gemm" not in caten("parse", "gemm.toml", "axpy.toml", "--only", "Axpy").out


def test_o_names_the_output(caten: Any, folder: Path) -> None:
    assert caten("parse", "gemm.toml", "-o", "gemm.op").out == ""
    assert (folder / "gemm.op").read_text() == caten("parse", "gemm.toml", "-o", "-").out
    assert caten("ir", "gemm.op").out.startswith("(tensor Gemm")


def test_a_program_on_stdin_or_as_an_argument(caten: Any) -> None:
    text = "(composite Twice ((A{float}[N]) -> (B{float}[N])) (dotimes (i N) (setf (aref B i) (* 2.0 (aref A i)))))"
    as_argument = caten("parse", text)
    assert as_argument.code == 0, as_argument.err
    assert "(op Twice" in as_argument.out
    assert "(op Twice" in caten("parse", "-x", "lisp", "-", stdin=text).out
    assert "(op Gemm" in caten("parse", "-x", "toml", "-", stdin=Path("gemm.toml").read_text()).out


def test_an_empty_stdin_is_said_to_be_empty(caten: Any) -> None:
    result = caten("ir", "-", stdin="")
    assert (result.code, "stdin is empty" in result.err, "did the command before" in result.err) == (1, True, True)


@pytest.mark.parametrize(("options", "shows"), [
    (["-O0"], "(opt 0)"), (["-DM=100"], "(bind M 100)"), (["-fno-bounds-check"], "(unchecked)"), (["-fno-reassociate"], "(in-order)"), (["-g"], "(lines)"),
    (["-march=x86_64_v2"], "x86_64_v2"), (["-fopenmp"], '(config OMP "1")'), (["--config", "OMP=1"], '(config OMP "1")'),
    (["-r", "gcc"], "(target \"gcc\""),
    (["-fstrided=A"], "A_stride0"),
])
def test_parse_takes_every_option(caten: Any, options: list[str], shows: str) -> None:
    assert shows in caten("parse", "gemm.toml", *options).out
    assert shows not in caten("parse", "gemm.toml").out


def test_a_later_option_applies_or_is_a_contradiction(caten: Any) -> None:
    op = caten("parse", "axpy.toml").out
    assert caten("render", "-", "-O0", stdin=op).out == caten("render", "axpy.toml", "-O0").out
    loop = caten("schedule", "axpy.toml", "-O2").out
    refused = caten("render", "-", "-O0", stdin=loop)
    assert refused.code == 2
    assert "E923" in refused.err
    assert caten("ir", "-", stdin=loop).code == 2


def test_g_gives_line_directives(caten: Any) -> None:
    assert '#line 12 "gemm.toml"' in caten("render", "gemm.toml", "-g", "-O0").out
    assert "#line" not in caten("render", "gemm.toml", "-O0").out


def test_a_step_that_is_refused_has_its_place_in_the_schedule_file(caten: Any, folder: Path) -> None:
    (folder / "s.lisp").write_text("(schedule (split p 8)\n  (parallel po))")
    for arguments in (["schedule", "gemm.toml"], ["gemm.toml"]):
        result = caten(*arguments, "-s", "s.lisp")
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith("s.lisp:2:3: error: parallel po: the loop over po is a reduction")
        assert "\n    2 |   (parallel po))\n      |   ^\n" in result.err


def test_a_schedule_is_replayed(caten: Any, folder: Path) -> None:
    (folder / "s.lisp").write_text("(schedule (reorder p j))")
    result = caten("schedule", "axpy.toml", "-s", "s.lisp")
    assert result.code == 1
    assert "there is no loop 'p'" in result.err
    (folder / "s.lisp").write_text("(schedule (split i 4 cut))")
    assert "(split i 4 cut)" in caten("schedule", "axpy.toml", "-s", "s.lisp").out


def test_what_was_printed_is_replayed_as_it_is(caten: Any, folder: Path) -> None:
    printed = caten("schedule", "gemm.toml", "-march=x86-64-v2").out
    assert "(stage" in printed
    (folder / "s.lisp").write_text(printed)
    assert caten("render", "gemm.toml", "-march=x86-64-v2", "-s", "s.lisp").out == caten("render", "gemm.toml", "-march=x86-64-v2").out


def test_explain_says_what_was_tried_and_why_it_was_not_taken(caten: Any, nightly: bool) -> None:
    plain, told = caten("schedule", "gemm.toml", "-march=x86-64-v3"), caten("schedule", "gemm.toml", "-march=x86-64-v3", "--explain")
    lines = told.out.removeprefix(plain.out).splitlines()
    assert told.out.startswith(plain.out)
    assert all(line.startswith("; ") for line in lines)
    assert lines[0] == "; kernel k0, contraction, outer loops i (M), j (N): v0 (C), v1 (C)"
    assert lines.index("; the plan of the nest of 'i':") == 4
    assert ";     taken: the plan 'few columns'" in lines
    assert ";       (unpacked-gemm (heights 2) (widths 4 2) (lanes 8) (lanes-along sum) (row-widths 4 2) (transpose-right))" in lines
    fewest = "(or (<= N 1) (and (<= N 3) (<= 8 K)))"
    assert any(line.startswith(f";       for calls with (and (< 0 K) (and (< 0 M) (or {fewest} ") and
               line.endswith(" there is a copy of 'i': 'ic'") for line in lines)
    assert any(re.match(r";       not taken: \(precompute (A_tile\w*)\), because precompute \1: ", line) for line in lines)
    assert caten("render", "-", stdin=told.out).out == caten("render", "-", stdin=plain.out).out
    short = ("schedule", "gemm.toml" if nightly else "axpy.toml", "-march=x86-64-v3", "--explain")
    assert caten(*short, "--verify").out == caten(*short).out


def test_explain_where_nothing_was_planned(caten: Any, folder: Path) -> None:
    (folder / "s.lisp").write_text("(schedule (split i 4))")
    for words in (["-s", "s.lisp"], ["-O1"]):
        assert caten("schedule", "axpy.toml", *words, "--explain").out.splitlines()[-1].startswith("; nothing was planned: ")


def test_debug_goes_to_stderr(caten: Any) -> None:
    assert "ms" in caten("render", "axpy.toml", "--debug", "1").err
    quiet, loud = caten("render", "axpy.toml"), caten("render", "axpy.toml", "--debug", "4")
    assert loud.out == quiet.out
    assert "(tensor Axpy" in loud.err
    assert quiet.out in loud.err


def test_verify_changes_nothing(caten: Any) -> None:
    assert caten("schedule", "axpy.toml", "--verify").out == caten("schedule", "axpy.toml").out


def test_check_reports_and_writes_nothing(caten: Any, folder: Path) -> None:
    before = sorted(p.name for p in folder.iterdir())
    result = caten("check", "gemm.toml", "axpy.toml", "-O1")
    assert result.code == 0
    assert "Gemm: ok" in result.out
    assert "0 inside the loops" in result.out
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.slice(2)
@pytest.mark.parametrize(("old", "new", "code"), [
    ("A @ B + C", "A @ B + D", "E803"), ("A @ B + C", "np.gemm(A, B)", "E804"), ("A @ B + C", "A @", "E801"), ("lambda A,", "lambda Q,", "E807"),
])
def test_check_reads_the_test_code(caten: Any, folder: Path, old: str, new: str, code: str) -> None:
    text = (folder / "gemm.toml").read_text()
    assert old in text
    (folder / "wrong.toml").write_text(text.replace(old, new))
    assert f"[{code}]" in caten("check", "wrong.toml", "-O1").err


def test_the_errors_of_every_file_are_reported(caten: Any, folder: Path) -> None:
    for name, wrong in (("one.toml", "qq"), ("two.toml", "zz")):
        (folder / name).write_text((folder / "gemm.toml").read_text().replace("(aref B p j)", f"(aref B {wrong} j)"))
    result = caten("check", "one.toml", "gemm.toml", "two.toml", "-O1")
    assert result.code == 1
    assert "one.toml:12:" in result.err
    assert "two.toml:12:" in result.err
    line = next(row for row in result.err.splitlines() if "(aref B qq j)" in row)
    caret = result.err.splitlines()[result.err.splitlines().index(line) + 1]
    assert line[caret.index("^"):].startswith("qq")
    shown = json.loads(caten("check", "one.toml", "two.toml", "-O1", "--diagnostics-format=json").err)
    assert [(d["file"], d["line"]) for d in shown] == [("one.toml", 12), ("two.toml", 12)]
    assert json.loads(caten("check", "gemm.toml", "-O1", "--diagnostics-format=json").err) == []


@pytest.mark.parametrize(("arguments", "code", "words"), [
    ([], 2, ["E902", "no input files"]), (["gem.toml"], 2, ["E902", "did you mean 'gemm.toml'?"]),
    (["pasre", "gemm.toml"], 2, ["E901", "did you mean 'parse'?"]),
    (["link", "gemm.toml"], 2, ["E901", "no command and no file 'link'"]),
    (["-O1", "parse", "gemm.toml"], 2, ["E902", "the command comes first: caten parse"]),
    (["parse", "."], 2, ["E902", "folder"]), (["parse", "-", "-"], 2, ["E902", "only once"]), (["parse", "a\0b"], 2, ["E902"]),
    (["parse", "gemm.toml", "--only", "gem"], 5, ["E920", "did you mean 'Gemm'?"]), (["parse", "gemm.toml", "-DQ=1"], 2, ["E921"]),
    (["parse", "gemm.toml", "-DM=-1"], 2, ["E905"]), (["parse", "gemm.toml", "-fstrided=Q"], 2, ["E922"]),
    (["parse", "gemm.toml", "-Wshadow"], 2, ["E911"]), (["parse", "gemm.toml", "--config", "OMQ=1"], 2, ["E600", "did you mean 'OMP'?"]),
    (["parse", "gemm.toml", "-r", "clan"], 2, ["E602", "did you mean 'clang'?"]), (["parse", "gemm.toml", "-r", "./no.py"], 2, ["E602"]),
    (["parse", "gemm.toml", "-o", "no/x"], 1, ["E909"]), (["parse", "gemm.toml", "-s", "none"], 2, ["E902"]),
    (["parse", "gemm.toml", "-S"], 2, ["E901"]),
])
def test_refusals(caten: Any, arguments: list[str], code: int, words: list[str]) -> None:
    result = caten(*arguments)
    assert result.code == code, result.err
    assert result.out == ""
    for word in words:
        assert word in result.err
    assert "Traceback" not in result.err


RUNNING = {"test": [], "bench": ["--no-limits", "--rounds", "5", "--batch", "0.001", "--sizes", "N=9"], "tune": ["--budget", "0.001", "--sizes", "N=9"],
           "": ["--test", "N=9", "-o", "axpy.so"]}


@pytest.mark.slice(2)
@pytest.mark.parametrize("command", RUNNING)
@pytest.mark.parametrize("stage", ["parse", "ir", "schedule"])
def test_what_compares_with_the_operator_as_written_takes_the_text_of_parse_alone(caten: Any, stage: str, command: str) -> None:
    text = caten(stage, "axpy.toml").out
    result = caten(*[command] * bool(command), "-", *RUNNING[command], stdin=text)
    if stage == "parse":
        assert (result.code, "Axpy" in result.out) == (0, True), result.err
    else:
        assert (result.code, result.out) == (2, "")
        assert "[E934]" in result.err
        assert "the text of caten parse" in result.err


@pytest.mark.parametrize("stage", ["parse", "ir", "schedule"])
def test_running_takes_the_text_of_any_stage(caten: Any, folder: Path, stage: str) -> None:
    np.savez(folder / "in.npz", X=np.float32([1, 2]), Y=np.float32([3, 4]))
    result = caten("run", "-", "a=2", "X=in.npz:X", "Y=in.npz:Y", "-o", "out.npz", stdin=caten(stage, "axpy.toml").out)
    assert result.code == 0, result.err
    assert np.load(folder / "out.npz")["Y"].tolist() == [5, 8]


def test_a_test_that_compares_nothing_fails(caten: Any) -> None:
    result = caten("axpy.toml", "--test", "N=0", "-o", "axpy.so")
    assert (result.code, "VACUOUS: nothing was compared: Y has no element" in result.out) == (1, True)
    assert "[E837]" in result.err
    assert "give sizes" in result.err
    line, column = map(int, result.err.split("axpy.toml:")[1].split(":")[:2])
    assert Path("axpy.toml").read_text().split("\n")[line - 1][column - 1:].startswith("(aref Y i)")       # where nothing was stored


DASHES = """
[[composite]]
name = "My-op"
inputs = ["q-0{float}[n-rows M]", "al-pha{float}[]"]
outputs = ["y-y{float}[n-rows M]"]
[composite.implementation]
code = "(dotimes (i n-rows) (dotimes (j M) (setf (aref y-y i j) (* al-pha (aref q-0 i j)))))"
[[composite]]
name = "Other"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[composite.implementation]
code = "(dotimes (i N) (setf (aref y i) (aref x i)))"
"""


@pytest.mark.parametrize("dash", ["-", "_"])
def test_a_name_may_be_spelled_as_in_the_spec(dash: str, caten: Any, folder: Path) -> None:
    """And options about one composite do not ask the others, which --only leaves out."""
    (folder / "dashes.toml").write_text(DASHES)
    words = [w.replace("+", dash) for w in ("--only", "My+op", "-fstrided=q+0", "-Dn+rows=3")]
    result = caten("parse", "dashes.toml", *words)
    assert result.code == 0, result.err
    assert "(bind n_rows 3)" in result.out
    assert "q_0_stride0" in result.out
    assert "Other" not in result.out


WRONG = MAP + 'replacement = "return np.exp(x) * 1.001"\n'


@pytest.mark.slice(2)
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["ir", "schedule", "render", "check"])
def test_rules_are_tried_before_they_are_applied(building: Any, folder: Path, stage: str) -> None:
    (folder / "wrong.toml").write_text(WRONG)
    result = building(stage, "wrong.toml")
    assert (result.code, result.out) == (1, "")
    assert "wrong.toml:9:9: error: the rule 'other' computes something else than its pattern" in result.err
    piped = building(stage, "-", stdin=building("parse", "wrong.toml").out)
    assert (piped.code, piped.out) == (1, "")
    assert "E670" in piped.err
    assert building(stage, "wrong.toml", "-fno-rewrite").code == 0


def test_the_spec_is_printed_with_rules_that_nothing_applies(caten: Any, folder: Path) -> None:
    """And no compiler is started."""
    (folder / "wrong.toml").write_text(WRONG)
    result = caten("parse", "wrong.toml")
    assert (result.code, result.err) == (0, "")
    assert "(rewrite" in result.out


@pytest.mark.slow
def test_a_rule_that_cannot_be_linked_here_is_applied_unless_a_library_is_made(building: Any, folder: Path) -> None:
    (folder / "far.toml").write_text(MAP + 'library = "far"\ncall = "(far_exp N x y)"\n')
    result = building("ir", "far.toml", "-lfar")
    assert (result.code, result.err) == (0, "")
    assert "far_exp" in result.out
    built = building("far.toml", "-lfar")
    assert built.code == 1
    assert "the rule 'other' cannot be compiled and run" in built.err
    assert not list(folder.glob("*.so"))
