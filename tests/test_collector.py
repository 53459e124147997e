"""A compile lets Python look for cycles rarely, and leaves its collector as it was."""
from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

import caten
from caten.collector import COLLECTIONS, CollectingRarely


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_rarely_inside_and_as_before_after_the_last() -> None:
    gc.set_threshold(700, 10, 10)
    with CollectingRarely():
        assert gc.get_threshold() == COLLECTIONS
        with CollectingRarely():
            pass
        assert gc.get_threshold() == COLLECTIONS
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [(0, 10, 10), (1_000_000, 10, 10)], ids=["never", "more rarely"])
def test_who_collects_less_is_left_alone(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with CollectingRarely():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_what_is_set_meanwhile_stays() -> None:
    with CollectingRarely():
        gc.set_threshold(555, 5, 5)
    assert gc.get_threshold() == (555, 5, 5)


def test_the_last_thread_puts_it_back() -> None:
    gc.set_threshold(700, 10, 10)
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        with CollectingRarely():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    with CollectingRarely():
        assert inside.wait(10)
    assert gc.get_threshold() == COLLECTIONS
    done.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)


def test_a_compile_puts_it_back_also_where_it_fails() -> None:
    gc.set_threshold(701, 10, 10)
    with pytest.raises(caten.CatenError):
        caten.compile("[composite]\nname = 1\n", runtime="gcc")
    assert gc.get_threshold() == (701, 10, 10)
