"""A runtime whose device is not in this machine: exit code 3, whatever was to be run."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = [["test", "axpy.toml"], ["axpy.toml", "--emit=so=made.bin", "--test", "N=8"], ["bench", "axpy.toml", "--sizes", "N=8"]]


@pytest.mark.slice(2)
@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("runtime", ["opencl", "cuda"])
def test_a_machine_without_the_device_ends_with_code_3(folder: Path, runtime: str, words: list[str]) -> None:
    if importlib.util.find_spec("pyopencl") is None and runtime == "opencl":
        pytest.skip("needs pyopencl")
    if runtime == "cuda" and Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    surroundings = os.environ | {"OCL_ICD_VENDORS": "/nonexistent"}
    done = subprocess.run([sys.executable, "-m", "caten", *words, "--runtime", runtime], env=surroundings, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert ("no OpenCL platform" if runtime == "opencl" else "no NVIDIA driver") in done.stderr
    assert "[E610]" in done.stderr
