"""What planning is for: a scheduled product is many times faster than its nest, and its C stays short."""
from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.compiler import prepare
from caten.errors import ToolError
from caten.frontend.spec_files import read_file
from caten.options import Options
from caten.render.cpu_check import CPU_CHECK

GEMM = Path(__file__).parents[2] / "samples" / "gemm.toml"
N = 512
RATIO = 5                       # at least; on machines with vectors and fma it is above 50


def compiled(opt: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    try:
        return caten.compile(GEMM, opt=opt, config={"OPT": 3})
    except ToolError as missing:
        pytest.skip(str(missing))


def seconds(operator: Any, times: int) -> float:
    """Of this thread's own time, the least of several calls: what else the machine does counts little."""
    a, b, c = np.ones((N, N), np.float32), np.ones((N, N), np.float32), np.zeros((N, N), np.float32)
    best = float("inf")
    for _ in range(times):
        start = time.thread_time()
        operator(a, b, c)
        best = min(best, time.thread_time() - start)
    assert (c == N * times).all()
    return best


@pytest.mark.slow
def test_a_scheduled_product_is_several_times_faster_than_its_nest(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    fast, plain = compiled(2, tmp_path, monkeypatch), compiled(0, tmp_path, monkeypatch)
    assert seconds(plain, 2) >= RATIO * seconds(fast, 8)


@pytest.mark.slow
@pytest.mark.parametrize(("march", "most"), [("x86-64-v3", 860), ("x86-64-v4", 930)])
def test_the_c_of_a_product_is_short(march: str, most: int) -> None:
    try:
        source = prepare([read_file(GEMM)], Options(config=(("MARCH", march),))).source
    except ToolError as missing:
        pytest.skip(str(missing))
    own = source.replace(CPU_CHECK, "")                    # every library checks which CPU it runs on
    kernel, entry = own.split("CT_API int32_t", 1)
    assert kernel.count("\n") < most
    assert entry.count("\n") < 62                 # the checks of a call, and the room for packed operands
