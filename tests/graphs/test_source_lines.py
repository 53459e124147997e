"""Which lines of C compute which values."""
from __future__ import annotations

from collections.abc import Sequence

import pytest
from graphs_of_samples import OPTIONS, source_of, values_of

from caten import driver, loading
from caten.attach import runtime_for
from caten.frontend.spec_files import SpecText
from caten.graphs.source_lines import lines_of
from caten.loop.statements import LoopProgram, Repeat
from caten.tensor.values import Nest, TensorProgram

OWN = {                                        # a piece of a line -> its values, wherever it occurs
    "softmax": {"expf(": {"0.v1"}, "ct_max_f32(top": {"0.v0"}, "s += ": {"0.v2"}, "*= invariant": {"0.v3"}, "1.0f / s;": {"0.v2"}},
    "gemm_bias_relu": {" = 0.0f;": {"0.v0", "0.v1"}},
}


@pytest.mark.parametrize("name", OWN)
def test_lines_are_those_of_their_values(name: str) -> None:
    lines, _ = source_of(values_of(name))
    for piece, values in OWN[name].items():
        found = [line for line in lines if piece in line.text and line.values]
        assert found, piece
        for line in found:
            assert set(line.values) <= values, line


@pytest.mark.slice(6)
@pytest.mark.parametrize("name", ["gemm", "softmax", "layernorm", "mlp", "conv2d", "prefix_sum", "histogram", "argmax", "transpose", "causal_gemm"])
def test_every_kernel_has_lines(name: str) -> None:
    programs = values_of(name)
    lines, plain = source_of(programs)
    found = {value for line in lines for value in line.values}
    stored = {f"{n}.{o.value}" for n, p in enumerate(programs) for o in p.outputs}
    assert stored <= found
    assert [line.text for line in lines] == plain.splitlines()
    assert not any(line.values for line in lines if line.text.strip() in ("{", "}", ""))
    assert not any(line.values for line in lines if line.text.startswith(("#", "static", "CT_API")))


def test_lines_with_directives_are_those_without_them() -> None:
    """A kernel with directives is longer, so that the file may have other parts."""
    texts: list[str] = []

    def render(programs: Sequence[LoopProgram]) -> str:
        texts.append(runtime_for(loops, OPTIONS).render(*programs))
        return texts[-1]
    values = values_of("gemm")
    loops = [p for v in values if isinstance(p := driver.advance(v, "loop", OPTIONS), LoopProgram)]
    lines_of(values, loops, render)
    words = [[line.replace("{", " ").replace("}", " ").split() for line in text.splitlines()] for text in texts]
    code = [[w for w in found if w and not w[0].startswith(("#", "/*"))] for found in words]
    assert code[0] == code[1]
    assert [line for line in texts[0].splitlines() if "CT_PARTS" in line] != [line for line in texts[1].splitlines() if "CT_PARTS" in line]


def test_several_programs_are_told_apart() -> None:
    lines, _ = source_of(values_of("axpy", "softmax"))
    assert {value.split(".")[0] for line in lines for value in line.values} == {"0", "1"}
    for line in lines:
        if "expf(" in line.text and line.values:
            assert line.values == ("1.v1",)


def test_a_nest_is_all_of_its_results() -> None:
    (program,) = values_of("mandelbrot")
    (nest,) = [d for d in program.definitions if isinstance(d.value, Nest)]
    lines, _ = source_of([program])
    assert {value for line in lines for value in line.values} >= {f"0.{name}" for name in nest.names}


NETWORK = '''[[composite]]
name = "Layer"
inputs = ["X{float}[N H]", "W{float}[H H]"]
outputs = ["Y{float}[N H]"]
[composite.implementation]
lang = "python"
code = "return np.tanh(X @ W)"
[[composite]]
name = "Net"
inputs = ["X{float}[N H]", "V{float}[H H]", "W{float}[H H]"]
outputs = ["Y{float}[N H]"]
[composite.implementation]
lang = "python"
code = "return Layer(Layer(X, V), W)"
'''


def test_lines_of_a_kernel_that_runs_twice_are_for_both() -> None:
    (op,) = [p for p in loading.load_programs(SpecText("net.toml", NETWORK, "toml"), OPTIONS) if p.name == "Net"]
    program = driver.advance(op, "tensor", OPTIONS)
    assert isinstance(program, TensorProgram)
    assert driver.advance(program, "loop", OPTIONS).first(Repeat) is not None
    lines, _ = source_of([program])
    first, second = ("0.v1", "0.v3")
    found = [line for line in lines if first in line.values]
    assert found
    assert all(second in line.values for line in found)
