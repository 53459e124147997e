"""A Python function as what a spec says: its parameters, and its body as a text. It is parsed, never executed.

What a body uses of the module around it becomes part of the text: numbers that are constants there, functions of numpy
under other names, and other functions, which are written before the body.
"""
from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from .. import argument_checks
from ..errors import CatenError, Diagnostic, Place, amount
from ..frozen import frozen
from .body_text import BodyText, place

KNOWN = frozenset(vars(builtins))                    # what these mean in a body, the evaluator of bodies says
MODULES = {"numpy": "np", "math": "math", "numpy.linalg": "np.linalg", "numpy.fft": "np.fft"}       # in bodies
NUMBERS = (bool, int, float, str, type(None))
MAY_BE_SEVERAL = (ast.Call, ast.List, ast.ListComp, ast.IfExp)       # values that a function returns


@frozen
class Function:
    """`parameters`: as Python has them. `annotations`: by parameter, and `return`. `changed`: the parameters whose
    elements the body changes. `returned`: how many values it is written to return, 0 where only the body can say, as in
    `return np.modf(x)`; None where it returns nothing. `names_returned`: the names that each `return` begins with.
    `names`: all names that the body uses. `places`: of parameters."""

    name: str
    file: str
    doc: str
    parameters: tuple[inspect.Parameter, ...]
    annotations: Mapping[str, Any]
    changed: frozenset[str]
    returned: int | None
    names_returned: tuple[str, ...]
    names: frozenset[str]
    body: BodyText
    place: Place
    places: Mapping[str, Place]

    def returns_first(self, names: Sequence[str]) -> bool:
        """Does every `return` begin with these names?"""
        return self.names_returned[:len(names)] == tuple(names)


def fail(code: str, message: str, at: Place | None, hint: str | None = None) -> NoReturn:
    raise CatenError(Diagnostic(code, message, at, hint))


def read_function(function: Callable[..., Any]) -> Function:
    """Read a function. E671 if it has no source, or is none that a body can be."""
    node, lines = _parsed(function)
    own = inspect.unwrap(function)
    at = lines.at(node, "def ")
    for a in (node.args.vararg, node.args.kwarg):
        if a is not None:
            fail("E671", f"'{node.name}' takes any number of arguments", lines.at(a), "give each parameter a name")
    parameters = tuple(inspect.signature(own).parameters.values())
    try:
        annotations = inspect.get_annotations(own, eval_str=True)
    except Exception as problem:                     # whatever the text of an annotation raises
        fail("E671", f"an annotation of '{node.name}' cannot be evaluated: {problem}", at)
    body = BodyText()
    names = frozenset([n.id for n in ast.walk(node) if isinstance(n, ast.Name)])
    _Surroundings(body).add(own, node, lines, frozenset([p.name for p in parameters]))
    statements = lines.statements(node)
    for text, line, column in statements:
        body.add(text, lines.file, line, column)
    places = {a.arg: lines.at(a) for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    arrays = frozenset([p.name for p in parameters if p.kind is not p.KEYWORD_ONLY])
    return Function(node.name, lines.file, inspect.getdoc(own) or "", parameters, annotations,
                    arrays & _changed(node, lines), _returned(node, lines), _names_returned(node), names, body, at,
                    places)


class _Lines:
    """The lines of a function in its file."""

    def __init__(self, file: str, first: int, lines: list[str]) -> None:
        self.file, self.first = file, first
        text = "".join(lines)
        dedented = textwrap.dedent(text)
        self.indent = len(lines[0]) - len(lines[0].lstrip())
        self.lines = dedented.split("\n")

    def at(self, node: ast.AST, word: str = "") -> Place:
        """The place of a node; of the word after `word` in its line."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if word and word in self.lines[line - 1]:
            column = self.lines[line - 1].index(word) + len(word)
        return place(self.file, self.first + line - 1, self.indent + column + 1)

    def statements(self, node: ast.FunctionDef) -> Iterator[tuple[str, int, int]]:
        """The lines of its body without a documentation text and without their indentation, each with line and
        column."""
        body = node.body
        if ast.get_docstring(node, clean=False) is not None:
            body = body[1:]
        if not body:
            yield "pass", self.first + node.lineno - 1, 1
            return
        first, column, last = body[0].lineno, body[0].col_offset, node.end_lineno or body[-1].lineno
        for n in range(first, last + 1):
            line = self.lines[n - 1]
            own = column if n == first else min(column, len(line) - len(line.lstrip()))
            yield line[own:], self.first + n - 1, self.indent + own + 1


def _parsed(function: Any) -> tuple[ast.FunctionDef, _Lines]:
    """The definition of a function, and its lines."""
    own = inspect.unwrap(function)
    name = getattr(function, "__name__", repr(function))
    if not isinstance(own, FunctionType):
        fail("E671", f"caten.op takes a function that 'def' makes, not {name}", None)
    try:
        source, first = inspect.getsourcelines(own)
    except (OSError, TypeError):
        fail("E671", f"the source of '{name}' cannot be read", None, "define it in a file, or in a notebook's cell")
    lines = _Lines(inspect.getsourcefile(own) or own.__code__.co_filename, first, source)
    try:
        tree = ast.parse("\n".join(lines.lines)).body[0]
    except (SyntaxError, IndexError):
        tree = ast.Pass()
    if not isinstance(tree, ast.FunctionDef):
        fail("E671", f"caten.op takes a function that 'def' makes, not {'a lambda' if '<' in name else name}",
             place(lines.file, first, 1))
    return tree, lines


def _changed(node: ast.FunctionDef, lines: _Lines) -> set[str]:
    """The parameters of which elements are changed: `x[i] = …`, `x += …`, `np.add.at(x, …)`. From `x = …` on, the name
    stands for an array of the function's own. E671 if an array of the caller's is changed before."""
    changed, own = dict[str, ast.expr | ast.stmt](), dict[str, ast.expr | ast.stmt]()
    for n in sorted(_nodes(node), key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
        match n:
            case ast.Subscript(ctx=ast.Store()):
                if isinstance(root := _root(n), ast.Name):
                    changed.setdefault(root.id, n)
            case ast.AugAssign(target=ast.Name(id=name)):
                changed.setdefault(name, n)
            case ast.Call(func=ast.Attribute(attr="at"), args=[ast.Name(id=name), *_]):
                changed.setdefault(name, n)
            case ast.Assign(targets=targets):
                own |= {t.id: n for target in targets for t in ast.walk(target)
                        if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store) and t.id not in own}
            case ast.For(target=target) | ast.AnnAssign(target=ast.Name() as target):
                own |= {t.id: n for t in ast.walk(target) if isinstance(t, ast.Name) and t.id not in own}
    for name in changed.keys() & own.keys() & {a.arg for a in (*node.args.posonlyargs, *node.args.args)}:
        first, new = [(n.lineno, n.col_offset) for n in (changed[name], own[name])]
        if first < new:
            fail("E671", f"'{name}' is changed in place, and stands for something else later", lines.at(own[name]),
                 "take another name for the new value")
        del changed[name]
    return set(changed)


def _root(node: ast.expr) -> ast.expr:
    """The array of `x[i][j]`, `x.T[i]` and other views."""
    match node:
        case ast.Subscript(value=value) | ast.Attribute(value=value, attr="T"):
            return _root(value)
        case ast.Call(func=ast.Attribute(value=value, attr="ravel" | "reshape" | "view"), args=_):
            return _root(value)
    return node


def _nodes(node: ast.FunctionDef) -> Iterator[ast.AST]:
    """The parts of a function without those of the functions in it."""
    stack: list[ast.AST] = list(node.body)
    while stack:
        n = stack.pop()
        yield n
        if not isinstance(n, ast.FunctionDef | ast.Lambda):
            stack += ast.iter_child_nodes(n)


def _returned(node: ast.FunctionDef, lines: _Lines) -> int | None:
    """How many values a function returns: the same number wherever it returns. 0: the body says it."""
    found: dict[int, ast.Return] = {}
    for n in _nodes(node):
        if isinstance(n, ast.Return) and n.value is not None:
            found[_count_written(n.value)] = n
        elif isinstance(n, ast.Yield | ast.YieldFrom | ast.Await):
            fail("E671", f"'{node.name}' is a generator, which has no kernel", lines.at(n))
    counts = sorted([count for count in found if count])
    if len(counts) > 1:
        fail("E671", f"'{node.name}' returns {amount(counts[0], 'value')} here and {counts[1]} there",
             lines.at(found[counts[1]]))
    for value in found.values():
        if not _ends_with_return(node.body):
            fail("E671", f"'{node.name}' returns a value here, and may end without one", lines.at(value),
                 "return a value at its end, too")
    return max(found, default=None)


def _count_written(value: ast.expr) -> int:
    """The number of values that are returned; 0 for an expression that may be a tuple, and where `*parts` is among
    them."""
    if isinstance(value, ast.Tuple):
        return 0 if any(isinstance(part, ast.Starred) for part in value.elts) else len(value.elts)
    return 0 if isinstance(value, MAY_BE_SEVERAL) else 1


def _ends_with_return(statements: Sequence[ast.stmt]) -> bool:
    """Is the end of these statements never reached?"""
    match statements[-1] if statements else None:
        case ast.Return():
            return True
        case ast.If(body=body, orelse=orelse):
            return _ends_with_return(body) and _ends_with_return(orelse)
        case ast.For(orelse=orelse):
            return _ends_with_return(orelse)
    return False


def _names_returned(node: ast.FunctionDef) -> tuple[str, ...]:
    """The names that every `return` begins with."""
    found: list[list[str]] = []
    for n in _nodes(node):
        if isinstance(n, ast.Return) and n.value is not None:
            values = n.value.elts if isinstance(n.value, ast.Tuple) else [n.value]
            found.append([getattr(v, "id", "") for v in takewhile(lambda v: isinstance(v, ast.Name), values)])
    return tuple([first[0] for first in takewhile(lambda each: len(set(each)) == 1, zip(*found, strict=False))])


class _Surroundings:
    """What bodies use of the modules around them, as statements before the body."""

    def __init__(self, body: BodyText) -> None:
        self.body = body
        self.known: dict[str, Any] = {}

    def add(self, function: FunctionType, node: ast.FunctionDef, lines: _Lines, own: frozenset[str]) -> None:
        """The statements that give meaning to the free names of a function."""
        given = inspect.getclosurevars(function)
        outer = {**given.globals, **given.nonlocals}
        own |= frozenset(function.__code__.co_varnames)
        for n in _loads(node):
            name = n.id
            if name not in outer or name in own:
                continue
            value = outer[name]
            if name in self.known:
                if self.known[name] is not value:
                    fail("E672", f"'{name}' is not the same here as in a function that this one calls", lines.at(n))
                continue
            self.known[name] = value
            self.define(name, value, lines, n)

    def define(self, name: str, value: Any, lines: _Lines, at: ast.Name) -> None:
        line = lines.first + at.lineno - 1
        if isinstance(value, ModuleType) and value.__name__ in MODULES:
            if name != MODULES[value.__name__]:
                self.body.add(f"{name} = {MODULES[value.__name__]}", lines.file, line)
        elif is_constant(value):
            self.body.add(f"{name} = {spelled(value)}", lines.file, line)
        elif (known := _of_a_module(value)) is not None:
            self.body.add(f"{name} = {known}", lines.file, line)
        elif isinstance(value, FunctionType) or hasattr(value, "__wrapped__"):
            self.function(name, inspect.unwrap(value))
        else:
            fail("E672", f"'{name}' is {argument_checks.described(value)}; of the module around it, a body knows "
                 "numbers, functions, numpy and math", lines.at(at), "make it a parameter")

    def function(self, name: str, value: Any) -> None:
        """Another function, as one of the body."""
        node, lines = _parsed(value)
        parameters = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if node.args.defaults or node.args.kwonlyargs or node.args.vararg or node.args.kwarg:
            fail("E671", f"'{node.name}' is called by a body, and takes more than plain names: no defaults, *args or "
                 "**kwargs", lines.at(node, "def "))
        self.add(value, node, lines, frozenset(parameters))
        self.body.add(f"def {name}({', '.join(parameters)}):", lines.file, lines.first + node.lineno - 1)
        for text, line, column in lines.statements(node):
            self.body.add(f"    {text}", lines.file, line, column - 4)


def _loads(node: ast.FunctionDef) -> Iterator[ast.Name]:
    """The names that the body of a function reads, each once, in their order."""
    found: dict[str, ast.Name] = {}
    for statement in node.body:
        for n in ast.walk(statement):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                found.setdefault(n.id, n)
    return iter(sorted(found.values(), key=lambda n: (n.lineno, n.col_offset)))


def is_constant(value: Any) -> bool:
    """Is it a number, a text, or a tuple or list of them?"""
    if isinstance(value, tuple | list):
        return all(is_constant(each) for each in value)
    return isinstance(value, NUMBERS)


def spelled(value: Any) -> str:
    """A constant as a body writes it."""
    if isinstance(value, float) and value != value:
        return "np.nan"
    if isinstance(value, float) and abs(value) == float("inf"):
        return "np.inf" if value > 0 else "-np.inf"
    if isinstance(value, tuple | list):
        inner = ", ".join([spelled(each) for each in value])
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    return repr(value)


def _of_a_module(value: Any) -> str | None:
    """The path to a function or a type of NumPy, or of `math`, in a body."""
    name = getattr(value, "__name__", "")
    found = (path for module, path in MODULES.items() if name and getattr(import_module(module), name, None) is value)
    return next((f"{path}.{name}" for path in found), None)
