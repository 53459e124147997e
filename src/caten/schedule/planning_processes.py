"""The nests of a program planned apart from it: on all cores, where processes of their own plan some while this one
plans the others, and once for many programs. What comes of a nest is the same, wherever it was planned."""
from __future__ import annotations

import contextlib
import pickle
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice
from typing import Any

from .. import cores
from ..core.node import Node
from ..core.program import Machine, Schedule, Taken
from ..core.unique_names import declared_names
from ..frozen import frozen
from ..loop.statements import LoopProgram
from . import planning_log
from .loop_names import renamed
from .planning import PlanStore
from .planning_log import Entry, words_of
from .plans.parameters import Choices

FEWEST_NESTS = 6                 # for which a process, which takes a tenth of a second to start, is worth it
NESTS_EACH = 3
MOST_PROCESSES = 8
START = "import sys; sys.path[:] = {path!r}; from caten.schedule.planning_worker import serve; serve()"


@frozen
class Task:
    """A nest to plan: the program of it alone, and the settings of its draft."""

    program: LoopProgram
    name: str
    begun: Collection[str]
    machine: Machine
    choices: Choices
    likely: Mapping[str, int]
    verify: bool

    @property
    def text(self) -> str:
        """What tells all that the answer depends on, beside caten's own code. The text of a program may be far longer
        than the program, which shares parts, is large."""
        settings = (self.name, sorted(self.begun), self.choices.values, sorted(self.likely.items()), self.verify)
        return f"{self.program.digest} {self.machine.digest} {settings}"


@frozen
class Answer:
    """The nest as planned, what was logged and asked on the way, and the work that it took."""

    program: LoopProgram
    log: tuple[Entry, ...]
    asked: Mapping[str, int]
    spent: int


Planner = Callable[[Task], Answer | None]


class Processes:
    """Processes that plan the last of some nests while the first ones are taken from here."""

    def __init__(self, tasks: Mapping[str, Task], count: int) -> None:
        self._tasks, self._lock, self._ended = tasks, threading.Lock(), False
        self._open = deque(tasks)
        self._answers: dict[str, Future[Answer | None]] = {}
        self._running: list[subprocess.Popen[bytes]] = []
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def answer(self, name: str) -> tuple[bool, Answer | None]:
        """How a process has planned a nest, None if that failed; and whether none has begun it: then none will."""
        with self._lock:
            if name in self._open:
                self._open.remove(name)
                return True, None
            future = self._answers.get(name)
        return future is None, None if future is None else future.result()

    def skip(self, name: str) -> None:
        """No process begins this nest any more."""
        with self._lock:
            if name in self._open:
                self._open.remove(name)

    def end(self) -> None:
        """End the processes."""
        with self._lock:
            self._ended = True
            self._open.clear()
            running = list(self._running)
        for process in running:
            process.kill()
        for thread in self._threads:
            thread.join()

    def _next(self) -> tuple[str, Future[Answer | None]] | None:
        with self._lock:
            if not self._open:
                return None
            name = self._open.pop()
            self._answers[name] = Future()
            return name, self._answers[name]

    def _serve(self) -> None:
        """Start a process, and give it one nest after the other."""
        command = [sys.executable, "-c", START.format(path=sys.path)]
        with self._lock:
            if self._ended:
                return
            try:
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, start_new_session=True)
            except OSError:
                return
            self._running.append(process)
        assert process.stdin is not None and process.stdout is not None
        # It is a child of ours, with our own code, so what comes through its pipes is trusted. Whatever ends it, or
        # cannot be pickled: the nests that it leaves are planned in this process, which tells what is wrong with them.
        with process, contextlib.suppress(Exception):
            pickle.load(process.stdout)                             # it is ready
            while (job := self._next()) is not None:
                name, future = job
                try:
                    pickle.dump(self._tasks[name], process.stdin)
                    process.stdin.flush()
                    future.set_result(pickle.load(process.stdout))
                finally:
                    if not future.done():
                        future.set_result(None)
            process.kill()


def count_for(nests: int) -> int:
    """How many processes to start for so many nests; none in a frozen program, which would start itself."""
    if nests < FEWEST_NESTS or not sys.executable or getattr(sys, "frozen", False):
        return 0
    return max(0, min(cores.available() - 1, nests // NESTS_EACH, MOST_PROCESSES))


class Answers:
    """The nests of a program that are planned apart from it: kept from before, by other processes, or here to be
    kept."""

    def __init__(self, tasks: Mapping[str, Task], plan: Planner, kept: PlanStore | None) -> None:
        self._tasks, self._plan, self._kept = tasks, plan, kept
        self._found: dict[str, Answer] = {}
        if kept is not None:
            found = {name: kept.find(task.text) for name, task in tasks.items()}
            self._found = {name: answer for name, answer in found.items() if answer is not None}
        self._processes: Processes | None = None

    def start(self, names: Sequence[str]) -> None:
        """Start processes for those of these nests that are not found, if they are worth it."""
        missing = [name for name in names if name not in self._found]
        count, tasks = count_for(len(missing)), {name: self._tasks[name] for name in missing if name in self._tasks}
        if count and tasks:
            self._processes = Processes(tasks, count)

    def of(self, name: str, now: Callable[[], Task | None]) -> tuple[Task, Answer] | None:
        """A nest as planned, and the task of which that is the answer; None if it is to be planned as a part of its
        program. `now`: the nest as it is, where others may have taken more names or have changed it."""
        first = self._tasks.get(name)
        task = None if first is None else now()
        if first is None or task is None:
            return None
        if unnamed(first.program) == unnamed(task.program):
            task, answer = first, self._answer(first)
        else:
            if self._processes is not None:
                self._processes.skip(name)
            task = replace(task, program=LoopProgram(task.program.name, (*unnamed(task.program),
                                                                         *first.program.all(Taken))))
            answer = None if self._kept is None else self._kept.find(task.text) or self._planned(task)
        return None if answer is None else (task, answer)

    def _answer(self, task: Task) -> Answer | None:
        answer = self._found.get(task.name)
        if answer is None:
            is_open, answer = (True, None) if self._processes is None else self._processes.answer(task.name)
            if is_open:
                return self._planned(task)
            self._keep(task, answer)
        return answer

    def _planned(self, task: Task) -> Answer | None:
        """A nest that is planned here, if it can be kept."""
        answer = None if self._kept is None else self._plan(task)
        self._keep(task, answer)
        return answer

    def _keep(self, task: Task, answer: Answer | None) -> None:
        if answer is not None and self._kept is not None:
            self._kept.keep(answer, task.text)

    def end(self) -> None:
        """End the processes."""
        if self._processes is not None:
            self._processes.end()


@contextmanager
def planned_before(tasks: Callable[[], Mapping[str, Task]], names: Sequence[str], plan: Planner,
                   kept: PlanStore | None) -> Iterator[Answers]:
    """What is planned of these nests apart from their program. `tasks`: what is needed for it, if anything is."""
    answers = Answers(tasks() if kept is not None or count_for(len(names)) else {}, plan, kept)
    try:
        answers.start(names)
        yield answers
    finally:
        answers.end()


def unnamed(program: LoopProgram) -> tuple[Node, ...]:
    """A program without its reserved names."""
    return tuple([c for c in program.clauses if not isinstance(c, Taken)])


def with_free_names(answer: Answer, before: LoopProgram, now: LoopProgram) -> Answer | None:
    """What steps have made of `before`, with the names that they would have given in `now`, where more names are taken.
    None if that is not known: of a name that others are derived from."""
    known, taken = declared_names(before), declared_names(now)
    made = declared_names(answer.program) - known
    made |= frozenset([word for word in words_of(answer.log) if "_" in word]) - known        # and not taken in the end
    free = _free_names(made, known, taken)
    if not free:
        return answer if free is not None else None
    changed: dict[Node, Node] = {k: k.replace(body=renamed(k.body, free)) for k in answer.program.kernels}
    for fact in answer.program.all(Schedule):
        changed[fact] = fact.replace(steps=tuple([_with_names(step, free) for step in fact.steps]))
    program = answer.program.replace(clauses=tuple([changed.get(c, c) for c in answer.program.clauses]))
    return replace(answer, program=program, log=tuple([planning_log.renamed(entry, free) for entry in answer.log]))


def _free_names(made: Collection[str], known: Collection[str], taken: Collection[str]) -> dict[str, str] | None:
    """The names that steps would have given in the place of those that they have `made` where the names `known` are
    taken, if those of `taken` are: what is derived from a name that changes changes with it. None if that is not
    certain."""
    every = {*made, *known}
    clashing = {_wish_of(name)[0] for name in made if name in taken}
    free: dict[str, str] = {}
    for name in sorted(made, key=lambda name: (len(name), name)):                     # a name before those made of it
        wish, number = _wish_of(name)
        base = next((wish[:end] for end in range(len(wish) - 1, 0, -1)
                     if wish[:end] in every and not _is_within_number(wish, end)), "")
        if any(wish.endswith(other) and wish.removesuffix(other) in every for other in free):
            return None                                     # it may be of two loops, the second of which is renamed
        new = free[base] + wish[len(base):] if base in free else wish
        if new == wish and wish not in clashing:
            continue
        if name[-1].isdigit() and number == 1:
            return None                                     # a digit that may be a part of the wish, or not
        if not all(_numbered(wish, n) in every for n in range(1, number)):
            return None                                     # its number is a part of another name
        free[name] = _in_place_of(name, new, known, taken)
    found = {name: new for name, new in free.items() if name != new}
    return found if len({*free.values()}) == len(free) and every.isdisjoint({*found.values()} - {*free}) else None


def _is_within_number(name: str, at: int) -> bool:
    """Is a name cut here in its number, or before it: v_12 after v, v_ and v_1?"""
    return re.match(r"_\d", name[at:]) is not None or re.match(r"[\d_]\d", name[at - 1:]) is not None


def _wish_of(name: str) -> tuple[str, int]:
    """The name that was wanted where `Names.fresh` gave this one, and its number: (x, 3) of x_3, (x, 1) of x."""
    numbered = re.fullmatch(r"(.*[^\d_])_([2-9]|[1-9]\d+)", name)
    return (numbered[1], int(numbered[2])) if numbered else (name, 1)


def _in_place_of(name: str, wish: str, before: Collection[str], now: Collection[str]) -> str:
    """What `Names.fresh` gives for `wish` in the place of a name where other names are taken: as many numbers that are
    free come before it."""
    first, number = _wish_of(name)
    at = sum([_numbered(first, n) not in before for n in range(1, number)])
    free = (new for n in count(1) if (new := _numbered(wish, n)) not in now)
    return next(islice(free, at, None))


def _numbered(wish: str, number: int) -> str:
    return wish if number == 1 else f"{wish}_{number}"


def _with_names(words: tuple[Any, ...], new: Mapping[str, str]) -> tuple[Any, ...]:
    return tuple([_with_names(w, new) if isinstance(w, tuple) else new.get(w, w) for w in words])
