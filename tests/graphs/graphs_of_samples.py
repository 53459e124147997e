"""The values, loops and source of specs, for tests of pictures."""
from __future__ import annotations

from pathlib import Path

from caten import driver, loading
from caten.attach import runtime_for
from caten.frontend.spec_files import SpecText
from caten.graphs.source_lines import Line, lines_of
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.tensor.values import TensorProgram

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),))


def values_of(*names: str) -> list[TensorProgram]:
    """The values of samples."""
    found = [p for name in names for p in loading.load_programs(
        SpecText(f"samples/{name}.toml", (SAMPLES / f"{name}.toml").read_text(), "toml"), OPTIONS)]
    made = [driver.advance(p, "tensor", OPTIONS) for p in found]
    return [p for p in made if isinstance(p, TensorProgram)]


def source_of(programs: list[TensorProgram]) -> tuple[list[Line], str]:
    """The source with the values of each line, and as it is rendered."""
    loops = [p for v in programs if isinstance(p := driver.advance(v, "loop", OPTIONS), LoopProgram)]
    runtime = runtime_for(loops, OPTIONS)
    return lines_of(programs, loops, lambda made: runtime.render(*made)), runtime.render(*loops)
