"""A process that plans nests: tasks on its standard input, answers on its output, both pickled."""
from __future__ import annotations

import gc
import pickle
import sys

from ..core.program import Schedule
from ..loop.operation_count import BUDGET, Work, counted
from .autoscheduler import nest_and_copy
from .draft import Draft
from .planning import Planning
from .planning_processes import Answer, Task


def serve() -> None:
    """Answer tasks until there are no more. None is the answer where planning fails, or would change other nests."""
    gc.disable()                                            # it does not live for long
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    pickle.dump(None, answers)
    answers.flush()
    while True:
        try:
            task = pickle.load(requests)                    # of the process that started this one
        except EOFError:
            return
        pickle.dump(planned(task), answers)
        answers.flush()


def planned(task: Task) -> Answer | None:
    """The nest of a task, planned."""
    planning = Planning(task.verify)
    draft = Draft(task.program, task.choices, task.likely, planning)
    draft.begun = task.begun
    try:
        with counted(Work(BUDGET)) as work:
            nest_and_copy(draft, name=task.name, machine=task.machine)
    except Exception:                                       # it is planned again, where its faults are told
        return None
    schedule = draft.program.first(Schedule)
    if schedule is not None and any(step[0] == "flatten" for step in schedule.steps):
        return None                                         # of an argument, which others read too
    return Answer(draft.program, tuple(planning.log), draft.asked, work.spent)
