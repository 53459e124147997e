"""The number of threads changes no bit of a learning curve."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

STEPS = """
import numpy as np
import daten
from daten import Tensor, apply, jit, nn, optim, random
daten.use(config={"OMP": 1, "OPT": 0})
random.seed(0)
draw = np.random.default_rng(0)
conv, norm, out = nn.Conv2d(1, 4, 3, padding=1), nn.LayerNorm(256), nn.Linear(256, 10)
optimizer = optim.SGD([*conv.parameters(), *norm.parameters(), *out.parameters()], lr=0.1, momentum=0.9)
@jit
def step(x, y):
    loss = apply("cross_entropy", out(norm(conv(x).relu().reshape(x.shape[0], 256))), y)
    loss.backward()
    optimizer.step(loss)
    return loss
x, y = draw.standard_normal((96, 1, 8, 8)).astype(np.float32), draw.integers(0, 10, 96)
print(*[step(x, y).item().hex() for _ in range(5)])
"""


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit(nightly: bool) -> None:
    curves = [subprocess.run([sys.executable, "-c", STEPS], env=os.environ | {"OMP_NUM_THREADS": str(n)}, capture_output=True, text=True, check=True,
                             timeout=300).stdout.split() for n in ((1, 2, 3) if nightly else (1, 3))]
    assert all(curve == curves[0] for curve in curves)
    losses = [float.fromhex(loss) for loss in curves[0]]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0]
