"""The memory of a step of training: what `python -m benchmarks.training_memory` prints of daten."""
from __future__ import annotations

import pytest
from benchmarks.training_memory import of_daten


@pytest.mark.slow
def test_of_the_smallest_network() -> None:
    before, after, results = of_daten("mlp")
    assert 0 < results < after
    assert before > 0
