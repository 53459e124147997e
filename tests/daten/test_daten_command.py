"""The `daten` command: its answers, exit codes and errors."""
from __future__ import annotations

import io
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from daten_command import daten

import caten
from caten import diagnostic_lines
from caten.compiler import Compilation
from caten.core.numpy_types import numpy_dtype
from caten.core.program import resolve
from caten.core.size_formula import evaluate
from caten.core.text import read, show
from caten.errors import CatenError
from caten.loop.statements import Aref
from daten import cli, gradients, listing, program_file, settings, weights
from daten.lowering import lowered
from daten.models import gpt2

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (ROOT / "samples" / "daten" / "mlp.toml").read_text("utf-8")


def started(*words: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "daten", *words], cwd=cwd, input=stdin, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, timeout=300, check=False)


@pytest.mark.slow
def test_train_run_and_show(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((300, 64)).astype(np.float32)
    np.savez(tmp_path / "data.npz", X=x, Y=(x @ draw.standard_normal((64, 10))).argmax(1))
    (tmp_path / "mlp.toml").write_text(PROGRAM, "utf-8")
    done = daten("train", "mlp.toml", "--data", "data.npz", "--epochs", "4", "-o", "w.safetensors", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    losses = [float(line.split()[3].rstrip(",")) for line in done.stdout.splitlines()]
    assert losses[-1] < losses[0]
    np.save(tmp_path / "x.npy", x[:7])
    done = daten("run", "mlp.toml", "--input", "X=x.npy", "--size", "B=7", "--weights", "w.safetensors", "-o", "out.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npz")["P"].shape == (7, 10)
    done = daten("show", "-", "--size", "B=16", cwd=tmp_path, stdin=PROGRAM)
    assert "P{float32}[16 10] <- blocks.add.add(X{float32}[16 64], W1{float32}[64 128]" in done.stdout
    assert all(f"grad_{name}{{float32}}" in done.stdout for name in ("W1", "b1", "W2", "b2"))
    assert "arrays between them" in done.stdout
    (tmp_path / "steep.toml").write_text(PROGRAM.replace("lr = 2e-3", "lr = 1e30"), "utf-8")
    done = daten("train", "steep.toml", "--data", "data.npz", "--find-nan", cwd=tmp_path)
    assert done.returncode == 1
    assert "daten: error: epoch 1, batch 2: the loss is nan; '" in done.stderr
    assert "makes NaN of inputs without NaN" in done.stderr


@pytest.mark.slow
def test_a_program_becomes_a_library(tmp_path: Path) -> None:
    """Forward and backward in one library, with header, manifest and a program in C that checks both; called from Python, too."""
    (tmp_path / "mlp.toml").write_text(PROGRAM, "utf-8")
    done = daten("compile", "mlp.toml", "--emit=so,example", cwd=tmp_path)
    assert (done.returncode, done.stderr.replace("caten: compiling\n", "")) == (0, "")           # printed where the machine is busy
    assert {p.name for p in tmp_path.iterdir()} == {"mlp.toml", "mlp.so", "mlp.h", "mlp.json", "mlp_main.c"}
    built = subprocess.run(["gcc", "-O1", "mlp_main.c", "./mlp.so", "-Wl,-rpath,$ORIGIN", "-lm", "-o", "mlp"], cwd=tmp_path, check=False)
    assert built.returncode == 0
    assert subprocess.run(["./mlp"], cwd=tmp_path, capture_output=True, text=True, check=False).stdout == "ok\n"
    program = program_file.parsed(PROGRAM)
    draw = np.random.default_rng(1)
    x, y = draw.standard_normal((7, 64), np.float32), draw.integers(0, 10, 7)               # another size than the library was made at
    made = program.forward({"X": x, "Y": y})
    found = gradients(made["L"], list(program.trained.values()))
    weights = {name: p.numpy() for name, p in program.parameters.items()}
    library = caten.load(tmp_path / "mlp.so")
    np.testing.assert_allclose(library.mlp_forward(X=x, **weights), made["P"].numpy(), rtol=2e-5, atol=2e-6)
    results = library.mlp_backward(X=x, Y=y, **weights)
    for got, want in zip(results, [made["L"], *found], strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-5, atol=2e-6)


def test_lowered_programs_are_texts_for_caten(tmp_path: Path) -> None:
    """Names and sizes are those of the program; its stages take them, and its errors keep the exit codes."""
    done = daten("lower", "-", cwd=tmp_path, stdin=PROGRAM)
    assert done.stdout.startswith("(tensor program_forward\n  (outputs P)\n  (buffer X f32 (B 64) (0 1) in)")
    assert "(outputs L grad_W1 grad_b1 grad_W2 grad_b2)" in done.stdout
    done = daten("compile", "--forward", "-", "--emit=c", "-o", "-", cwd=tmp_path, stdin=PROGRAM)
    assert "int32_t ct_program_forward(" in done.stdout
    assert "ct_program_backward" not in done.stdout
    done = daten("compile", "-", "-O7", cwd=tmp_path, stdin=PROGRAM)
    assert (done.returncode, "unknown option '-O7' [E901]" in done.stderr) == (2, True)
    done = daten("show", "-", "--dot", "p.dot", "--html", "p.html", cwd=tmp_path, stdin=PROGRAM)
    assert done.returncode == 0
    assert (tmp_path / "p.dot").read_text().startswith("digraph")
    assert "grad_W2" in (tmp_path / "p.html").read_text()


def test_names_that_loops_have_are_given_another_letter() -> None:
    """An input `i`, and a size `p`, are not the variables of loops."""
    text = PROGRAM.replace('X = "X{float}[B 64]"', 'i = "i{float}[p 64]"').replace("{int64}[B]", "{int64}[p]").replace("layer X", "layer i")
    forward, backward = lowered(program_file.parsed(text), {"i": np.zeros((4, 64), np.float32), "Y": np.zeros(4, np.int64)}, "net", True)
    assert [b.name for b in forward.program.buffers.values()][:2] == ["i_", "W1"]
    assert forward.sizes == backward.sizes == {"p_": 4}
    assert not forward.fixed


@pytest.mark.parametrize(("shape", "extents", "fixed"), [("(B 24)", "B 24", {}), ("(B 6 -1)", "B 6 4", {}), ("-1", "(* 24 B)", {}), ("(4 B 6)", "4 B 6", {}),
                                                         ("(8 -1)", "8 6", {"B": 2}), ("(2 24)", "2 24", {"B": 2}), ("(16 3)", "16 3", {"B": 2})])
def test_a_reshape_to_sizes_keeps_them(shape: str, extents: str, fixed: dict[str, int]) -> None:
    """To numbers, it makes a program for these sizes alone: others would give another shape."""
    program = program_file.parsed(f'[inputs]\nX = "X{{float}}[B 4 6]"\n[main]\ncode = "(set P (exp (reshape X :shape {shape})))"\n')
    X = np.arange(48, dtype=np.float32).reshape(2, 4, 6) / 48
    (made,) = lowered(program, {"X": X}, "net", True)
    assert made.fixed == fixed
    assert f"(buffer P f32 ({extents}) " in show(made.program)
    want = np.exp(X).reshape([2 if e == "B" else int(e) for e in shape.strip("()").split()])
    np.testing.assert_allclose(program.forward({"X": X})["P"].numpy(), want, rtol=1e-6)


NEIGHBOURS = """
[inputs]
points = "points{float}[N 2]"
labels = "labels{int64}[N]"
asked = "asked{float}[M 2]"
[main]
outputs = ["votes", "middle", "near"]
code = '''
(set (near index) (topk (negative (cdist asked points)) :k 3 :axis 1))
(set votes (take labels index))
(set middle (median (cast votes :dtype float32) :axis 1))
'''
"""


def test_sizes_are_one_only_where_they_have_one_name() -> None:
    """N and M have the same number in the arrays that the program is made with, and N is the length of two arrays."""
    given = {"points": np.zeros((32, 2), np.float32), "labels": np.zeros(32, np.int64), "asked": np.zeros((32, 2), np.float32)}
    (made,) = lowered(program_file.parsed(NEIGHBOURS), given, "net", True)
    text = show(made.program)
    assert show(resolve(read(text)[0])) == text
    assert {n.type for n in resolve(read(text)[0]).unique() if isinstance(n, Aref) and n.buffer == "v0"} == {"i64", "u32"}    # of two nests
    for words in ("(buffer points f32 (N 2) (0 1) in)\n  (buffer labels i64 (N) (0) in)\n  (buffer asked f32 (M 2)", "(size N)\n  (size M)\n  (target", "(buffer near f32 (M 3)"):
        assert words in text
    assert made.sizes == {"N": 32, "M": 32}
    assert [r.shape for r in made.arrays] == [(32, 2), (32,), (32, 2)]
    both = program_file.parsed('[inputs]\nx = "x{float}[N]"\ny = "y{float}[M]"\n[main]\ncode = "(set z (+ x y))"\n')
    (made,) = lowered(both, {"x": np.zeros(4, np.float32), "y": np.zeros(4, np.float32)}, "net", True)
    assert made.sizes == {"N": 4}                               # where the program needs them to be equal


def test_arguments_are_in_the_order_of_the_program_and_checks_say_its_names() -> None:
    program = program_file.parsed('[inputs]\nw = "w{float}[2 1 5]"\nx = "x{float}[B 1 T]"\n[main]\ncode = "(set y (conv1d (reshape x :shape (B 1 T)) w :padding 2))'
                                  ' (set z (conv1d x w))"\n')
    (made,) = lowered(program, {"w": np.zeros((2, 1, 5), np.float32), "x": np.zeros((3, 1, 9), np.float32)}, "net", True)
    text = show(made.program)
    assert [b.name for b in made.program.buffers.values()] == ["w", "x", "y", "z"]
    assert "(buffer y f32 (B 2 T) " in text
    assert "conv1d: the array y has the negative extent (+ (- T 5) 1)" in text


@pytest.mark.slow
def test_results_of_an_operator_have_a_name_each(tmp_path: Path) -> None:
    """The library of a program with two sequential loops, which have arrays of one name and other types."""
    (tmp_path / "net.toml").write_text(NEIGHBOURS, "utf-8")
    done = daten("compile", "net.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    draw = np.random.default_rng(0)
    points, labels, asked = draw.standard_normal((40, 2)).astype(np.float32), draw.integers(0, 3, 40), draw.standard_normal((7, 2)).astype(np.float32)
    votes, middle, near = caten.load(str(tmp_path / "net.so"))(points, labels, asked)
    distances = np.sqrt(((asked[:, None] - points) ** 2).sum(-1))
    np.testing.assert_array_equal(votes, labels[distances.argsort(axis=1)[:, :3]])
    np.testing.assert_array_equal(middle, np.median(votes, axis=1))
    np.testing.assert_allclose(near, -np.sort(distances, axis=1)[:, :3], rtol=1e-5)


def test_a_parameter_that_the_loss_does_not_read_is_named() -> None:
    text = PROGRAM.replace("[parameters]", '[parameters]\nU = "U{float grad}[3 4]"')
    with pytest.raises(CatenError, match="the loss does not depend on the parameter 'U'"):
        lowered(program_file.parsed(text), {"X": np.zeros((4, 64), np.float32), "Y": np.zeros(4, np.int64)}, "net", True)


def test_other_shapes_are_refused_in_place() -> None:
    for words, message in (("(reshape X)", "reshape takes one array"), ("(reshape X :shape (7 -1))", "cannot be reshaped to"), ("(reshape X :size 3)", "reshape takes")):
        program = program_file.parsed(f'[inputs]\nX = "X{{float}}[B 4 6]"\n[main]\ncode = "(set P {words})"\n', "net.toml")
        with pytest.raises(CatenError, match=message) as caught:
            program.forward({"X": np.zeros((2, 4, 6), np.float32)})
        place = caught.value.diagnostics[0].place
        assert place is not None
        assert (place.file, place.line, place.column) == ("net.toml [main]", 1, 9)


IN_PLACE = """
[modules]
running = '''
[composite]
name = "Running"
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]
[implementation]
lang = "python"
code = \"\"\"
y = np.exp(x)
for i in range(1, N):
    y[i] = y[i] + 0.5 * np.sin(y[i - 1])
return y
\"\"\"
'''
[inputs]
X = "X{float}[N]"
[main]
code = "(set P (sum (running X)))"
"""


def test_the_listing_says_whose_memory_an_array_takes() -> None:
    """In place, or of one that is not needed any more; both sums are of the arrays between kernels alone."""
    (made,) = lowered(program_file.parsed(IN_PLACE), {"X": np.zeros(1000, np.float32)}, "net", True)
    assert "<- nest(v0{float32}[1000])  ; v1 in place of v0" in "\n".join(listing.listed(made))
    memory = listing.Memory(made.program, made.sizes)
    assert (memory.homes["v0"], memory.homes["v1"]) == ("v0", "v0")
    assert (sum(size for _, size in memory.places.values()), memory.between) == (8000, 4032)
    _, made = lowered(program_file.parsed(PROGRAM), {"X": np.zeros((32, 64), np.float32), "Y": np.zeros(32, np.int64)}, "net", True)
    memory = listing.Memory(made.program, made.sizes)
    assert memory.between < sum(size for _, size in memory.places.values()) < 40 * 32 * 64
    lines = list(listing.listed(made))
    first = {name: n for n, line in enumerate(lines) for name in memory.places if f"{name}{{" in line.split(" <- ")[0]}
    last = {name: n for n, line in enumerate(lines) for name in memory.places if f"{name}{{" in line}
    told = [(a, b) for line in lines for a, b in re.findall(r"(v\d+) in the memory of (v\d+)", line)]
    assert told
    for new, old in told:
        assert last[old] < first[new]
        assert memory.places[new][0] == memory.places[old][0]
    manifest = Compilation([made.program], settings.options()).rendered.manifest
    (formula,) = read((manifest if "scratch_bytes" in manifest else manifest["ops"][0])["scratch_bytes"])
    assert memory.total == evaluate(formula, made.sizes)


@pytest.mark.nightly
@pytest.mark.slow
def test_kernels_are_timed(tmp_path: Path) -> None:
    done = daten("profile", "-", "--size", "B=16", "--trace", "t.json", cwd=tmp_path, stdin=PROGRAM)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["time", "share", "GFLOP/s", "GB/s", "of", "peak", "kernel"]
    kernels = [row for row in rows if " <- " in row]
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert len(events) == len(kernels) >= 8
    assert all(a["ts"] + a["dur"] <= b["ts"] + 0.01 for a, b in itertools.pairwise(events))
    shares = [float(row.split("%")[0].split()[-1]) for row in kernels]
    assert 90 <= sum(shares) <= 110
    assert "kernels, " in rows[-2]
    assert "limits of this machine" in rows[-1]


def test_only_parameters_with_grad_are_trained(tmp_path: Path) -> None:
    program = program_file.parsed(PROGRAM.replace("b1{float grad}", "b1{double}").replace("W2{float grad}", "W2{float}"))
    assert list(program.trained) == ["W1", "b2"]
    assert program.parameters["b1"].dtype == "float64"
    done = daten("train", "-", "--data", "none.npz", cwd=tmp_path, stdin=PROGRAM.replace(" grad}", "}"))
    assert done.returncode == 2                                # of click: there is no such file
    (tmp_path / "none.npz").write_bytes(b"")
    done = daten("train", "-", "--data", "none.npz", cwd=tmp_path, stdin=PROGRAM.replace(" grad}", "}"))
    assert done.returncode == 1
    assert "the program has no parameter to train" in done.stderr


@pytest.mark.slice(6)
@pytest.mark.parametrize(("change", "message"), [
    (("(layer X W1 b1)", "(layr X W1 b1)"), "<stdin> [main]:1:20: error: there is no module 'layr', and the library has no such operator [E678]"),
    (("(set L", "(sat L"), "a statement is (set NAME EXPRESSION)"), (("X W1", "X W7"), "there is no 'W7' here"),
    (("[inputs]", "[input]"), "there is no section [input] in a program"), (('loss = "L"', 'loss = "Q"'), "[main] sets no 'Q'"),
    (("W1{float grad}[64 128]", "W1{float grad}[64 K]"), "the extents of the parameter 'W1' are numbers"),
    (("W2{float grad}[128 10]", "W2{float grad}[127 10]"), "axis 0 of y is 127, axis 1 of x is 128"), (("epochs = 5", "epoch = 5"), "[train] has no 'epoch'"),
    (("{float}[B 64]", "{flaot}[B 64]"), "there is no element type 'flaot'"), (("[main]", "[main"), "<stdin>:26:6: error: this is no TOML: Expected"),
    (('Y = "Y{int64}[B]"', 'Y = "Y{int64}[B"'), 'Y = "Y{int64}[B"\n'), (("outputs =", "output ="), "[main] has no 'output' [E678]"), (("matmul", "matmull"), "hint: did you mean 'matmul'?"),
    (("batch = 128", "batch = 0"), "batch in [train] is an integer from 1 on, not 0"), (("batch = 128", "batch = true"), "batch in [train] is an integer"),
    (("lr = 2e-3", 'lr = "x"'), "lr in [train] is a number above 0, not 'x'"), (("lr = 2e-3", "lr = nan"), "lr in [train] is a number above 0, not nan"),
    (('optimizer = "adamw"', 'optimizer = "adamm"'), "error: there is no optimizer 'adamm'"), (('optimizer = "adamw"', 'optimizer = "adam"\nmomentum = 0.9'), "error: adam has no momentum"),
    (("lr = 2e-3", "lr = 0"), "above 0, not 0"), (("epochs = 5", "seed = -1"), "seed in [train] is an integer from 0 on, not -1"),
    (("epochs = 5", "data = 3"), "data in [train] is a text, not 3"), (('loss = "L"', "loss = 3"), "loss is a name"),
    (('outputs = ["P"]', 'outputs = "P"'), "outputs is a list of names"), (("[train]", "[[train]]"), "'train' is a section"),
    (("(set P (+ (matmul (layer X W1 b1) W2) b2))", "(set P (topk X :k 3))"), "'P' is set to 2 results"),
    (("(set L", "(set (A C) (relu P)) (set L"), "2 names are set to one array, and each name stands for one array"),
    (("(set L", "(set () P) (set L"), "a statement is (set NAME EXPRESSION)"), (("(+ (matmul", "(sub (matmul"), "hint: (- x y) subtracts"),
    (("(set L", "(set 3 P) (set L"), "a statement is (set NAME EXPRESSION)"), (('outputs = ["P"]', 'outputs = ["X"]'), "error: [main] sets no 'X' [E678]"),
    (("(set L", "(set Q (softmax P :axis)) (set L"), "[main]:2:19: error: the attribute 'axis' has no value"),
    (("(set L", "(set Q (sum P :axis :keepdims true)) (set L"), "the attribute 'axis' has no value"),
    (("[parameters]", '[parameters]\nX = "X{float grad}[64 64]"'), "'X' is an input, and cannot be a parameter too")])
def test_what_is_wrong_with_a_program_has_a_place(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    done = daten("run", "-", cwd=tmp_path, stdin=PROGRAM.replace(*change))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("name", "arrays", "message"), [
    ("text", {"X": np.ones((6, 64)), "Y": np.array(["a"] * 6)}, "data.npz: 'Y' has elements of type <U1, and no numbers"),
    ("objects", {"X": np.ones((6, 64)), "Y": np.array([None] * 6)}, "cannot read data.npz: it is no array of numbers"),
    ("number", {"X": np.ones((6, 64)), "Y": 3}, "data.npz: 'Y' is one number, and has no rows"),
    ("rows", {"X": np.ones((6, 64)), "Y": np.zeros(5, np.int64)}, "the arrays differ in their rows: 'X' has 6, 'Y' has 5"),
    ("nothing", {"X": np.ones((0, 64)), "Y": np.zeros(0, np.int64)}, "the arrays have no rows"),
    ("missing", {"X": np.ones((6, 64))}, "data.npz has no array 'Y'"),
    ("floats", {"X": np.ones((6, 64)), "Y": np.zeros(6)}, "data.npz: the input 'Y' has elements of type float64, not int64"),
    ("complex", {"X": np.ones((6, 64), complex), "Y": np.zeros(6, np.int64)}, "data.npz: the input 'X' has elements of type complex128, not float32"),
    ("large", {"X": np.ones((6, 64)), "Y": np.full(6, 2 ** 64 - 1, np.uint64)}, "data.npz: the input 'Y' has elements of type uint64, not int64, and"),
    ("raw", {"X": np.ones((6, 64), "V2"), "Y": np.zeros(6, np.int64)}, "data.npz: the input 'X' has elements of type |V2, which are no numbers"),
    ("shape", {"X": np.ones((6, 3)), "Y": np.zeros(6, np.int64)}, "the input 'X' has the shape [B 64], not [6, 3]")])
def test_data_that_does_not_fit_is_refused(name: str, arrays: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    monkeypatch.chdir(tmp_path)
    assert message in here(["train", "-", "--data", "data.npz"], 1, monkeypatch, capsys)


def test_data_of_other_types_are_converted_to_those_of_the_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """As `run` does: the same numbers give the same curve. A file of NumPy says of bfloat16 only that it has 2 bytes."""
    monkeypatch.chdir(tmp_path)
    x, y = np.random.default_rng(0).integers(0, 9, (4, 64)), np.arange(4)
    long = PROGRAM.replace("128", "4")                                       # fewer steps for the interpreter
    short = long.replace("X{float}", "X{bfloat16}")
    said = []
    for program, kind, labels in ((long, np.float32, np.int64), (long, np.float64, np.uint8),
                                  (short, numpy_dtype("bf16"), np.int64), (short, np.float64, np.int64)):
        np.savez("data.npz", X=x.astype(kind), Y=y.astype(labels))
        with monkeypatch.context() as patch:
            made: list[str] = []
            patch.setattr(cli.click, "echo", lambda text, made=made, **more: made.append(text.rsplit(",", 1)[0]))
            here(["train", "-", "--runtime", "numpy", "--data", "data.npz", "--epochs", "2"], 0, patch, capsys, program)
        said.append(made)
    assert said[0] == said[1]
    assert said[2] == said[3]
    assert [len(lines) for lines in said] == [2] * 4


def test_sizes_are_those_of_the_inputs_that_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Y, which is not given, has as many rows as X; without any, or with --size, it is as was said."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((7, 64), np.float32))
    for words, rows in ((["--input", "X=x.npy"], 7), ([], 32), (["--size", "B=3"], 3), (["--size", "B=7", "--input", "X=x.npy"], 7)):
        here(["run", "-", "--runtime", "numpy", *words, "-o", "out.npz"], 0, monkeypatch, capsys)
        assert np.load("out.npz")["P"].shape == (rows, 10)
    assert "the input 'Y' has the shape [B], not [3]" in here(["run", "-", "--input", "X=x.npy", "--size", "B=3"], 1, monkeypatch, capsys)


def here(words: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stdin: str = PROGRAM) -> str:
    """What a command says, run in this process."""
    monkeypatch.setattr(sys, "argv", ["daten", *words])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    monkeypatch.setattr(diagnostic_lines, "PROGRAM", list(diagnostic_lines.PROGRAM))
    before = settings.options()
    try:
        with pytest.raises(SystemExit) as left:
            cli.main()
    finally:
        monkeypatch.setattr(settings, "_CURRENT", [before])
    assert left.value.code == code, words
    return capsys.readouterr().err


@pytest.mark.parametrize("cut", [0, 1, 100, 4000, -30])
def test_damaged_files_of_arrays_are_named(cut: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "whole.npz", X=np.ones((60, 64)), Y=np.zeros(60, np.int64))
    np.save(tmp_path / "whole.npy", np.ones((32, 64)))
    for suffix, words, stop in (("npz", ["train", "-", "--data", "cut.npz"], cut), ("npy", ["run", "-", "--input", "X=cut.npy"], cut)):
        data = (tmp_path / f"whole.{suffix}").read_bytes()
        (tmp_path / f"cut.{suffix}").write_bytes(data[:stop])
        monkeypatch.chdir(tmp_path)
        told = here(words, 1, monkeypatch, capsys)
        assert f"daten: error: cannot read cut.{suffix}: " in told
    (tmp_path / "cut.npz").write_bytes(bytes([b ^ 1 if 3000 < n < 3010 else b for n, b in enumerate((tmp_path / "whole.npz").read_bytes())]))
    assert "cannot read cut.npz: Bad CRC-32" in here(["train", "-", "--data", "cut.npz"], 1, monkeypatch, capsys)
    assert "is a .npz file, with arrays by name" in here(["run", "-", "--input", "X=whole.npz"], 1, monkeypatch, capsys)
    (tmp_path / "latin.toml").write_bytes(b"# \xe4")
    assert "latin.toml is no text" in here(["run", "latin.toml"], 1, monkeypatch, capsys)


@pytest.mark.parametrize(("loss", "message"), [("P", "the loss 'L' has the shape [6, 10], and is no number"), ("3", "cannot train on the loss 'L': "),
                                               ("(mean X)", "cannot train on the loss 'L': ")])
def test_a_loss_that_cannot_be_trained_is_refused(loss: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", X=np.ones((6, 64)), Y=np.zeros(6, np.int64))
    assert message in here(["train", "-", "--data", "data.npz"], 1, monkeypatch, capsys, PROGRAM.replace("(cross_entropy P Y)", loss))


@pytest.mark.parametrize(("words", "code", "message"), [
    (["-n", "-2"], 2, "-2 is not in the range x>=1"), (["-n", "0"], 2, "0 is not in the range x>=1"), (["--temperature", "-1"], 2, "-1.0 is not in the range x>=0"),
    (["--top-k", "-3"], 2, "-3 is not in the range x>=0"), (["--seed", "-1"], 2, "-1 is not in the range x>=0"),
    (["--temperature", "nan"], 2, "nan is no number"), (["-n", "8"], 1, "3 tokens and 8 new ones do not fit into the context of 8 tokens"),
    (["99"], 1, "a token is a number from 0 to 10"), (["--weights", "other.safetensors"], 1, "other.safetensors has no weights of GPT-2: it has no matrix wte.weight"),
    (["--weights", "half.safetensors"], 1, "half.safetensors has no weights of GPT-2: "), (["--weights", "none.toml"], 2, "does not exist"),
    (["--weights", "layers.safetensors"], 1, "layers.safetensors has no weights of GPT-2: it has no layers")])
def test_what_cannot_be_generated_is_refused(words: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(gpt2.SIZES, "124M", gpt2.Size(1, 1, 8, 11, 8))
    values = {name: t.numpy() for name, t in gpt2.GPT2().named_tensors()}
    weights.save({"w": np.ones(3)}, "other.safetensors")
    weights.save({name: v for name, v in values.items() if name != "ln_f.weight"}, "half.safetensors")
    weights.save({name: v for name, v in values.items() if not name.startswith("h.")}, "layers.safetensors")
    assert message in here(["generate", "1", "2", "3", *words], code, monkeypatch, capsys)


def test_ctrl_c_says_how_many_tokens_there_are(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """While it generates; before and in other commands, that it was interrupted."""
    def two(*_: object) -> Iterator[int]:
        yield from (5, 6)
        raise KeyboardInterrupt

    def none(*_: object) -> None:
        raise KeyboardInterrupt
    monkeypatch.setitem(gpt2.SIZES, "124M", gpt2.Size(1, 1, 8, 11, 8))
    monkeypatch.setattr(gpt2.GPT2, "generate", two)
    assert here(["generate", "1", "-n", "4"], 130, monkeypatch, capsys) == "daten: interrupted after 2 of 4 tokens\n"
    monkeypatch.setattr(gpt2.GPT2, "__init__", none)
    assert here(["generate", "1"], 130, monkeypatch, capsys).strip() == "daten: interrupted"
    monkeypatch.setattr(cli, "_read", none)
    assert here(["run", "-"], 130, monkeypatch, capsys).strip() == "daten: interrupted"


def test_a_fault_of_ours_is_reported_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where click takes it for Ctrl-C, as an EOFError."""
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path))
    for kind in (RuntimeError, EOFError):
        def fails(*_: object, kind: type[Exception] = kind) -> None:
            raise kind("of ours")
        monkeypatch.setattr(cli, "_read", fails)
        told = here(["run", "-"], 4, monkeypatch, capsys)
        assert f"daten: error: internal error: {kind.__name__}: of ours [E940]" in told
        assert "traceback.txt" in told


@pytest.mark.parametrize(("end", "code", "said"), [
    ("| true; exit ${PIPESTATUS[0]}", 0, ""), ("| head -1 > one; exit ${PIPESTATUS[0]}", 0, ""), (">&-", 1, "daten: error: cannot write stdout: Bad file descriptor\n"),
    ("> /dev/full", 1, "daten: error: cannot write stdout: No space left on device\n"), (">&- 2>&- <&-", 1, "")])
def test_a_closed_pipe_is_no_error_and_a_closed_stdout_is_one(end: str, code: int, said: str, tmp_path: Path) -> None:
    """A reader may have seen enough; where nothing can be written, the output is lost."""
    (tmp_path / "mlp.toml").write_text(PROGRAM, "utf-8")
    done = subprocess.run(["bash", "-c", f"'{sys.executable}' -m daten lower mlp.toml {end}"], cwd=tmp_path, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (code, said)


def test_the_command_line(tmp_path: Path) -> None:
    for words, code, message in ((["runn"], 2, "No such command 'runn'"), (["show", "none.toml"], 1, "cannot read none.toml"),
                                 (["run", "-", "--size", "Q=3"], 1, "no input has the size 'Q'"), (["run", "-", "--input", "Q=x.npy"], 1, "cannot read x.npy"),
                                 (["run", "-", "--size", "B=99999999999999999999"], 1, "there is not enough memory"), (["run", "-", "--size", "B=²"], 2, "B is a number"),
                                 (["train", "-"], 1, "there is nothing to train on"), (["generate", "--model", "9B", "1"], 1, "there is no model '9B'"),
                                 (["--help"], 0, ""), (["--version"], 0, "")):
        done = (started if "-" not in words else daten)(*words, cwd=tmp_path, stdin=PROGRAM)
        assert done.returncode == code, words
        assert message in done.stderr
        assert "Traceback" not in done.stderr


COUNTED = """[inputs]
I = "I{int16}[M]"
X = "X{float}[M]"
[main]
outputs = ["Y"]
code = "(set Y (add I X))"
"""


@pytest.mark.parametrize(("name", "given", "message"), [
    ("I", np.array([0.5, 1.7]), "the input 'I' has elements of type float64, not int16"), ("I", [1j, 2], "the input 'I' has elements of type complex128, not int16"),
    ("I", np.array([1, 2 ** 40]), "the input 'I' has elements of type int64, not int16, and 1099511627776 is out of its range"),
    ("I", np.array([40000], np.uint16), "40000 is out of its range"), ("X", [1j, 2], "the input 'X' has elements of type complex128, not float32"),
    ("I", np.array([1, 2]), ""), ("I", np.array([True, False]), ""), ("X", np.array([1, 2]), ""), ("X", np.array([1.0, 2.0]), ""), ("I", [], "")])
def test_inputs_are_not_cut_to_another_type(name: str, given: Any, message: str) -> None:
    program = program_file.parsed(COUNTED)
    fitting = {"I": np.zeros(len(given), np.int16), "X": np.zeros(len(given), np.float32)}
    if message:
        with pytest.raises(CatenError, match=message):
            program.forward(fitting | {name: given})
    else:
        assert np.array_equal(program.forward(fitting | {name: given})["Y"].numpy(), np.asarray(given))
