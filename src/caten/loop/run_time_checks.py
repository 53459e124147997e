"""Run-time checks found so far: conditions for entry, guards, names, and source positions for their messages."""
from __future__ import annotations

import os
import re

from ..core.expr import Const, Expr, Op, Var
from ..core.node import Node
from ..core.program import At, Buffer, Check, Ensure, Param, Program, Source, Unchecked
from ..errors import CatenError, Place, error
from .affine import Linear, canonical, text_of
from .context import Context


class CheckRows:
    """The check rows of one program, in the order of their numbers, and facts about its names.

        again   a row was added that the walk should have known from its start
        depths  for each name, the number of loops and branches around its definition
        lets    the values of index `let`s over the names on which they depend
    """

    def __init__(self, program: Program):
        self.original = program
        self.rows: list[tuple[Expr | None,
                              str]] = []         # row n - 1: the condition of an `ensure`, None for a guard in the body
        self.kept = 0
        self.again = False
        self.ensured: list[Expr] = []
        self.shapes: dict[str, tuple[Expr, ...]] = {b.name: b.shape for b in program.all(Buffer)}
        self.entry_names = {p.declares()[0]
                            for p in program.all(Param) if hasattr(p, "declares") and not isinstance(p, Buffer)}
        self.names = {n.declares()[0] for n in program.unique() if hasattr(n, "declares")}
        self.places = {a.what: a for a in reversed(program.all(At))}
        source = program.first(Source)
        self.file = source.file if source is not None else ""
        self.guards_indices = program.first(Unchecked) is None
        self.depths: dict[str, int] = {}
        self.lets: dict[str, Linear] = {}
        self.taken: set[str] = set()

    @property
    def program(self) -> Program:
        """The program with the conditions found so far."""
        return self.original.adding(*[Ensure(n, cond) for n, (cond, _) in enumerate(self.rows, 1) if cond is not None])

    def facts(self) -> list[Node]:
        return [f for n, (cond, text) in enumerate(self.rows, 1)
                for f in ((Ensure(n, cond),) if cond is not None else ()) + (Check(n, text),)]

    def ensure(self, cond: Expr, text: str) -> None:
        if not any(known is cond for known, _ in self.rows):
            self.rows.append((cond, text))
            self.ensured.append(cond)

    def refuse_contradictions(self) -> None:
        """Raise E402 if the bound sizes alone decide that no call can succeed."""
        context = Context()
        for cond, text in self.rows:
            if cond is not None:
                if context.refutes(cond):
                    raise self.error("E402", text_of(cond), f"every call would fail: {text}",
                                     "change the -D binding or the condition")
                context = context.given(cond)

    def start(self) -> None:
        """Begin a walk: forget the insertions of the previous one."""
        self.rows = [row for row in self.rows if row[0] is not None]
        self.again, self.ensured, self.depths, self.lets, self.taken = False, [], {}, {}, set()

    def expanded(self, form: Linear) -> Linear:
        """The form with named values in place of their names."""
        for _ in range(32):
            named = next((a for a in form.atoms() if isinstance(a, Var) and a.name in self.lets), None)
            if named is None:
                return form
            form = form.replace(named, self.lets[named.name])
        return form

    def fresh(self, stem: str) -> str:
        name, n = stem, 1
        while name in self.names or name in self.taken:
            n += 1
            name = f"{stem}_{n}"
        self.taken.add(name)
        return name

    def spot(self, what: str) -> str:
        """`gemm.toml:8:17: `, or nothing if the position is not known."""
        at = self.places.get(what)
        return f"{os.path.basename(self.file)}:{at.line}:{at.column}: " if at is not None else ""

    def error(self, code: str, what: str, message: str, hint: str) -> CatenError:
        """At the place of `what`; of what an operator that is called brings along, at the name of this one."""
        at = self.places.get(what) or next((self.places[k] for k in self.places if k.startswith("(op ")), None)
        return error(code, message, Place(self.file, at.line, at.column) if at is not None else None, hint=hint)


def from_end(at: Expr, extent: Expr) -> Expr | None:
    """The index as it is written, if this is one that counts from the end where it is negative, as NumPy's do."""
    match at:
        case Op("where", (Op("lt", (x, Const(0))), y, z)) if x is z and canonical(y) is canonical(x + extent):
            return x
    return None


def negated_text(extent: Expr) -> str:
    """The negation of an extent as messages spell it: -5, -N, or (- (+ N 1))."""
    return f"-{body_text(extent)}" if isinstance(extent, Const | Var) else f"(- {body_text(extent)})"


def body_text(what: Node | str) -> str:
    """An expression as a body spells it: scalars by name, `(- x)` for the negation."""
    text = what if isinstance(what, str) else text_of(what)
    return re.sub(r"\(aref (\w+)\)", r"\1", text).replace("(neg ", "(- ")
