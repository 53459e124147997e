"""What random steps say that they made, on programs that other random steps led to."""
from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from random_steps import random_step, stores

from caten import driver, loading
from caten.errors import CatenError
from caten.frontend.spec import read_file
from caten.options import Options
from caten.schedule import script
from made_checks import assert_told

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SEEDS = 160
STEPS = 12
MOST_STORES = 60


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", ["gemm", "conv2d", "softmax", "gather", "maxpool"])
def test_all_that_is_new_is_told(name: str, nightly: bool) -> None:
    own = Options(config=(("MARCH", "x86_64_v3"),), opt=0)
    (op,) = loading.load_programs(read_file(str(SAMPLES / f"{name}.toml")), own)
    base, counts = driver.unscheduled(op, own), Counter[str]()
    for seed in range(SEEDS * 20 if nightly else SEEDS):
        rng, node = random.Random(f"{name} {seed}"), base
        for _ in range(STEPS):
            step = random_step(rng, node)
            try:
                after, told = script.take(node, step)
            except CatenError:
                continue
            assert_told(node, after, told, step)
            counts[step[0]] += 1
            node = after if stores(after) <= MOST_STORES else node
    print(name, dict(counts))
    assert {"split", "stage", "specialize"} <= set(counts)
