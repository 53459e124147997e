"""Compile graphs and run them. A graph like one that was compiled before is only run."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caten.compiler import Compilation
from caten.options import Options
from caten.runtime.call import Operator

from .assembly import Key, assembled, key_of, leaves_of
from .graph import Call, Ref

COMPILED: dict[Key, Operator] = {}


def run(wanted: Sequence[Ref]) -> None:
    """Compute these results, if they are not there, in one call of one library."""
    todo = [r for r in dict.fromkeys(wanted) if r.array is None and isinstance(r.node, Call)]
    if not todo:
        return
    calls, leaves = leaves_of(todo)
    key = key_of(todo, calls, leaves)
    operator = COMPILED.get(key)
    if operator is None:
        program = assembled(todo, calls, leaves)
        built = Compilation([program], Options()).artifact()
        operator = built.runtime.load(built.artifact, built.manifest)
        assert isinstance(operator, Operator)
        COMPILED[key] = operator
    made: Any = operator(*[r.array for r in leaves])
    for r, array in zip(todo, made if isinstance(made, tuple) else (made,), strict=True):
        assert isinstance(r.node, Call)
        result = np.asarray(array)
        result.flags.writeable = False
        r.node.computed[r.index] = result
