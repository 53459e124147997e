"""Drawn nests at -O2 beside -O0: every one is a spec whose arrays fit, and what is slower is counted."""
from __future__ import annotations

import math

from benchmarks import plain

from caten import loading
from caten.frontend.spec_files import SpecText
from caten.options import Options


def test_every_drawn_nest_is_a_spec_with_arrays_of_some_size() -> None:
    nests = plain.drawn(3, 140)
    assert {n.family for n in nests} == {"map", "repeated operand", "sums of rows", "sums of columns", "softmax", "window", "pixels",
                                        "conversion", "steps", "conditions", "triangles"}
    assert nests == plain.drawn(3, 140)
    assert nests != plain.drawn(4, 140)
    for nest in nests:
        (program,) = loading.load_programs(SpecText("drawn.toml", nest.text(), "toml"), Options())
        assert {a.name for a in (*nest.inputs, nest.output)} == program.buffers.keys()
        assert set(program.sizes) <= nest.sizes.keys()
        assert 0 < max(math.prod(a.shape(nest.sizes)) for a in (*nest.inputs, nest.output)) < 1_000_000


def test_what_takes_longer_is_counted_unless_it_takes_no_time() -> None:
    rows = [{"runtime": "gcc", "family": "map", "0": a, "2": b} for a, b in ((1e-5, 1.2e-5), (1e-5, 1.04e-5), (1e-6, 1.9e-6), (2e-5, 1e-5))]
    assert [plain.is_slower(row) for row in rows] == [True, False, False, False]
    assert "| gcc | map | 4 | 1 | 1.90 |" in plain.markdown(rows)
