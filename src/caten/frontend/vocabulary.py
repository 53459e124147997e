"""The vocabulary of the Lisp body language: functions by their spelling, constants, and familiar words from other
languages."""
from __future__ import annotations

import math

from ..core.scalars import OPERATORS

CONSTANTS: dict[str, float | bool] = {"pi": math.pi, "inf": math.inf, "nan": math.nan, "t": True, "nil": False}

# Spelling in a body -> operator, where it differs from the operator table.
ALIASES: dict[str, str] = {"logand": "and", "logior": "or", "logxor": "xor", "lognot": "not", "wmma": "fma"}
FUNCTIONS: dict[str, str] = {**{row.spelling: row.name
                                for row in OPERATORS.values() if row.name not in ("where", "neg")}, **ALIASES}

VARIADIC = ("add", "sub", "mul", "div", "max", "min", "fmax", "fmin", "and", "or", "xor")

# Not supported, by design.
UNBOUNDED = ("while", "do-while", "until", "break", "continue", "return-from", "goto", "tagbody", "recur")

# Words from other languages -> ours.
HABITS: dict[str, str] = {
    "==": "=", "!=": "/=", "<>": "/=", "eq": "=", "eql": "=", "equal": "=", "lt": "<", "gt": ">", "le": "<=",
    "ge": ">=", "ne": "/=",
    "%": "mod", "//": "floordiv", "**": "pow", "expt": "pow", "power": "pow", "rem": "truncmod",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "neg": "-",
    "&&": "and", "||": "or", "!": "not", "&": "logand", "|": "logior", "^": "logxor", "~": "lognot", "<<": "shl",
    ">>": "shr", "ash": "shl",
    "maximum": "max", "minimum": "min", "fabs": "abs", "ln": "log", "arctan": "atan", "arcsin": "asin",
    "arccos": "acos",
    "ceiling": "ceil", "truncate": "trunc", "rint": "round", "coerce": "cast", "ifelse": "where", "select": "where",
    "setq": "set", "set!": "set", "define": "set", "defvar": "set", "for": "dotimes", "range": "dotimes",
    "do": "dotimes",
    "begin": "progn", "block": "progn",
    "case": "cond", "elif": "cond", "else": "if", "elt": "aref", "svref": "aref", "nth": "aref", "make-array": "array",
    "funcall": "call",
    "+=": "incf", "-=": "decf", "*=": "mulcf"}
