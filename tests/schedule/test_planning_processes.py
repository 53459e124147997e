"""Nests are planned by several processes, and what comes of it is what one process makes."""
from __future__ import annotations

import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from caten import cores, driver, loading
from caten.core.expr import Expr, Op, Var
from caten.core.program import Machine, Program, Schedule, resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.schedule import autoscheduler, planning_processes
from caten.schedule.planning_log import Tried, explained
from caten.schedule.plans.parameters import DEFAULTS

PROGRAM = Path(__file__).with_name("training_step.lisp")


def opened() -> Program:
    (program,) = [resolve(p) for p in read(PROGRAM.read_text("utf-8"))]
    return program


def scheduled(monkeypatch: pytest.MonkeyPatch, count: int) -> tuple[str, list[str], list[str]]:
    """The program as `count` cores schedule it, what is logged, and the nests that other processes have planned."""
    monkeypatch.setattr(cores, "available", lambda: count)
    taken: list[str] = []
    whole = autoscheduler._taken_over

    def note(draft: Any, task: Any, answer: Any) -> bool:
        taken.append(task.name)
        return whole(draft, task, answer)
    monkeypatch.setattr(autoscheduler, "_taken_over", note)
    log: list[Any] = []
    made = driver.advance(opened(), "loop", Options(), log=log)
    return show(made), list(explained(log)), taken


def patient(monkeypatch: pytest.MonkeyPatch, start: str = planning_processes.START) -> None:
    """This process plans only what no other one takes."""
    whole = planning_processes.Processes.answer

    def wait(self: planning_processes.Processes, name: str) -> Any:
        for thread in self._threads:
            thread.join(60)
        return whole(self, name)
    monkeypatch.setattr(planning_processes.Processes, "answer", wait)
    monkeypatch.setattr(planning_processes, "START", start)


@pytest.fixture(scope="module")
def by_one() -> tuple[str, list[str], list[str]]:
    """What one process makes."""
    with pytest.MonkeyPatch.context() as patch:
        return scheduled(patch, 1)


@pytest.mark.slow
def test_all_processes_plan_as_one_does(by_one: tuple[str, list[str], list[str]], monkeypatch: pytest.MonkeyPatch, nightly: bool) -> None:
    alone, said, taken = by_one
    assert not taken
    patient(monkeypatch)
    for count in (2, 4) if nightly else (2,):
        text, log, taken = scheduled(monkeypatch, count)
        assert len(taken) > planning_processes.FEWEST_NESTS
        assert text == alone
        assert log == said


@pytest.mark.slow
@pytest.mark.slice(4)
@pytest.mark.parametrize("start", ["import sys; sys.exit(1)",                                    # it ends at once
                                   "print('no pickle', flush=True)",
                                   # it is ready, and ends with the first task
                                   "import pickle, sys; pickle.dump(None, sys.stdout.buffer); sys.stdout.flush(); sys.stdin.read(1)",
                                   # it plans nothing
                                   "import pickle, sys; pickle.dump(None, sys.stdout.buffer); sys.stdout.flush()\n"
                                   "while pickle.load(sys.stdin.buffer): pickle.dump(None, sys.stdout.buffer); sys.stdout.flush()"])
def test_what_a_process_does_not_plan_is_planned_here(by_one: tuple[str, list[str], list[str]], monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    alone, said, _ = by_one
    patient(monkeypatch, start.replace("{", "{{").replace("}", "}}"))
    text, log, taken = scheduled(monkeypatch, 2)
    assert not taken
    assert text == alone
    assert log == said


@pytest.mark.slow
def test_nests_beyond_the_budget_are_left_whoever_plans_them(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch)
    monkeypatch.setattr(driver, "BUDGET", 12_500)
    alone, several = (scheduled(monkeypatch, count) for count in (1, 2))
    assert several[:2] == alone[:2]
    left = [line for line in alone[1] if "compile-time budget" in line]
    assert 0 < len(left) < len(several[2])


def test_processes_end_with_an_interrupt(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]) -> None:
    monkeypatch.setattr(cores, "available", lambda: 3)

    def interrupt(*_: Any) -> Any:
        while len(started) < 2:
            time.sleep(0.01)
        raise KeyboardInterrupt
    monkeypatch.setattr(planning_processes.Processes, "answer", interrupt)
    with pytest.raises(KeyboardInterrupt):
        driver.advance(opened(), "loop", Options())
    assert all(process.poll() is not None for process in started)


FILTERS = """[composite]
name = "Filters"
inputs = ["X{float}[2 16 16 16]", "W{float}[16 16 3 3]", "V{float}[16 16 3 3]"]
outputs = ["Y{float}[2 16 10 10]"]
[implementation]
lang = "python"
code = "return conv2d(relu(conv2d(relu(conv2d(X, W)), V)), W)"
"""


class Store:
    """Plans that are kept, in memory."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], object] = {}

    def find(self, *what: str) -> Any:
        return self.found.get(what)

    def keep(self, made: object, *what: str) -> None:
        self.found[what] = made


def test_a_nest_is_planned_once_where_others_view_its_arrays_with_other_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Axes of filters become one, in all nests. What is planned apart is put back, also where it does that, or where
    one before has done it."""
    monkeypatch.setattr(cores, "available", lambda: 1)
    (before,) = loading.load_programs(SpecText("filters.toml", FILTERS), Options())
    log: list[Any] = []
    alone = show(driver.advance(before, "loop", Options(), log=log))
    assert alone.count("(seen 16 144)") == 2
    planned: list[str] = []
    apart, within = autoscheduler.planned_apart, autoscheduler._planned

    def note(task: planning_processes.Task) -> planning_processes.Answer | None:
        planned.append(task.name)
        return apart(task)

    def note_within(draft: Any, name: str, plan: Any) -> None:
        planned.append(name)
        within(draft, name, plan)
    monkeypatch.setattr(autoscheduler, "planned_apart", note)
    monkeypatch.setattr(autoscheduler, "_planned", note_within)
    kept = Store()
    again: list[Any] = []
    assert show(driver.advance(before, "loop", Options(), log=again, kept=kept)) == alone
    assert list(explained(again)) == list(explained(log))
    assert len(planned) == len({*planned}) >= 3
    planned.clear()
    assert show(driver.advance(before, "loop", Options(), kept=kept)) == alone
    assert not planned


@pytest.mark.slow
def test_a_process_plans_what_views_arrays_with_other_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning_processes, "FEWEST_NESTS", 2)
    monkeypatch.setattr(planning_processes, "NESTS_EACH", 1)
    patient(monkeypatch)
    program = loading.load_programs(SpecText("filters.toml", FILTERS), Options())[0]
    monkeypatch.setattr(f"{__name__}.opened", lambda: program)
    alone, said, _ = scheduled(monkeypatch, 1)
    text, log, taken = scheduled(monkeypatch, 2)
    assert len(taken) >= 2
    assert text == alone
    assert log == said


def test_a_fault_in_a_process_is_told_by_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "available", lambda: 1)
    tasks: dict[str, planning_processes.Task] = {}
    whole = autoscheduler._tasks

    def note(*given: Any) -> Any:
        tasks.update(whole(*given))
        return {}
    monkeypatch.setattr(autoscheduler, "_tasks", note)
    program = loading.load_programs(SpecText("filters.toml", FILTERS), Options())[0]
    driver.advance(program, "loop", Options(), kept=Store())
    task = next(iter(tasks.values()))
    assert autoscheduler.planned_apart(task) is not None

    def fault(draft: Any, name: str, machine: Any) -> None:
        raise CatenError()
    monkeypatch.setattr(autoscheduler, "nest_and_copy", fault)
    assert autoscheduler.planned_apart(task) is None


def test_names_that_others_have_taken_are_not_used_again() -> None:
    """As `fresh` would name it, and what is derived from it; unknown where it may be the second part of another."""
    def program(*loops: str, taken: str = "") -> Any:
        nests = "".join([f"(for {n} serial 0 8 1 (setf (aref Y {n}) 0.0))" for n in loops])
        text = f"(loop F (outputs Y) (buffer Y f32 (8) (0) out) {taken} (kernel k {nests}) (schedule (split {loops[-1]} 2) (applied)))"
        (made,) = [resolve(p) for p in read(text)]
        return made

    def renamed(*loops: str) -> planning_processes.Answer | None:
        answer = planning_processes.Answer(program(*loops), (Tried("split a_b", 0), Tried(f"split {loops[-1]}", 0)), {}, 0)
        return planning_processes.with_free_names(answer, program("i"), program("i", taken="(taken t t_2 a_b v_2 t_2_2)"))
    found = renamed("i", "t")
    assert found is not None
    assert "(for t_3 " in show(found.program)
    assert "(split t_3 2)" in show(found.program)
    assert found.log == (Tried("split a_b_2", 0), Tried("split t_3", 0))
    unchanged = renamed("i", "u")
    assert unchanged is not None
    assert unchanged.program is program("i", "u")
    both = renamed("i", "t", "t_2")
    assert both is not None
    assert "(for t_3 " in show(both.program)
    assert "(for t_4 " in show(both.program)
    one = renamed("i", "v", "v_2")
    assert one is not None
    assert "(for v " in show(one.program)
    assert "(for v_3 " in show(one.program)
    derived = renamed("i", "t", "t_2", "t_r", "t_2o", "t_2oi")
    assert derived is not None
    assert [line.split()[1] for line in show(derived.program).splitlines() if "(for " in line] == [
        "i", "t_3", "t_4", "t_3_r", "t_4o", "t_4oi"]
    assert renamed("i", "t", "it") is None
    assert renamed("i", "t_2_2") is None
    assert renamed("i", "t_2") is None


def test_what_tells_a_task_looks_at_shared_parts_once() -> None:
    """Of a nest whose text would repeat shared parts 2^200 times, and of one with other steps or settings."""
    (program,) = [resolve(p) for p in read("(loop F (buffer Y i64 (8) (0) out) (kernel k (for i serial 0 8 1 (setf (aref Y i) i))))")]
    value: Expr = Var("i", "i64")
    for _ in range(200):
        value = Op("add", (value, value))
    (kernel,) = program.kernels
    (loop,) = kernel.body
    shared = program.replace(clauses=tuple([
        kernel.replace(body=(loop.replace(body=tuple([s.replace(value=value) for s in loop.body])),)) if c is kernel else c
        for c in program.clauses]))
    stepped = shared.replace(clauses=(*shared.clauses, Schedule((("split", "i", "2"),))))
    machine = Machine("x86_64_v3", 32, 16, (32768,), True)
    tasks = [planning_processes.Task(p, "i", (), machine, DEFAULTS, {}, verify)
             for p in (program, shared, stepped) for verify in (True, False)]
    assert len({task.text for task in tasks}) == len(tasks)
    assert max(len(task.text) for task in tasks) < 1000


def test_a_worker_is_started_as_it_is_written() -> None:
    """The words that start one: it says that it is ready, and ends with its input."""
    done = subprocess.run([sys.executable, "-c", planning_processes.START.format(path=sys.path)], input=b"", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, pickle.dumps(None), b"")
