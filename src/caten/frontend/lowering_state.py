"""Lowering state of a body: the results so far, and the text being read."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from ..core.expr import FALSE, TRUE, Expr
from ..core.node import Node
from ..core.program import At
from ..core.text import Atom, Form, Sexp
from ..errors import CatenError, Diagnostic, Place, error
from ..frozen import frozen
from ..loop.simplify import simplify
from ..loop.statements import Aref, For, Stmt
from .composite import Callees, Composite, fold
from .scope import Names, Scope, Variable, is_identifier
from .typing import Spot, Term, Typing, Value, spell


class WholeTensors(Protocol):
    """Reads statements over whole tensors."""

    def is_one(self, form: Sexp, scope: Scope) -> bool:
        """Does a statement set a whole tensor, or compute with one?"""

    def statements(self, f: Frame, form: Form, scope: Scope) -> list[Stmt]:
        """Its loops. Raises CatenError."""

    def returned(self, f: Frame, composite: Composite, form: Sexp, outputs: Scope, scope: Scope) -> list[Stmt] | None:
        """The loops of `(return e…)` with expressions over whole tensors; None if there are none."""


Handler = Callable[["Frame", Form, Scope], list[Stmt]]

MAX_CALLS = 1000                      # inlined calls in one body
MAX_REPORTS = 100                     # refusals of one body before reading stops
MAX_STATEMENTS = 2000                 # of one body, callees included
MAX_NESTING = 64                      # nested statement lists, callees included


@dataclass
class Work:
    """The results of one pass over a body and the bodies that it calls.

    `kinds`: the type of each local so far, kept between passes. `written`: buffers that a statement sets or changes.
    `unset`: for each element of a pure output that is read, the refusal in case nothing can have set it.
    """

    names: Names
    kinds: dict[tuple[int, ...], str]
    sizes: frozenset[str]
    callees: Callees
    file: str
    statements: Mapping[str, Handler]
    positions: dict[Node, At] = field(default_factory=dict)
    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)
    requirements: list[Expr] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    unset: dict[Aref, Diagnostic] = field(default_factory=dict)
    loops: list[For] = field(default_factory=list)             # around the statement that is being read
    whole: WholeTensors | None = None                          # reads statements over whole tensors; None: refuse them
    calls: int = 0
    count: int = 0
    inlined: int = 0                                           # of these, those of callees


@frozen
class Frame:
    """The text being read: a composite's body, or that of a callee at `path` of call sites, called by `callers`."""

    work: Work
    spot: Spot
    typing: Typing
    path: tuple[int, ...] = ()
    callers: tuple[str, ...] = ()
    called_at: Place | None = None
    nesting: int = 0

    def deeper(self, pos: int) -> Frame:
        """The frame of a nested statement list; E239 if there are too many."""
        if self.nesting >= MAX_NESTING:
            self.fail("E239", f"statements are nested deeper than {MAX_NESTING}", pos,
                      "compute a part of it in a statement of its own")
        return replace(self, nesting=self.nesting + 1)

    def fail(self, code: str, message: str, pos: int, hint: str | None = None) -> NoReturn:
        raise error(code, message, self.spot(pos), hint=hint)

    def report(self, problem: CatenError) -> None:
        """Record a refusal and go on with the next statement."""
        self.work.diagnostics.update(dict.fromkeys(problem.diagnostics))

    def mark(self, node: Node, pos: int) -> None:
        """Record the source position of a node; a callee's text in another file counts as its call."""
        if node in self.work.positions:
            return
        place = self.spot(pos)
        if place.file != self.work.file and self.called_at is not None:
            place = self.called_at
        self.work.positions[node] = At.of(place.line, place.column, node)

    def require(self, condition: Expr, pos: int, contradiction: str) -> None:
        """Require a condition at every call: nothing if it always holds, E315 if it never can."""
        required = simplify(condition)
        if required is FALSE:
            self.fail("E315", contradiction, pos)
        if required is not TRUE and required not in self.work.requirements:
            self.work.requirements.append(required)

    # parts of forms

    def arity(self, form: Form, low: int, high: int | None, usage: str) -> None:
        """E222 unless the form has `low` to `high` parts after its head."""
        given = len(form) - 1
        if given < low or (high is not None and given > high):
            wanted = str(low) if high == low else f"at least {low}" if high is None else f"{low} to {high}"
            self.fail("E222", f"({form[0]} …) takes {wanted} {'part' if wanted == '1' else 'parts'}, not {given}",
                      form.pos, f"write {usage}")

    def identifier(self, form: Sexp, usage: str) -> str:
        """A name that is being declared."""
        if not isinstance(form, Atom):
            self.fail("E223", "expected a name here", form.pos, f"write {usage}")
        if not is_identifier(form):
            self.fail("E236", f"{str(form)!a} cannot be a name", form.pos,
                      "a name has ASCII letters, digits, _ and -, and does not start with a digit")
        return str(form)

    # locals

    def read(self, local: Variable, pos: int) -> Term:
        """The value of a local; weak while only weak numbers are assigned to it."""
        return Value(self.work.kinds[local.key], pos, expr=self.place(local))

    def place(self, local: Variable) -> Aref:
        return Aref(local.name, (), self.typing.storage(self.work.kinds[local.key]))

    def meet(self, local: Variable, term: Term) -> None:
        """Join the type of a local with that of another assigned value."""
        old = self.work.kinds.get(local.key, term.kind)
        try:
            self.work.kinds[local.key] = self.typing.join_kinds(old, term.kind, term.pos, f"the local '{local.name}'")
        except CatenError as problem:
            if problem.diagnostics[0].code == "E302":
                raise
            self.fail("E316", f"the local '{local.name}' is {spell(old)}, but this value is {spell(term.kind)}",
                      term.pos,
                      f"convert it: (cast {spell(old)} …)")


def same_name(form: object, name: str) -> bool:
    """True if the form is this name in any spelling."""
    return isinstance(form, Atom) and fold(form) == fold(name)
