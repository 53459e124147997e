"""The textual form of every IR level: one S-expression reader, one printer, driven by the fields of the node classes.

A node prints as `(head field …)`. A tuple field in last place is spread, elsewhere it is a list of its own; a `str`
field is a symbol, a field annotated `Text` a quoted string, an `int` a number. Trailing fields that equal their default
are left out. A class with another spelling overrides `to_form` and `of_form`."""
from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

from ..errors import Place, did_you_mean, error
from .expr import Conversion, Expr, Hole, Op, Var, read_atom
from .node import HEADS, KINDS, PRINTERS, Node, substitute
from .scalars import BY_SPELLING

Text = str                     # annotation of a field that prints as a quoted string

MAX_DEPTH = 256                # nesting of parentheses
LEAST_SHARED = 6               # nodes of a part that gets a name where it occurs several times
MAX_FORMS = 1_000_000          # atoms and lists in one text

_TOKEN = re.compile(r"""(?P<skip>(?:\s+|;[^\n]*)+)|(?P<open>\()|(?P<close>\))|"(?P<str>(?:[^"\\]|\\.)*)"|"""
                    r"""(?P<atom>[^\s()";]+)""", re.DOTALL)
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Atom(str):
    """A symbol or number as written; `pos` is its offset in the text."""

    pos: int = 0


class Quoted(str):
    """A quoted string; `pos` is the offset of its opening quote."""

    pos: int = 0


class Form(tuple[Any, ...]):
    """A parenthesised list; `pos` and `end` are the offsets of its parentheses."""

    pos: int = 0
    end: int = 0


Sexp = Atom | Quoted | Form


def place_in(text: str, pos: int, file: str) -> Place:
    """Line and column of an offset."""
    start = text.rfind("\n", 0, pos) + 1
    return Place(file, text.count("\n", 0, pos) + 1, pos - start + 1, text[start:].split("\n", 1)[0])


def read_forms(text: str, where: Callable[[int], Place] | None = None, file: str = "<text>",
               depth: int = MAX_DEPTH) -> list[Sexp]:
    """Text -> its top-level forms, with offsets. Raises CatenError E201…E204 with a place made by `where` (or by line
    and column); E204 where more than `depth` parentheses are inside each other."""
    spot = where or (lambda pos: place_in(text, pos, file))
    stack: list[list[Any]] = [[]]
    opened: list[int] = []
    pos = count = 0
    while pos < len(text):
        m = _TOKEN.match(text, pos)
        if m is None:
            raise error("E203", "this string is never closed", spot(pos), hint='close it with a second "')
        kind = m.lastgroup
        if kind != "skip":
            count += 1
            if count > MAX_FORMS:
                raise error("E204", f"more than {MAX_FORMS} symbols and lists", spot(pos))
        if kind == "open":
            if len(opened) >= depth:
                raise error("E204", f"parentheses are nested deeper than {depth}", spot(pos))
            stack.append([])
            opened.append(pos)
        elif kind == "close":
            if not opened:
                raise error("E202", "this ) closes nothing", spot(pos), hint="remove it, or add the ( it belongs to")
            form = Form(stack.pop())
            form.pos, form.end = opened.pop(), pos
            stack[-1].append(form)
        elif kind == "atom":
            atom = Atom(m["atom"])
            atom.pos = pos
            stack[-1].append(atom)
        elif kind == "str":
            quoted = Quoted(re.sub(r"\\(.)", lambda e: _ESCAPES.get(e[1], e[1]), m["str"], flags=re.DOTALL))
            quoted.pos = pos
            stack[-1].append(quoted)
        pos = m.end()
    if opened:
        raise error("E201", "this ( is never closed", spot(opened[-1]), hint="add the missing )")
    return stack[0]


def form_of(value: Any, kind: str = "") -> Any:
    """Node or field value -> nested tuples of strings."""
    if isinstance(value, Node):
        return form_of(value.to_form()) if hasattr(value, "to_form") else default_form(value)
    if isinstance(value, tuple):
        return tuple(form_of(v) for v in value)
    if kind.startswith("Text"):
        return f'"{str(value).translate(_ESCAPED)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None or value == "" else str(value)


def default_form(node: Node) -> tuple[Any, ...]:
    """`(head field …)` from the declared fields."""
    names = [f for f in node._fields if f not in node._hidden and f != node._named]
    while names and names[-1] in node._defaults and getattr(node, names[-1]) == node._defaults[names[-1]]:
        names.pop()
    visible = [f for f in node._fields if f not in node._hidden and f != node._named]
    out: list[Any] = [node.head]
    for name in names:
        value = getattr(node, name)
        if isinstance(value, tuple) and name == visible[-1]:
            out.extend(form_of(v, "Text" if "Text" in node._types[name] else "") for v in value)
        else:
            out.append(form_of(value, node._types[name]))
    if node._named and getattr(node, node._named):
        out.append((node._named, *[form_of(v) for v in getattr(node, node._named)]))
    return tuple(out)


def flat(form: Any) -> str:
    """A form on one line."""
    return form if isinstance(form, str) else "(" + " ".join([flat(f) for f in form]) + ")"


# Heads whose later parts stand on lines of their own, and how many parts stay on the first line; `ALWAYS`, even if one
# line would do.
BLOCKS: dict[str, int] = {"for": 6, "op": 2, "tensor": 2, "loop": 2, "kernel": 2, "body": 1, "if": 2, "nest": 1,
                          "define": 2, "group": 4, "pass": 2}
ALWAYS = BLOCKS.keys() - {"if", "define", "nest"}


def show(node: Node, width: int = 110) -> str:
    """The text of a node: deterministic, read back by `read` to the identical node."""
    def fmt(form: Any, indent: int) -> str:
        if isinstance(form, str):
            return form
        if not _has_block(form) and len(line := flat(form)) + indent <= width:
            return line
        if not form:
            return "()"
        keep = BLOCKS.get(form[0], 1) if isinstance(form[0], str) else 0
        first = "(" + " ".join([flat(f) for f in form[:keep]])
        pad = "\n" + " " * (indent + (2 if keep else 1))
        rest = [fmt(f, indent + (2 if keep else 1)) for f in form[keep:]]
        return first + ("" if keep else rest.pop(0) if rest else "") + "".join([pad + r for r in rest]) + ")"
    return fmt(form_of(node), 0)


PRINTERS.append(show)


def _has_block(form: Any) -> bool:
    if isinstance(form, str):
        return False
    return bool(form) and ((isinstance(form[0], str) and form[0] in ALWAYS and len(form) > BLOCKS[form[0]])
                           or any(_has_block(f) for f in form))


def parse(form: Any, spot: Callable[[int], Place] | None = None) -> Any:
    """A form -> the node it spells. Types of variables are not known yet: `core.program.resolve` fills them in."""
    where = spot or (lambda pos: Place("<text>", 1, pos + 1))
    if isinstance(form, str):
        return parse_atom(form, where)
    if not form or not isinstance(form[0], str):
        raise error("E210", "expected (head …) here", where(getattr(form, "pos", 0)))
    if form[0] == "let" and len(form) == 3 and isinstance(form[1], tuple):
        return _parse_let(form, where)
    if (row := BY_SPELLING.get(form[0])) is not None:
        if len(form) - 1 != row.arity:
            raise error("E212", f"({form[0]} …) takes {row.arity} operands, not {len(form) - 1}", where(form.pos))
        return of_right_kinds(Op(row.name, tuple([parse(f, where) for f in form[1:]])), form, where)
    cls = HEADS.get(form[0])
    if cls is None:
        raise error("E211", f"unknown head '{form[0]}'", where(form.pos), hint=did_you_mean(form[0], list(HEADS)))
    if hasattr(cls, "of_form"):
        try:
            return of_right_kinds(cls.of_form(form, lambda f: parse(f, where)), form, where)
        except (ValueError, TypeError, IndexError, KeyError) as problem:
            raise error("E212", f"malformed ({form[0]} …): {problem}", where(form.pos)) from None
    return of_right_kinds(default_parse(cls, form, where), form, where)


def shared(e: Expr) -> Any:
    """What an expression prints as: `(let ((t0 part)…) e)` if larger parts occur several times in it, with a name for
    each, the parts of other parts first; else the expression itself. `parse` gives back the same expression."""
    users: dict[Node, int] = {}
    for n in e.unique():
        for child in n.children:
            users[child] = users.get(child, 0) + 1
    parts = {n for n, times in users.items() if times > 1 and isinstance(n, Op | Conversion)
             and n.written_out >= LEAST_SHARED}
    if not parts:
        return e
    taken = {part for n in e.unique() for part in n.parts if isinstance(part, str)}      # of variables and arrays
    fresh = (name for name in map("t{}".format, count()) if name not in taken)
    memo: dict[Node, Node] = {}
    bindings: list[tuple[str, Any]] = []

    def go(n: Node) -> Node:
        if n not in memo:
            memo[n] = made = n.map(go)
            if n in parts and isinstance(made, Expr):
                name = next(fresh)
                bindings.append((name, made))
                memo[n] = Var(name, made.dtype)
        return memo[n]
    inner = go(e)
    return ("let", tuple(bindings), inner)


def _parse_let(form: Form, where: Callable[[int], Place]) -> Any:
    """`(let ((t0 part)…) e)`: the expression with the parts in place of their names. Later parts may use earlier
    names."""
    parts: dict[Any, Any] = {}
    for binding in form[1]:
        if not isinstance(binding, tuple) or len(binding) != 2 or not isinstance(binding[0], str):
            raise error("E212", "malformed (let …): expected (name expression) here",
                        where(getattr(binding, "pos", form.pos)))
        parts[Var(binding[0])] = substitute(parse(binding[1], where), parts)
    return substitute(parse(form[2], where), parts)


def of_right_kinds(node: Any, form: Form, where: Callable[[int], Place]) -> Any:
    """The node, where each of its fields holds what its annotation says (a hole stands for anything). Raises CatenError
    E212."""
    for field, kinds in _kinds(type(node)):
        held = getattr(node, field)
        for value in _flattened(held) if isinstance(held, tuple) else (held,):
            if value is not None and not isinstance(value, (*kinds, Hole)):
                wanted = " or ".join([KIND_NAMES.get(kind.__name__, kind.__name__.lower()) for kind in kinds])
                raise error("E212", f"malformed ({form[0]} …): '{field}' holds {flat(form_of(value))[:60]}, "
                                    f"which is no {wanted}",
                            where(form.pos))
    return node


KIND_NAMES = {"Expr": "expression", "Stmt": "statement", "Ref": "place"}
_CHECKED: dict[Any, list[tuple[str, tuple[type[Node], ...]]]] = {}


def _kinds(cls: type[Node]) -> list[tuple[str, tuple[type[Node], ...]]]:
    """The fields of a class that hold nodes, and the classes of these."""
    if cls not in _CHECKED:
        found = [(field, KINDS.get(re.sub(r"tuple\[|, \.\.\.|\]| \| None", "", kind), ()))
                 for field, kind in cls._types.items()]
        _CHECKED[cls] = [(field, kinds) for field, kinds in found if kinds]
    return _CHECKED[cls]


def _flattened(values: tuple[Any, ...]) -> list[Any]:
    return [v for value in values for v in (_flattened(value) if isinstance(value, tuple) else (value,))]


def parse_atom(atom: str, where: Callable[[int], Place]) -> Any:
    """A literal, a variable or a hole; E213 where the atom is none of these."""
    node = read_atom(atom)
    if node is None:
        raise error("E213", f"'{atom}' is neither a name nor a number", where(getattr(atom, "pos", 0)))
    return node


def default_parse(cls: type[Node], form: Form, where: Callable[[int], Place]) -> Node:
    """The inverse of `default_form`."""
    names = [f for f in cls._fields if f not in cls._hidden and f != cls._named]
    values: dict[str, Any] = {}
    items = list(form[1:])
    if cls._named and items and isinstance(items[-1], tuple) and items[-1][:1] == (cls._named,):
        values[cls._named] = tuple([_parse_value(f, cls._types[cls._named], where) for f in items.pop()[1:]])
    for i, name in enumerate(names):
        kind = cls._types[name]
        last = i == len(names) - 1
        if kind.startswith("tuple"):
            if not items and not last and name in cls._defaults:
                continue
            if not last and (not items or not isinstance(items[0], tuple)):
                raise error("E212", f"malformed ({cls.head} …): expected a list for '{name}'", where(form.pos))
            raw = items if last else list(items.pop(0))
            values[name] = tuple([_parse_value(f, kind, where) for f in raw])
            if last:
                items = []
        elif items:
            values[name] = _parse_value(items.pop(0), kind, where)
        elif name not in cls._defaults:
            raise error("E212", f"malformed ({cls.head} …): '{name}' is missing", where(form.pos))
    if items:
        raise error("E212", f"malformed ({cls.head} …): more parts than ({cls.head} {' '.join(names)})",
                    where(form.pos))
    return cls(**values)


def _parse_value(form: Any, kind: str, where: Callable[[int], Place]) -> Any:
    inner = kind.removeprefix("tuple[").split(",")[0].removesuffix("]") if kind.startswith("tuple[") else kind
    if inner.startswith("tuple["):
        return tuple(_parse_value(f, inner, where) for f in form)
    if inner.startswith("Text"):
        if not isinstance(form, str):
            raise error("E212", f"expected a quoted text here, not {flat(form)[:60]}", where(getattr(form, "pos", 0)))
        return str(form)
    if inner == "bool":
        return form == "true"
    optional = "None" in inner
    if optional and form == "-":
        return None
    if inner.startswith(("str", "int")):
        if not isinstance(form, str):
            raise error("E212", "expected a symbol or number here", where(getattr(form, "pos", 0)))
        if inner.startswith("str"):
            return "" if form == "-" else str(form)
        try:
            return int(form)
        except ValueError:
            raise error("E212", f"expected an integer, not '{form}'", where(getattr(form, "pos", 0))) from None
    return parse(form, where)


def read(text: str, file: str = "<text>") -> list[Any]:
    """Text -> the nodes it spells, one per top-level form (types unresolved)."""
    def spot(pos: int) -> Place:
        return place_in(text, pos, file)
    return [parse(f, spot) for f in read_forms(text, spot)]
