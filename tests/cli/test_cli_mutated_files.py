"""A net of mutated files beside the spec: arrays, schedules, response files. Whatever is in them, a command ends with a result or with a diagnostic."""
from __future__ import annotations

import os
import random
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.cli import argv, array_files
from caten.errors import CatenError, UsageError
from mutations import outcomes

SECONDS = 4.0
STEPS = "(schedule (split i 8 pad) (split j 16) (split p 4) (unroll pi) (parallel io) (vectorize ji))\n"
PIECES = (b"", b"", b"\0", b"\xff", b"(", b")", b"'", b'"', b"\\", b"-1", b"9" * 30, b"L", b"PK\x05\x06", b"descr", b"|O", b"(1099511627776,)", b"\n", b" ")


def edited(rng: random.Random, data: bytes) -> bytes:
    """One to three random edits."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        copied = data[rng.randrange(len(data) or 1):][:rng.randint(1, 30)]
        data = data[:start] + rng.choice((*PIECES, copied, bytes([rng.randrange(256)]))) + data[start + rng.choice((0, 0, 1, 1, 3, 10, 40)):]
    return data[:rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data


def stored(folder: Path) -> dict[str, bytes]:
    """The files that arrays are read from."""
    np.save(folder / "a.npy", np.arange(24, dtype=np.float32).reshape(4, 6))
    np.savez(folder / "a.npz", X=np.ones(9, np.float32), Y=np.arange(5))
    np.savez_compressed(folder / "b.npz", X=np.zeros((50, 50), np.float16))
    return {name: (folder / name).read_bytes() for name in ("a.npy", "a.npz", "b.npz")}


def test_mutated_arrays(tmp_path: Path, nightly: bool) -> None:
    files = stored(tmp_path)

    def mutated(rng: random.Random) -> str:
        name = rng.choice(sorted(files))
        (tmp_path / f"changed{name}").write_bytes(edited(rng, files[name]))
        return f"{tmp_path}/changed{name}"

    codes, faults = outcomes(1, 20_000 if nightly else 1_500, mutated, lambda file: array_files.load({"X": file}), seconds=SECONDS, exit_codes=(2,))
    assert not faults, faults[0]
    assert codes["ok"] > 20
    assert codes["E913"] > 200


def test_mutated_response_files(tmp_path: Path, nightly: bool) -> None:
    text = f"-O2 --config 'MARCH=native OMP=1' -DN=4 \"-o\" {shlex.quote(str(tmp_path / 'out put.so'))} a\\ b.toml @{tmp_path}/changed\n".encode()

    def mutated(rng: random.Random) -> str:
        (tmp_path / "changed").write_bytes(edited(rng, text))
        return f"@{tmp_path}/changed"

    def expanded(word: str) -> None:
        assert "\0" not in "".join(argv.normalise([word]))

    codes, faults = outcomes(1, 20_000 if nightly else 2_000, mutated, expanded, seconds=SECONDS, exit_codes=(2,))
    assert not faults, faults[0]
    assert {"ok", "E908"} <= set(codes)


def test_mutated_schedules(caten: Callable[..., Any], folder: Path, nightly: bool) -> None:
    rng, seen = random.Random(1), Counter[int]()
    for n in range(1_500 if nightly else 60):
        data = edited(rng, STEPS.encode())
        (folder / "steps").write_bytes(data)
        done = caten("schedule", "gemm.toml", "-s", "steps", "--runtime", "clang")
        assert done.code in (0, 1, 2), f"#{n}: {done.err}\n{data!r}"
        assert not {"Traceback", "E940"} & set(done.err.replace("[", " ").replace("]", " ").split()), f"#{n}: {done.err}\n{data!r}"
        assert done.code == 0 or "error" in done.err
        seen[done.code] += 1
    assert min(seen[0], seen[1], seen[2]) > 0, seen


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/null", "/dev/urandom", "a\0b", "."])
def test_files_that_are_none(source: str, caten: Callable[..., Any]) -> None:
    """What never ends is read as far as a file may be large."""
    if not os.path.exists("/dev/zero"):
        pytest.skip("needs /dev/zero")
    done = caten("schedule", "gemm.toml", "-s", source)
    assert (done.code, "E504" in done.err) == (1, True) if source == "/dev/null" else (done.code, "E902" in done.err) == (2, True), done.err
    with pytest.raises((UsageError, CatenError)):
        array_files.load({"X": source})
