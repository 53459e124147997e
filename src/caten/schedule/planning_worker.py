"""A process that plans nests: tasks on its standard input, answers on its output, both pickled."""
from __future__ import annotations

import gc
import pickle
import sys

from .autoscheduler import planned_apart


def serve() -> None:
    """Answer tasks until there are no more."""
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
        pickle.dump(planned_apart(task), answers)
        answers.flush()
