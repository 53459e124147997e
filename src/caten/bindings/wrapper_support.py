"""The code for calls inside a written wrapper: caten's own functions for arguments, copied as text.

So a wrapper and caten treat every argument alike. `SUPPORT` names what is copied; `PRELUDE` stands for what the copied
text imports elsewhere: errors, and formulas over sizes.
"""
from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from types import ModuleType

from .. import echo, errors
from ..calls import array_arguments, call_arguments, call_signature, scalar_arguments
from ..core import dtypes, numpy_types, size_formula, size_inference
from ..core.integer_arithmetic import BOOLS, INTEGERS
from ..core.scalars import OPERATORS

PRELUDE = '''\
Argument, Array, CatenError = Mapping[str, Any], Any, Exception


def frozen(cls):
    names = tuple(cls.__annotations__)

    def __init__(self, *values):
        self.__dict__.update(zip(names, values))
    cls.__init__, cls.__match_args__ = __init__, names
    return cls


def error(code, message, place=None, *, hint=None, notes=()):
    lines = [f"{code}: {message}", *[f"  note: {text}" for text, _ in notes], *([f"  hint: {hint}"] if hint else [])]
    return (TypeError if code in ("E700", "E701", "E702", "E708") else ValueError)("\\n".join(lines))


def out_of_memory(op, message):
    return MemoryError(f"E712: {op}: {message}")


# Formulas over sizes: `(* 2 M)`.

OPERATORS = {
%s
}
BY_SPELLING = {spelling: fn for fn, (spelling, _) in OPERATORS.items()}


class Expr:
    def walk(self):
        return [self]


@frozen
class Const(Expr):
    value: int | float


@frozen
class Var(Expr):
    name: str


@frozen
class Op(Expr):
    fn: str
    args: tuple

    def walk(self):
        return [self, *[n for a in self.args for n in a.walk()]]


@cache
def formula(text):
    return parse(iter(re.findall(r"[()]|[^\\s()]+", str(text))))


def parse(words):
    word = next(words)
    if word == "(":
        fn = BY_SPELLING[next(words)]
        if fn == "cast":
            next(words)
        return Op(fn, tuple(iter(lambda: parse(words), None)))
    if word == ")":
        return None
    if word in ("true", "false"):
        return Const(word == "true")
    if not re.match(r"[-+.\\d]|inf|nan", word):
        return Var(word)
    number = word.split(":")[0]
    return Const(int(number) if re.fullmatch(r"[-+]?\\d+", number) else float(number))


def evaluate(expr, sizes):
    match expr:
        case Const(value):
            return value
        case Var(name):
            return sizes[name]
        case Op(fn, args):
            return OPERATORS[fn][1](*[evaluate(a, sizes) for a in args])


def spell(expr):
    match expr:
        case Const(value):
            return value
        case Var(name):
            return name
        case Op(fn, args):
            return f"({OPERATORS[fn][0]} {' '.join([str(spell(a)) for a in args])})"'''

ABSENT = ("Argument", "dense", "unpacked")
CAST = ("cast", "cast", "x")

# Module, and the names of what is copied; a module without names is copied whole.
SUPPORT: tuple[tuple[ModuleType, str], ...] = (
    (errors, "amount did_you_mean"),
    (echo, "spelled"),
    (dtypes, "DType DTYPES FORMATS is_short is_packed rounded rounds_to_infinity short_bits"),
    (numpy_types, "EXTENDED numpy_dtype"),
    (size_formula, "names conjuncts solve"),
    (size_inference, "GREATEST_SIZE Dimension dimensions equations equations_in sizes_of _solved _agree"
                     " _conflict _so_far"),
    (scalar_arguments, ""),
    (array_arguments, ""),
    (call_signature, "OUT CallSignature"),
    (call_arguments, "OUT_OF_MEMORY MOST_SHAPES Solved Prepared CallArguments"),
)


@cache
def support() -> str:
    """The text of all that a wrapper needs for calls, with `CallArguments` last."""
    table = [(fn, OPERATORS[fn].spelling, BOOLS[fn] if fn in ("and", "or", "not") else INTEGERS[fn])
             for fn in size_formula.ALLOWED]
    rows = [f'    "{fn}": ("{spelling}", lambda {_letters(text)}: {text}),' for fn, spelling, text in (*table, CAST)]
    parts = [PRELUDE % "\n".join(rows), *[_copied(module, names.split()) for module, names in SUPPORT]]
    called = "|".join([module.__name__.rpartition(".")[2] for module, _ in SUPPORT])
    return re.sub(rf"\b(?:{called})\.(?=\w)", "", "\n\n\n".join(parts))


def _letters(text: str) -> str:
    return ", ".join([x for x in "xyz" if re.search(rf"\b{x}\b", text)])


def _copied(module: ModuleType, names: list[str]) -> str:
    """The source text of definitions at the top of a module, without its imports and docstring."""
    text = inspect.getsource(module)
    lines = text.splitlines()
    found: list[str] = []
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                start = min([node.lineno, *[d.lineno for d in node.decorator_list]])
                blank = "\n\n"
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                start, blank = node.lineno, "" if found and found[-1][-1] in ")}0" else "\n\n"
            case _:
                continue
        if name in names or (not names and name not in ABSENT):
            found.append(blank + "\n".join(lines[start - 1:node.end_lineno]))
    return "\n".join(found).strip("\n")
