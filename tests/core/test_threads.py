"""Several Python threads compile at once: nodes are made once whoever makes them, and every text is what one thread makes."""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from caten import driver, loading
from caten.core import node
from caten.core.expr import Const, Op
from caten.frontend.spec_files import SpecText
from caten.options import Options

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))
OPTIONS = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))
THREADS = 2


@pytest.fixture
def switching() -> Iterator[None]:
    """The interpreter goes from thread to thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], object]) -> list[object]:
    """What some work gives in each of the threads."""
    found: list[object] = [None] * THREADS
    start = threading.Barrier(THREADS)

    def run(n: int) -> None:
        start.wait()
        try:
            found[n] = work(n)
        except Exception as problem:
            found[n] = problem

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.usefixtures("switching")
@pytest.mark.slow
def test_two_threads_make_the_same_nodes(nightly: bool) -> None:
    for turn in range(50 if nightly else 10):
        base = turn * 1_000_000 + 7_000_000_000
        one, other = at_once(lambda n, base=base: [Op("add", (Const(base + k), Const(base - k))) for k in range(2000)])  # type: ignore[misc]
        assert isinstance(one, list)
        assert isinstance(other, list)
        assert all(a is b for a, b in zip(one, other, strict=True))


def test_who_finds_nothing_looks_again_with_the_lock() -> None:
    """A thread that waits for the lock takes the node that its holder made."""
    made: list[object] = []
    thread = threading.Thread(target=lambda: made.append(Const(123_456_789_123)))
    with node._LOCK:
        thread.start()
        thread.join(0.05)
        assert not made                                          # it waits
        own = Const(123_456_789_123)
    thread.join()
    assert made[0] is own


def test_a_node_that_ends_leaves_the_pool_and_not_its_successor() -> None:
    key = (Const, *Const._key((987_654_321_987, "i64")))
    first = Const(987_654_321_987)
    entry = node._POOL[key]
    del first
    assert key not in node._POOL
    again = Const(987_654_321_987)
    node._forget(entry)                                          # a late call for the one that ended
    assert node._POOL[key]() is again


def texts(path: Path) -> str:
    """The loops and the C of every program of a sample."""
    loops = [driver.advance(p, "loop", OPTIONS) for p in loading.load_programs(SpecText(path.name, path.read_text("utf-8")), OPTIONS)]
    return "\n".join([repr(p) for p in loops]) + driver.render(loops, OPTIONS)


@pytest.mark.usefixtures("switching")
def test_two_threads_that_compile_at_once_agree_with_one(nightly: bool) -> None:
    chosen = SAMPLES if nightly else SAMPLES[::9]
    alone = [texts(path) for path in chosen]
    for found in at_once(lambda n: [texts(path) for path in (chosen if n else chosen[::-1])]):
        assert isinstance(found, list), found
        assert alone in (found, found[::-1])
