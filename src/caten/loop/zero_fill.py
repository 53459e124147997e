"""Zero fill: an output is filled with 0 first unless every element is proven to be set. If one is proven never to be
set, at any size, the spec is refused.

    (for i 0 N 1 serial                          (for y0 0 N 1 serial (setf (aref y y0) 0.0))
      (if (< (aref x i) 0.0)               ->    (for i 0 N 1 serial
        ((setf (aref y i) 1.0))))                  (if (< (aref x i) 0.0) ((setf (aref y i) 1.0))))

An output that is also an input holds what the caller gave.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from ..core.expr import Const, Expr, Var, index, number
from ..core.program import Buffer, Param
from ..core.unique_names import Names
from ..errors import CatenError
from .accesses import accesses
from .affine import constant, expression, text_of
from .context import Context
from .definite_stores import Store, Stores, inside
from .effects import reads
from .integer_sets import Constraint
from .run_time_checks import CheckRows, body_text
from .simplify import statement_field
from .statements import ONE, ZERO, Aref, For, If, Incf, Setf, Stmt
from .store_coverage import Coverage, Element, element_of

HINT = ("first set the whole output, for instance to 0; or list it among the inputs too: "
        "it then keeps what the caller gave")
MOST_PROOFS = 400              # per program
PROOFS_OF_A_STORE = 32         # more per store
MOST_CANDIDATES = 64           # elements of an output to test for one that is never set


def fill_outputs(op: Any) -> Any:
    """The program with a zero fill of every pure output that may have an unset element at the end or when it is read.
    Raises CatenError E403 if an element is never set."""
    fresh = [b for b in op.all(Buffer) if b.access == "out"]
    field_of = {id(c): f for c in op.clauses if (f := statement_field(c))}
    clause = next((c for c in op.clauses if id(c) in field_of), None)
    if not fresh or clause is None:
        return op
    body: tuple[Stmt, ...] = getattr(clause, field_of[id(clause)])
    search = _Search(op, body, fresh)
    unset = search.unset()
    if problems := [refusal(op, search, b, element) for b in unset if (element := search.never_set(b)) is not None]:
        raise CatenError(*[d for problem in problems for d in problem.diagnostics])
    if not unset:
        return op
    names = Names.of(op)
    fills = tuple([_fill(b, names) for b in unset])
    return op.replace(clauses=tuple([c.replace(**{field_of[id(c)]: (*fills, *body)}) if c is clause else c
                                     for c in op.clauses]))


class _Search:
    """The definite stores of a body."""

    def __init__(self, op: Any, body: tuple[Stmt, ...], fresh: Sequence[Buffer]):
        self.context = Context.of(op)
        self.names = frozenset([p.declares()[0] for p in op.all(Param) if hasattr(p, "declares")])
        self.body, self.fresh = body, fresh
        self.shapes = {b.name: b.shape for b in fresh}
        self.stores = Stores(body, self.shapes, [b.name for b in op.all(Buffer)])
        self.at_end = _by_buffer(self.stores.block(body, self.context, self.names))
        self.possible: dict[str, list[tuple[Context, Aref]]] = {}
        for context, ref in self.stores.possible:
            self.possible.setdefault(ref.buffer, []).append((context, ref))
        self.coverage = Coverage(MOST_PROOFS + PROOFS_OF_A_STORE * len(self.stores.possible))

    def unset(self) -> list[Buffer]:
        """The outputs of which some element may be unset at the end, or when it is read."""
        covered = {b.name for b in self.fresh if self.is_set_at_end(b)}
        early = self.read_too_early(frozenset(covered), self.body, self.context, {}, self.names)
        return [b for b in self.fresh if b.name not in covered - early]

    def is_set_at_end(self, buffer: Buffer) -> bool:
        """True if every element is proven to be set at the end."""
        context, element = element_of(buffer.shape, self.context)
        return self.coverage.covers(context, element, self.at_end.get(buffer.name, ()))

    def read_too_early(self, wanted: frozenset[str], stmts: Sequence[Stmt], context: Context,
                       before: Mapping[str, Sequence[Store]], names: frozenset[str]) -> frozenset[str]:
        """The `wanted` buffers of which a statement may read an element that neither `before` nor an earlier statement
        has set. `names`: those visible around the statements. One walk serves all buffers."""
        asked = frozenset().union(*[reads(s) for s in stmts]) & wanted
        done = {name: list(before.get(name, ())) for name in asked}
        early: set[str] = set()
        for stmt in stmts:
            if asked == early:
                break
            here = (reads(stmt) & asked) - early
            if here:
                early |= self.reads_too_early(here, stmt, context, done)
                loop = frozenset([stmt.name]) if isinstance(stmt, For) else frozenset()
                for arm, within, earlier in self._arms(stmt, context, here):
                    known = {name: [*done[name], *earlier.get(name, ())] for name in here - early}
                    early |= self.read_too_early(here - early, arm, within, known, names | loop)
            for store in self.stores.statement(stmt, context, names):
                if store.buffer in done:
                    done[store.buffer].append(store)
            context = context.after(stmt)
        return frozenset(early)

    def reads_too_early(self, wanted: frozenset[str], stmt: Stmt, context: Context,
                        done: Mapping[str, Sequence[Store]]) -> frozenset[str]:
        """The same for the reads of the statement itself."""
        early: set[str] = set()
        for access in accesses(stmt, context):
            name = access.ref.buffer
            if name in wanted - early and (not access.is_write or isinstance(stmt, Incf)):
                at, element = _inside(access.context, access.ref.index, self.shapes[name])
                if not self.coverage.covers(at, element, done[name]):
                    early.add(name)
        return frozenset(early)

    def _arms(self, stmt: Stmt, context: Context,
              wanted: frozenset[str]) -> Iterator[tuple[tuple[Stmt, ...], Context, Mapping[str, list[Store]]]]:
        match stmt:
            case For(loop, _, _, _, _, body):
                stores = [s for s in self.stores.within.get(loop, ()) if s.buffer in wanted]
                yield body, context.inside(stmt), _by_buffer(inside(stores, stmt, context, Var(loop, "i64")))
            case If(cond, then, otherwise):
                yield then, context.given(cond), {}
                yield otherwise, context.given(cond, False), {}

    def never_set(self, buffer: Buffer) -> tuple[Expr, ...] | None:
        """The index of an element that no statement sets, whatever the sizes (of arrays that have elements)."""
        some = tuple([Constraint(self.context.linear(e).shifted(-1)) for e in buffer.shape])
        if some and self.context.excludes(some):
            return None
        for candidate in islice(_candidates(buffer.shape), MOST_CANDIDATES):
            element = [self.context.linear(i) for i in candidate]
            if all(context.excludes((*some, *[Constraint(context.linear(i) - e, equal=True)
                                              for i, e in zip(ref.index, element, strict=True)]))
                   for context, ref in self.possible.get(buffer.name, ())):
                return candidate
        return None


def _by_buffer(stores: Iterable[Store]) -> dict[str, list[Store]]:
    found: dict[str, list[Store]] = {}
    for store in stores:
        found.setdefault(store.buffer, []).append(store)
    return found


def _inside(context: Context, position: Sequence[Expr], shape: Sequence[Expr]) -> tuple[Context, Element]:
    """The index of the element that is read, and the context in which it is in bounds (other reads fail)."""
    for i, extent in zip(position, shape, strict=True):
        context = context.given(index(0) <= i).given(i < extent)
    return context, tuple([context.linear(i) for i in position])


def _candidates(shape: Sequence[Expr]) -> Iterator[tuple[Expr, ...]]:
    """Elements that are likely to be missed: all of a small array, else those at the ends of the axes."""
    sides: list[list[Expr]] = []
    for extent in shape:
        last = expression(Context().linear(extent) - constant(1))
        sides.append([index(n) for n in range(extent.value)] if isinstance(extent, Const)
                     and extent.value <= MOST_CANDIDATES else [last, index(0)])
    return product(*sides)


def _fill(buffer: Buffer, names: Names) -> Stmt:
    axes = [names.fresh(f"{buffer.name}_{axis}") for axis in range(len(buffer.shape))]
    place = Aref(buffer.name, tuple([Var(a, "i64") for a in axes]), buffer.type)
    stmt: Stmt = Setf(place, number(0, buffer.type))
    for axis in reversed(buffer.order):
        stmt = For(axes[axis], ZERO, buffer.shape[axis], ONE, "serial", (stmt,))
    return stmt


def refusal(op: Any, search: _Search, buffer: Buffer, element: tuple[Expr, ...]) -> CatenError:
    """E403 at the last statement that sets the output."""
    stores = [ref for _, ref in search.possible.get(buffer.name, ())]
    place = body_text(text_of(Aref(buffer.name, element, buffer.type))) if element else buffer.name
    at = text_of(stores[-1]) if stores else buffer.name
    return CheckRows(op).error("E403", at, f"no statement sets {place}, an element of the output '{buffer.name}'", HINT)
