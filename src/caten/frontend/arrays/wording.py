"""How messages of type errors spell operators and conversions in Python."""
from __future__ import annotations

from ...core.dtypes import DTYPES
from ...core.scalars import OPERATORS
from ..typing import Wording, spell

SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "and": "&",
           "or": "|", "xor": "^", "not": "~", "shl": "<<", "shr": ">>", "neg": "-", "lt": "<", "le": "<=", "gt": ">",
           "ge": ">=", "eq": "==", "ne": "!="}
NUMPY_WORDS = {**{spell(d.name): d.numpy for d in DTYPES.values()}, "int": "int64", "bool": "bool_"}


class PythonWording(Wording):
    """`a + b`, `np.exp`, `.astype(np.float32)`."""

    compare, make_bool = "compare it: x != 0", "compare it, x != 0, or write True or False"
    round_down = "a // b rounds down; .astype(np.float32) keeps the fraction"
    to_index = "a // b divides integers; .astype(np.int64) converts"
    where = "np.where"

    def operator(self, fn: str) -> str:
        if fn in SYMBOLS:
            return SYMBOLS[fn]
        return f"np.{OPERATORS[fn].numpy}" if OPERATORS[fn].numpy else fn

    def cast(self, word: str, value: str = "…") -> str:
        return f"{value if value == 'x' else ''}.astype(np.{NUMPY_WORDS.get(word, word)})"
