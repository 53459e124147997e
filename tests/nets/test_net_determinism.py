"""The same bytes whatever the hash seed and the folder; the same bits whatever the number of threads, and they do run in parallel."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(folder: Path, *arguments: str, **environment: str) -> list[str]:
    """What determinism_run prints, one line per sample."""
    own = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{HERE}", "MKL_THREADING_LAYER": "", **environment}
    done = subprocess.run([sys.executable, str(HERE / "determinism_run.py"), *arguments], cwd=folder, env=own, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def different(first: list[str], second: list[str]) -> list[str]:
    assert len(first) == len(second)
    return [a.split()[0] for a, b in zip(first, second, strict=True) if a != b]


def copied(folder: Path, nightly: bool) -> None:
    """The samples, by day every fifth one, but the MLP: its three products take as long as all others."""
    folder.mkdir(parents=True)
    for path in [p for p in sorted((ROOT / "samples").glob("*.toml"))[::1 if nightly else 5] if nightly or p.stem != "mlp"]:
        shutil.copy(path, folder)


def test_render_gives_the_same_bytes_for_every_hash_seed_and_folder(nightly: bool, tmp_path: Path) -> None:
    seeds = range(100 if nightly else 2)
    print(f"hash seeds {seeds}")
    first: list[str] = []
    for seed in seeds:
        folder = tmp_path / f"folder{seed}"
        copied(folder / "samples", nightly)
        lines = run(folder, "render", "samples" if seed % 2 else str(folder / "samples"), PYTHONHASHSEED=str(seed))
        assert len(lines) >= (30 if nightly else 6)
        first = first or lines
        assert not different(first, lines), f"hash seed {seed} gives other bytes for {different(first, lines)}"


def test_hash_order_in_the_output_is_seen(tmp_path: Path) -> None:
    """Planted fault: the order of a set of names reaches the text."""
    (tmp_path / "sitecustomize.py").write_text(
        "import caten.render.translation_unit as c\nold = c.title\n"
        "c.title = lambda p: old(p) + '/* ' + ' '.join({b.name + 'x' * k for b in p.params if hasattr(b, 'name') for k in range(4)}) + ' */'\n")
    code = ("import sys; sys.path[:0] = [{!r}, {!r}]; import sitecustomize; import determinism_run; from pathlib import Path; "
            "determinism_run.rendered([Path({!r})])".format(str(tmp_path), str(HERE), str(ROOT / "samples" / "axpy.toml")))
    texts = set()
    for seed in range(4):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}", "PYTHONHASHSEED": str(seed)},
                              capture_output=True, text=True, check=True)
        texts.add(done.stdout)
        if len(texts) > 1:
            break
    assert len(texts) > 1


def needs_openmp() -> None:
    from caten import attach
    from caten.errors import ToolError
    from caten.options import Options
    try:
        attach.runtime_of(Options(config=(("OMP", "1"),))).available()
    except ToolError as missing:
        pytest.skip(str(missing))


@pytest.mark.nightly                      # by day random specs, the kernels of tests/tensor and the libraries of tests/acceptance tell
def test_threads_change_no_bit_and_there_are_several(tmp_path: Path, nightly: bool) -> None:
    needs_openmp()
    counts = (1, 2, 4) if nightly else (1, 4)
    copied(tmp_path / "samples", nightly)
    lines = run(tmp_path, "call", str(tmp_path / "samples"), str(tmp_path / "cache"), *map(str, counts), KMP_BLOCKTIME="0", OMP_WAIT_POLICY="passive")
    results, threads = [], {}
    for count in counts:
        end = next(n for n, line in enumerate(lines) if line.startswith("threads "))
        results.append(lines[:end])
        threads[count] = int(lines[end].split()[1])
        lines = lines[end + 1:]
    assert not lines
    print(f"{len(results[0])} operators; tasks of the process by OMP_NUM_THREADS: {threads}")
    assert len(results[0]) >= (30 if nightly else 6)
    assert all(line.split()[1] == "0" for line in results[0]), [line for line in results[0] if line.split()[1] != "0"]
    for count, result in zip(threads, results, strict=True):
        assert not different(results[0], result), f"{count} threads give other bits for {different(results[0], result)}"
    assert sorted(set(threads.values())) == list(threads.values()), threads
