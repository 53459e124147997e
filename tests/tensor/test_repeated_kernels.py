"""Kernels that are equal but for their arrays are one kernel, which runs again on other arrays."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import caten
from caten import driver
from caten.attach import attach
from caten.core.program import resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.spec import load
from caten.frontend.spec_files import SpecText
from caten.loop import verifier
from caten.loop.simplify import simplify_program
from caten.loop.statements import LoopProgram, Repeat
from caten.options import Options
from caten.render.scratch_memory import layout
from caten.schedule.primitives.flatten import flatten
from caten.semantics.interpret import run

LAYER = '''[[composite]]
name = "Layer"
inputs = ["X{float}[N I]", "W{float}[I O]", "b{float}[O]"]
outputs = ["Y{float}[N O]"]
[composite.implementation]
lang = "python"
code = "return np.tanh(X @ W + b)"
'''


def network(layers: int, widths: str = "H", last: str = "return X") -> str:
    """Layers of equal widths, one after the other."""
    inputs = ", ".join([f'"W{n}{{float}}[H {widths}]", "b{n}{{float}}[{widths}]"' for n in range(layers)])
    calls = "\n".join([f"X = Layer(X, W{n}, b{n})" for n in range(layers)])
    return LAYER + (f'[[composite]]\nname = "Net"\ninputs = ["X{{float}}[N H]", {inputs}]\noutputs = ["Y{{float}}[N H]"]\n'
                    f'[composite.implementation]\nlang = "python"\ncode = """\n{calls}\n{last}\n"""\n')


def lowered(spec: str, opt: int = 1, name: str = "Net", **options: Any) -> LoopProgram:
    settings = Options(runtime="clang", opt=opt, **options)
    (op,) = [p for p in load(SpecText("net.toml", spec, "toml"), settings) if p.name == name]
    program = driver.advance(attach(op, settings), "loop", settings)
    assert isinstance(program, LoopProgram)
    return program


def drawn(layers: int, n: int, h: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(layers)
    found = {"X": rng.standard_normal((n, h)).astype(np.float32)}
    for k in range(layers):
        found |= {f"W{k}": rng.standard_normal((h, h)).astype(np.float32) / 4,
                  f"b{k}": rng.standard_normal(h).astype(np.float32)}
    return found


def expected(arrays: dict[str, np.ndarray], layers: int) -> np.ndarray:
    x = arrays["X"]
    for k in range(layers):
        x = np.tanh(x @ arrays[f"W{k}"] + arrays[f"b{k}"])
    return x


@pytest.mark.slow
@pytest.mark.parametrize("opt", [1, 2])
def test_equal_layers_are_one_kernel(opt: int) -> None:
    program = lowered(network(6), opt)
    assert (len(program.kernels), len(program.all(Repeat))) == (1, 5)
    assert resolve(read(show(program))[0]) is program
    arrays = drawn(6, 5, 9)
    found = {**arrays, "Y": np.empty((5, 9), np.float32), "N": 5, "H": 9}
    assert run(program, found) == 0
    assert np.allclose(found["Y"], expected(arrays, 6), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("spec", "kernels", "repeats"), [
    (network(1), 1, 0),                                                          # nothing is equal
    (network(3, last="return X - X.mean(-1, keepdims=True)"), 2, 2),
    (network(2), 1, 1),
    (network(4, last="return X * 2"), 2, 2),
])
def test_what_differs_is_a_kernel_of_its_own(spec: str, kernels: int, repeats: int) -> None:
    program = lowered(spec)
    assert (len(program.kernels), len(program.all(Repeat))) == (kernels, repeats)


def test_layers_over_arrays_of_other_orders_are_kernels_of_their_own() -> None:
    """The loops are the same, but not the addresses."""
    program = lowered(network(3).replace('"W1{float}[H H]"', '"W1{float}[H H]<1 0>"'))
    assert [dict(r.arrays).get("W0") for r in program.all(Repeat)] == ["W2"]
    assert len(program.kernels) == 2


@pytest.mark.parametrize("options", [{"opt": 0}, {"schedule": "(schedule)"}])
def test_a_nest_as_written_and_a_schedule_that_is_given_see_all_loops(options: dict[str, Any]) -> None:
    program = lowered(network(3), **options)
    assert (len(program.kernels), len(program.all(Repeat))) == (1, 0)


def test_nests_beside_repeated_kernels_are_planned() -> None:
    program = lowered('[composite]\nname = "Net"\ninputs = ["C{float}[N]", "A{float}[M M]"]\noutputs = ["V{float}[M M]", "Y{float}[N]", "Z{float}[N]"]\n'
                      '[implementation]\nlang = "python"\ncode = "return A.T, C, C"', 2, verify=True)
    assert "(repeat net_2 (Y Z) (C Y))" in show(program)
    assert re.search(r"\(vref Y (8|16) ", show(program))


@pytest.mark.slow
def test_layers_of_a_single_row_are_one_kernel_too() -> None:
    """What is a number for each layer, such as the mean of its only row, is memory that the kernels share."""
    net = network(4).replace('"return np.tanh(X @ W + b)"', '"return np.tanh((X - X.mean()) @ W + b)"').replace('"X{float}[N H]"', '"X{float}[1 H]"')
    net = net.replace('outputs = ["Y{float}[N H]"]', 'outputs = ["Y{float}[1 H]"]').replace('"X{float}[N I]"', '"X{float}[1 I]"').replace('"Y{float}[N O]"', '"Y{float}[1 O]"')
    program = lowered(net)
    assert len(program.all(Repeat)) >= 3
    arrays = drawn(4, 1, 9)
    found = {**arrays, "Y": np.empty((1, 9), np.float32), "H": 9}
    assert run(program, found) == 0
    x = arrays["X"]
    for k in range(4):
        x = np.tanh((x - x.mean()) @ arrays[f"W{k}"] + arrays[f"b{k}"])
    assert np.allclose(found["Y"], x, rtol=1e-4, atol=1e-6)
    assert np.allclose(caten.compile(net, only=["Net"])(*arrays.values()), x, rtol=1e-4, atol=1e-6)


def test_the_memory_between_layers_is_used_again() -> None:
    assert layout(lowered(network(4))).shared is layout(lowered(network(9))).shared


@pytest.mark.slow
@pytest.mark.slice(6)
@pytest.mark.parametrize("layers", [2, 5])
@pytest.mark.parametrize(("runtime", "config"), [("clang", {}), ("clang", {"OMP": 1}), ("gcc", {}), ("numpy", {})])
def test_a_network_gives_what_numpy_gives(runtime: str, config: dict[str, int], layers: int) -> None:
    net = caten.compile(network(layers), runtime=runtime, config=config, only=["Net"])
    for n, h in ((1, 1), (3, 17), (40, 64), (0, 4)):
        arrays = drawn(layers, n, h)
        assert np.allclose(net(*arrays.values()), expected(arrays, layers), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("text", "code", "message"), [
    ("(repeat other (X Z))", "E480", "there is no kernel 'other' before this"),
    ("(repeat k (Q Z))", "E480", "the kernel 'k' uses no array 'Q'"),
    ("(repeat k (X W))", "E482", "'W' is no array like 'X'"),
    ("(repeat k (Y X))", "E488", "'X' is only read"),
    ("(repeat k (X Y))", "E484", "the kernel writes 'Y', and uses it as another array, too"),
])
def test_repeats_are_verified(text: str, code: str, message: str) -> None:
    program = resolve(read(f"""(loop p (buffer X f32 (N) (0) in) (buffer W f32 (N N) (0 1) in) (buffer Y f32 (N) (0) inout)
      (buffer Z f32 (N) (0) inout) (size N)
      (kernel k (for i 0 N 1 serial (setf (aref Y i) (* 2.0 (aref X i))))) {text})""")[0])
    with pytest.raises(CatenError) as refused:
        verifier.verify(program)
    assert refused.value.diagnostics[0].code == code
    assert message in refused.value.diagnostics[0].message
    verifier.verify(resolve(read(show(program).replace(text, "(repeat k (X Z))"))[0]))


def test_an_array_that_simplifying_makes_needless_is_none_of_the_repeat() -> None:
    """An index into an axis of extent 1 is 0, whatever the array of indices says."""
    program = resolve(read("""(loop p (buffer X f32 (N) (0) in) (buffer I i64 (N) (0) in) (buffer J i64 (N) (0) in) (buffer Y f32 (N) (0) inout)
      (buffer Z f32 (N) (0) inout) (size N)
      (kernel k (for i 0 N 1 serial (setf (aref Y i) (aref X (* 0 (aref I i)))))) (repeat k (I J) (Y Z)))""")[0])
    made = simplify_program(program)
    assert [again.arrays for again in made.all(Repeat)] == [(("Y", "Z"),)]
    verifier.verify(made)


def test_arrays_of_repeated_kernels_are_flattened_together() -> None:
    """The one of the kernel, those in its place, and through another repeat those in theirs; no others."""
    program = resolve(read("""(loop p (buffer X f32 (N 4) (0 1) in) (buffer V f32 (N 4) (0 1) in) (buffer U f32 (N 4) (0 1) in) (buffer Y f32 (N) (0) inout)
      (buffer Z f32 (N) (0) inout) (size N)
      (kernel k (for i 0 N 1 serial (incf (aref Y i) (aref X i 1)))) (repeat k (X V) (Y Z))
      (kernel l (for j 0 N 1 serial (incf (aref Z j) (aref U j 2)))) (repeat l (U V)))""")[0])
    for array in ("X", "V", "U"):
        made, _ = flatten(program, array, 0)
        verifier.verify(made)
        assert [len(made.buffers[name].axes) for name in ("X", "V", "U")] == [1, 1, 1]
    alone, _ = flatten(program.without(Repeat), "X", 0)
    assert [len(alone.buffers[name].axes) for name in ("X", "V", "U")] == [1, 2, 2]


@pytest.mark.slow
def test_repeated_convolutions_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their filters, which packing flattens, are other arrays in the layers behind."""
    steps = "\n".join([f"X = relu(conv2d(X, W{n}, padding=[1, 1]))" for n in range(3)])
    spec = (f'[composite]\nname = "Net"\ninputs = ["X{{float}}[N 16 H W]", {", ".join(f"""{chr(34)}W{n}{{float}}[16 16 3 3]{chr(34)}""" for n in range(3))}]\n'
            f'outputs = ["Y{{float}}[N 16 H W]"]\n[implementation]\nlang = "python"\ncode = """\n{steps}\nreturn X\n"""\n')
    monkeypatch.setenv("CATEN_STRICT", "1")
    net = caten.compile(spec, verify=True)
    draw = np.random.default_rng(0)
    x, *weights = [draw.standard_normal(shape).astype(np.float32) for shape in ((2, 16, 9, 11), *[(16, 16, 3, 3)] * 3)]
    plain = caten.compile(spec, opt=0)
    np.testing.assert_allclose(net(x, *weights), plain(x, *weights), rtol=1e-3, atol=1e-2)
