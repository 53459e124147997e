"""Kernels that are equal but for where their arrays begin are one kernel, which runs again on other parts of them."""
from __future__ import annotations

import re

import numpy as np
import pytest
from test_repeated_kernels import lowered

import caten
from caten.core.program import resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.loop import verifier
from caten.loop.statements import Kernel, Local, Repeat
from caten.schedule.primitives.flatten import flatten
from caten.semantics.interpret import run

STEPS = 5


def recurrence(steps: int = STEPS, taken: str = "X[:, {t}]", kind: str = "X{{float}}[B {steps} D]") -> str:
    """h' = tanh(x[:, t] W + h), from h = s on."""
    lines = "\n".join([f"h = np.tanh({taken.format(t=t)} @ W + h)" for t in range(steps)])
    return (f'[composite]\nname = "Net"\ninputs = ["{kind.format(steps=steps)}", "W{{float}}[D K]", "S{{float}}[B K]"]\n'
            f'outputs = ["Y{{float}}[B K]"]\n[implementation]\nlang = "python"\ncode = """\nh = S\n{lines}\nreturn h\n"""\n')


def drawn(batch: int, steps: int, inputs: int, width: int) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(steps)
    shapes = (batch, steps, inputs), (inputs, width), (batch, width)
    return tuple([draw.standard_normal(shape).astype(np.float32) / 2 for shape in shapes])


def expected(x: np.ndarray, w: np.ndarray, h: np.ndarray) -> np.ndarray:
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h)
    return h


@pytest.mark.parametrize("opt", [1, 2])
def test_steps_at_constant_indices_share_their_kernels(opt: int) -> None:
    """As many kernels for 9 steps as for 5."""
    counts = {len(lowered(recurrence(steps), opt).all(Kernel)) for steps in (5, 9)}
    assert len(counts) == 1
    assert counts.pop() <= 3
    program = lowered(recurrence(), opt)
    assert {s.index[1].value for r in program.all(Repeat) for s in r.starts} == {1, 2, 3, 4}
    assert resolve(read(show(program))[0]) is program
    verifier.verify(program)
    x, w, s = drawn(3, STEPS, 4, 6)
    found = {"X": x, "W": w, "S": s, "Y": np.empty((3, 6), np.float32), "B": 3, "D": 4, "K": 6}
    assert run(program, found) == 0
    assert np.allclose(found["Y"], expected(x, w, s), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("taken", "kind"), [
    ("X[:, 4 * {t}:4 * {t} + 4]", "X{{float}}[B 20]"),                          # slices of rows
    ("X[{t}]", "X{{float}}[{steps} B 4]"),
    ("X[1, {t}]", "X{{float}}[2 {steps} B 4]"),                                # what all take is no start
    ("X[:, {steps} - 1 - {t}]".replace("{steps}", str(STEPS)), "X{{float}}[B {steps} 4]"),
    ("X[:, {t}::5]", "X{{float}}[B 20]"),
])
def test_parts_of_arrays(taken: str, kind: str) -> None:
    """Each step has its start, but for that at the beginning."""
    program = lowered(recurrence(taken=taken, kind=kind).replace("[D K]", "[4 K]"), 1)
    starts = [tuple([int(e.value) for e in s.index]) for c in program.all(Kernel) + program.all(Repeat) for s in c.starts if s.array == "X"]
    assert len(set(starts)) == len(starts) == STEPS - 1
    assert all(sum(n != 0 for n in start) == 1 for start in starts)


def test_two_kernels_stay_as_they_are() -> None:
    program = lowered(recurrence(2), 1)
    assert not [c for c in (*program.all(Kernel), *program.all(Repeat)) if c.starts]


def test_kernels_over_the_same_part_keep_their_numbers() -> None:
    """Where nothing differs there is no start, and the index stays a constant."""
    program = lowered(recurrence(taken="X[:, 3]"), 1)
    assert not [c for c in (*program.all(Kernel), *program.all(Repeat)) if c.starts]
    assert re.search(r"\(aref X \w+ 3 \w+\)", show(program))


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize(("runtime", "config", "opt"), [("clang", {}, 2), ("clang", {"OMP": 1}, 2), ("gcc", {}, 1), ("numpy", {}, 1)])
def test_a_recurrence_gives_what_numpy_gives(runtime: str, config: dict[str, int], opt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATEN_STRICT", "1")
    net = caten.compile(recurrence(), runtime=runtime, config=config, opt=opt, verify=True)
    for batch, inputs, width in ((1, 1, 1), (3, 5, 17), (8, 16, 16), (0, 4, 4)):
        arrays = drawn(batch, STEPS, inputs, width)
        assert np.allclose(net(*arrays), expected(*arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_arrays_between_kernels_begin_further_on_too() -> None:
    """In scratch memory, where a start is not aligned."""
    spec = recurrence(taken="Z[:, {t}]").replace("h = S", "h, Z = S, X @ V").replace('"W{float}', '"V{float}[D D]", "W{float}')
    program = lowered(spec, 2)
    assert {c.name for c in program.all(Local)} & {s.array for c in program.all(Repeat) for s in c.starts}
    x, w, s = drawn(3, STEPS, 5, 7)
    v = np.random.default_rng(1).standard_normal((5, 5)).astype(np.float32)
    net = caten.compile(spec, verify=True)
    assert np.allclose(net(x, v, w, s), expected(x @ v, w, s), rtol=1e-4, atol=1e-5)


TEXT = """(loop p (buffer X f32 (N 4) (0 1) in) (buffer Y f32 (N) (0) inout) (buffer Z f32 (N) (0) inout) (size N)
  (kernel k (for i 0 N 1 serial (incf (aref Y i) (aref X i 1)))) (repeat k (Y Z) (from X 0 2)))"""


@pytest.mark.parametrize(("start", "code", "message"), [
    ("(from X 0 3)", "E483", "index 2 is not shown to be inside"),
    ("(from X 1 0)", "E483", "index 1 is not shown to be inside"),
    ("(from X 0 -1)", "E483", "-1 is not shown to be 0 or more"),
    ("(from Z 0 0)", "E480", "'Z' is no array of the kernel 'k'"),
    ("(from X 0 0) (from X 0 1)", "E480", "begins twice"),
    ("(from X 0 0 0)", "E487", "'X' has 2 axes"),
])
def test_starts_are_verified(start: str, code: str, message: str) -> None:
    verifier.verify(resolve(read(TEXT)[0]))
    with pytest.raises(CatenError) as refused:
        verifier.verify(resolve(read(TEXT.replace("(from X 0 2)", start))[0]))
    assert refused.value.diagnostics[0].code == code
    assert message in refused.value.diagnostics[0].message


def test_starts_are_flattened_with_their_arrays() -> None:
    """[0, 2] of rows of four is element 2 of all."""
    made, _ = flatten(resolve(read(TEXT)[0]), "X", 0)
    (again,) = made.all(Repeat)
    assert show(again) == "(repeat k (Y Z) (from X 2))"
    verifier.verify(made)
