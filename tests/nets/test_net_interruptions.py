"""Ctrl-C and SIGTERM at random moments: every command ends at once, with nothing half-written and no process left behind."""
from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from pace import slowness

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
SLICE, NIGHTLY = 10, 200
LATEST = 3.0                                     # seconds after the start
SECONDS = 1.0                                    # until everything has ended, on a machine with nothing else to do
LONG = 120.0                                     # of wall time: what has not ended by itself then is only interrupted
CODES = {signal.SIGINT: (130, -signal.SIGINT), signal.SIGTERM: (143, -signal.SIGTERM)}         # the second: before a handler is there

SLOW = {
    "window": """[composite]
name = "Window"
inputs = ["X{float}[C H W]", "V{float}[F C R R]", "Y{float}[F O P]"]
outputs = ["Y"]
[implementation]
code = \"\"\"(dotimes (o F) (dotimes (x O) (dotimes (y P) (dotimes (c C) (dotimes (u R) (dotimes (v R)
  (when (and (<= 0 (- (+ x u) 1)) (< (- (+ x u) 1) H) (<= 0 (- (+ y v) 1)) (< (- (+ y v) 1) W))
    (incf (aref Y o x y) (* (aref X c (- (+ x u) 1) (- (+ y v) 1)) (aref V o c u v))))))))))\"\"\"
""",
    "reversed": """[composite]
name = "Reversed"
inputs = ["T{int16}[(+ N 8) (+ N 8)]<1 0>"]
outputs = ["T"]
[implementation]
code = "(dotimes (i N) (loop (j 1 N) (incf (aref T j i) (aref T (- N j) 2))))"
""",
    "nests": """[composite]
name = "Nests"
inputs = ["A{int8}[(+ N 8) (+ N 8)]", "B{int8}[(+ N 8) (+ N 8)]"]
outputs = ["A", "B"]
[implementation]
code = \"\"\"
(dotimes (i (- N 1))
  (dotimes (j N)
    (incf (aref B (- (+ N 3) i) (+ j 6)) (- (aref A (+ i 4) (+ j 6)) (aref B (+ i 5) (- (+ N 3) j))))))
(loop (k 1 N)
  (dotimes (l N)
    (mincf (aref B (+ k 3) (+ l 5)) (aref B (+ k 4) (+ l 6)))))
\"\"\"
""",
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("parse", "-o", "out.op", "SPEC"), ("ir", "-o", "out.ir", "SPEC"), ("schedule", "-o", "out.loop", "SPEC"), ("render", "-o", "out.c", "SPEC"),
    ("SPEC", "-o", "out.so"), ("SPEC", "--no-cache", "-o", "out.so"), ("test", "SPEC"), ("test", "--no-cache", "SPEC"), ("check", "SPEC"),
    ("tune", "SPEC", "--budget", "20", "--sizes", "SIZES"),
)
SPECS: dict[str, str] = {"gemm": "M=64,N=64,K=64", "softmax": "M=64,N=64", "conv2d": "", "maxpool": "", "layernorm": "M=8,N=32", **dict.fromkeys(SLOW, "")}


@dataclass(frozen=True)
class Shot:
    """One command that is interrupted: where, how, and so many seconds after its start."""

    words: tuple[str, ...]
    number: signal.Signals
    after: float
    group: bool

    def __str__(self) -> str:
        return f"caten {' '.join(self.words)}: {self.number.name} after {self.after:.2f} s"


def shot(seed: int, specs: Path) -> Shot:
    rng = random.Random(f"interruption {seed}")
    words = COMMANDS[seed % len(COMMANDS)]
    tunable = [s for s, sizes in SPECS.items() if sizes]
    spec = rng.choice(tunable if words[0] == "tune" else list(SPECS))
    number = rng.choice((signal.SIGINT, signal.SIGTERM))
    # a terminal sends its Ctrl-C to the whole group; some programs send it to one process
    return Shot(tuple([w.replace("SPEC", str(specs / f"{spec}.toml")).replace("SIZES", SPECS[spec]) for w in words]), number, rng.uniform(0, LATEST),
                number == signal.SIGINT and rng.random() < 0.8)


def specs_in(folder: Path) -> Path:
    folder.mkdir()
    for name, text in SLOW.items():
        (folder / f"{name}.toml").write_text(text)
    for name in SPECS.keys() - SLOW.keys():
        (folder / f"{name}.toml").write_text((SAMPLES / f"{name}.toml").read_text())
    return folder


def below(pid: int) -> list[int]:
    """The processes below one, from /proc."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *below(child)]
    return found


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def start(words: tuple[str, ...], folder: Path, cache: Path, source: Path = ROOT / "src") -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(source), "CATEN_CACHE_DIR": str(cache), "CC": "gcc"}
    with open(said(folder), "w") as errors:                  # not a pipe: a child that lives on would hold it open
        return subprocess.Popen([sys.executable, "-m", "caten", *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors,
                                stdin=subprocess.DEVNULL, start_new_session=True)


def said(folder: Path) -> Path:
    """Where stderr of a command goes: beside its folder."""
    return folder.with_suffix(".err")


def fire(made: Shot, folder: Path, cache: Path, seconds: float, source: Path = ROOT / "src") -> tuple[str, list[str]]:
    """`ended before`, `before it began` or `interrupted`, and what is wrong."""
    running = start(made.words, folder, cache, source)
    wrong: list[str] = []
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(made.after)
        early = running.poll() is not None
        children = below(running.pid)
        begin = time.monotonic()
        if not early:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if made.group else os.kill)(running.pid, made.number)
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            wrong.append(f"not ended {seconds:.1f} s after the signal")
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        err = said(folder).read_text()
        if "Traceback" in err and "/caten/" not in err:      # Python itself was still starting, and has its own way to say so
            return "before it began", wrong
        if not early and not wrong and running.returncode not in (*CODES[made.number], 0):
            wrong.append(f"exit code {running.returncode}")
        if early and running.returncode not in (0, 1):
            wrong.append(f"exit code {running.returncode} without a signal")
        if "Traceback" in err or "E940" in err:
            wrong.append(f"stderr: {err[-600:]}")
        deadline = begin + seconds
        while (left := [p for p in children if alive(p)]) and time.monotonic() < deadline:
            time.sleep(0.02)
        if left:
            wrong.append(f"processes left: {[Path(f'/proc/{p}/cmdline').read_text()[:80] for p in left if alive(p)]}")
        return "ended before" if early or running.returncode in (0, 1) else "interrupted", wrong
    finally:
        for p in (p for p in (running.pid, *below(running.pid)) if alive(p)):
            with contextlib.suppress(OSError):
                os.kill(p, signal.SIGKILL)
        running.wait()


class Whole:
    """What commands write when nothing interrupts them, found once for each."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.known: dict[tuple[str, ...], dict[str, bytes] | None] = {}

    def of(self, words: tuple[str, ...]) -> dict[str, bytes] | None:
        """The files by name; None where it would take too long to know."""
        if words not in self.known:
            here = self.folder / str(len(self.known))
            running = start(words, here, self.folder / "cache")
            try:
                running.wait(LONG)
                self.known[words] = {p.name: p.read_bytes() for p in here.iterdir()}
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
                self.known[words] = None
        return self.known[words]


def damaged(folder: Path, whole: dict[str, bytes] | None) -> list[str]:
    """Files that are not what the command writes when it is left alone."""
    made = {p.name: p.read_bytes() for p in folder.iterdir()}
    if whole is None:
        return [f"{n} was left behind" for n in made]
    return [f"{n} was left behind" if n not in whole else f"{n} is half-written" for n, content in made.items() if whole.get(n) != content]


def test_commands_end_at_once_and_leave_nothing_half_written(nightly: bool, tmp_path: Path) -> None:
    count = NIGHTLY if nightly else SLICE
    seconds = SECONDS * slowness()
    specs, whole, cache = specs_in(tmp_path / "specs"), Whole(tmp_path / "whole"), tmp_path / "cache"
    seen: Counter[str] = Counter()
    faults: list[str] = []
    for seed in range(count):
        made = shot(seed, specs)
        how, wrong = fire(made, tmp_path / f"run{seed}", cache, seconds)
        seen.update([how, made.number.name, next(w for w in ("parse", "ir", "schedule", "render", "test", "check", "tune", "build") if w in (*made.words, "build"))])
        if any((tmp_path / f"run{seed}").iterdir()):
            seen["with files"] += 1
            wrong += damaged(tmp_path / f"run{seed}", whole.of(made.words))
        faults += [f"seed {seed}: {made}: {w}" for w in wrong]
    print(f"seeds 0 to {count - 1}, {seconds:.1f} s allowed:", dict(sorted(seen.items())))
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)
    assert seen["interrupted"] >= 0.2 * count              # on a fast and quiet machine, many end before
    assert not [w for w in ("SIGINT", "SIGTERM", "parse", "ir", "schedule", "render", "test", "check", "tune", "build") if not seen[w]]


def test_one_that_goes_on_is_caught(tmp_path: Path) -> None:
    """Planted fault: a program that is deaf to signals, and leaves a child and a part of a file."""
    package = tmp_path / "src" / "caten"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import signal, subprocess, time\nfor n in (signal.SIGINT, signal.SIGTERM): signal.signal(n, signal.SIG_IGN)\n"
        "open('out.so', 'w').write('half')\nsubprocess.Popen(['sleep', '5'])\ntime.sleep(5)\n")
    how, wrong = fire(Shot(("x",), signal.SIGTERM, 0.5, False), tmp_path / "run", tmp_path / "cache", 0.4, tmp_path / "src")
    assert how == "interrupted"
    assert any("not ended" in w for w in wrong)
    assert damaged(tmp_path / "run", {"out.so": b"whole"}) == ["out.so is half-written"]


@pytest.mark.slice(2)
@pytest.mark.parametrize(("code", "fault"), [
    ("raise SystemExit(7)", "exit code 7"), ("raise OSError", "Traceback"), ("subprocess.Popen(['sleep', '60'], start_new_session=True)", "processes left")])
def test_a_wrong_end_is_caught(code: str, fault: str, tmp_path: Path) -> None:
    """Planted faults: another exit code, a traceback, a child that lives on."""
    package = tmp_path / "src" / "caten"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    early = code if "Popen" in code else "pass"
    late = "raise SystemExit(143)" if "Popen" in code else code
    (package / "__main__.py").write_text(f"import signal, subprocess, time\n{early}\n"
                                         f"def stop(*_):\n    {late}\nsignal.signal(signal.SIGTERM, stop)\ntime.sleep(30)\n")
    _, wrong = fire(Shot(("x",), signal.SIGTERM, 1.0, False), tmp_path / "run", tmp_path / "cache", 1.0, tmp_path / "src")
    assert any(fault in w for w in wrong), wrong
