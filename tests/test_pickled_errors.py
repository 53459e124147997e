"""Every exception of the package survives pickling, with its text and its attributes."""
from __future__ import annotations

import copy
import importlib
import multiprocessing
import pickle
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

import caten
from caten.errors import CatenError, Diagnostic, OutOfMemory, PartlyRefused, Place, error, out_of_memory
from caten.runtime.protocol import Unavailable
from caten.schedule.script import StepRefused

PROBLEM = Diagnostic("E301", "wrong", Place("a.toml", 1, 2, "x y"), "write z", (("see", Place("b.toml", 3, 4, "z")),))
# Exceptions whose `__init__` takes something else than what it passes to Exception.
MADE: dict[type, Callable[[], BaseException]] = {
    StepRefused: lambda: StepRefused(("split", "i", 4), [PROBLEM, PROBLEM]),
    Unavailable: lambda: Unavailable("no compiler", "install one", (("tried gcc", None),)),
    PartlyRefused: lambda: PartlyRefused([PROBLEM], ()),
}


def classes() -> list[type]:
    """Every class of exceptions that a module of the package defines."""
    for module in pkgutil.walk_packages(caten.__path__, "caten."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, todo = [], [BaseException]
    while todo:
        for kind in todo.pop().__subclasses__():
            todo.append(kind)
            if kind.__module__.split(".")[0] == "caten" and kind not in found:
                found.append(kind)
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


def same(again: BaseException, problem: BaseException) -> None:
    assert type(again) is type(problem)
    assert (str(again), again.args, vars(again)) == (str(problem), problem.args, vars(problem))


def test_every_exception_can_be_pickled_and_copied() -> None:
    found = classes()
    assert {CatenError, OutOfMemory, *MADE} <= set(found)
    for kind in found:
        problem = MADE[kind]() if kind in MADE else kind(PROBLEM) if issubclass(kind, CatenError) else kind("wrong")
        problem.add_note("while testing")
        same(pickle.loads(pickle.dumps(problem)), problem)
        same(copy.copy(problem), problem)


def test_the_text_of_a_file_stays(tmp_path: Any) -> None:
    (tmp_path / "bad.toml").write_text("[composite]\nnam = 3\n")
    with pytest.raises(CatenError) as caught:
        caten.compile(tmp_path / "bad.toml")
    again = pickle.loads(pickle.dumps(caught.value))
    (tmp_path / "bad.toml").unlink()
    same(again, caught.value)
    assert "nam" in str(again)


def failing(kind: str) -> None:
    raise out_of_memory("Op", "no memory") if kind == "memory" else error("E702", "wrong type", hint="convert it")


@pytest.mark.parametrize("kind", ["memory", "type"])
def test_an_error_arrives_from_a_worker_process(kind: str) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(CatenError) as caught:
        pool.apply(failing, (kind,))
    with pytest.raises(CatenError) as here:
        failing(kind)
    assert (type(caught.value), str(caught.value)) == (type(here.value), str(here.value))
    assert isinstance(caught.value, MemoryError) == (kind == "memory")
