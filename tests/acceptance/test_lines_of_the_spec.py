"""-g: compilers, debuggers and profilers show the lines of the spec, at every level, and nothing else is passed off as one."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, caten

SOFTMAX = ROOT / "samples" / "softmax.toml"


def pairs(text: str) -> list[tuple[str, int, str]]:
    """(file, line, C line) as the compiler counts, for the lines after a directive."""
    found, file, number = [], "", 0
    for line in text.splitlines():
        if directive := re.fullmatch(r'#line (\d+) "(.*)"', line):
            number, file = int(directive[1]), directive[2]
            continue
        if file:
            found.append((file, number, line.strip()))
        number += 1
    return found


@pytest.mark.parametrize("opt", ["-O0", "-O1", "-O2", "-O3"])
def test_each_statement_has_its_line(opt: str, folder: Path) -> None:
    made = caten("render", str(SOFTMAX), "-g", opt)
    assert made.code == 0
    spec = SOFTMAX.read_text().splitlines()
    expected = {r"exp(f|_f32x\d+)\(": "(let ((e (exp", r"\bY\[.*\] = e\w*;|\(Y .*, e\w*\);": "(setf (aref Y i j) e)",
                r"(\*= 1.0f / s|\*= invariant\w*;|\* ct_splat_f32x\d+\(invariant\w*\)\);)": "(mulcf (aref Y i j)", r"for \(int64_t i = ": "(dotimes (i M)"}
    counted = dict.fromkeys(expected, 0)
    for file, number, line in pairs(made.out):
        for pattern, text in expected.items():
            if file == str(SOFTMAX) and re.search(pattern, line):
                assert text in spec[number - 1], (line, number)
                counted[pattern] += 1
    assert all(counted.values()), counted
    for file, number, line in pairs(made.out):
        assert file in (str(SOFTMAX), "<generated>")
        if file == str(SOFTMAX):
            assert number <= len(spec)
            assert "CT_API" not in line


def test_a_compilers_complaint_names_the_spec(folder: Path, tool: Any) -> None:
    tool("gcc")
    text = caten("render", str(SOFTMAX), "-g", "-O0").out
    broken = text.replace("expf(", "undeclared(", 1)
    assert broken != text
    done = subprocess.run(["gcc", "-x", "c", "-fsyntax-only", "-Werror=implicit-function-declaration", "-"], input=broken, capture_output=True, text=True)
    line = 1 + next(n for n, row in enumerate(SOFTMAX.read_text().splitlines()) if "(exp " in row)
    assert re.search(rf"softmax\.toml:{line}:\d+: error: .*undeclared", done.stderr)


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_addresses_lead_back_to_the_spec(opt: str, folder: Path, tool: Any) -> None:
    for name in ("gcc", "objdump"):
        tool(name)
    assert caten(str(SOFTMAX), "-g", opt, "-o", "with.so").code == 0
    assert caten(str(SOFTMAX), opt, "-o", "without.so").code == 0
    shown = {name: subprocess.run(["objdump", "--dwarf=decodedline", name], capture_output=True, text=True, check=True).stdout for name in ("with.so", "without.so")}
    code = [n for n, row in enumerate(SOFTMAX.read_text().splitlines(), 1) if re.match(r"\s*\((dotimes|maxcf|let|setf|incf|mulcf)", row)]
    lines = {int(m[1]) for m in re.finditer(r"^softmax\.toml\s+(\d+)\s", shown["with.so"], re.M)}
    assert len(lines & set(code)) >= 6
    assert "softmax.toml" not in shown["without.so"]
    called = subprocess.run(["objdump", "-dl", "--no-show-raw-insn", "with.so"], capture_output=True, text=True, check=True).stdout
    exp = next(n for n, row in enumerate(SOFTMAX.read_text().splitlines(), 1) if "(exp " in row)
    if opt == "-O0":
        before = called[:re.search(r"call\s.*<expf@plt>", called).start()]       # type: ignore[union-attr]   # it is called
        assert re.findall(r"softmax\.toml:(\d+)", before)[-1] == str(exp)
