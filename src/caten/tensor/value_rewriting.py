"""Rewriting of values: what has the form of a rule's pattern is computed as its replacement says.

A rule is two programs of values with the same parameters. The replacement may be a call of a C function: a nest of one
`extern` statement. Then the program gets a condition for each integer argument that might not fit its C type, and the
call is left out where the result has no elements.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from ..core.dtypes import DTYPES
from ..core.expr import Cast, Expr, Op, index
from ..core.node import Node, substitute
from ..core.program import Check, Ensure
from ..frozen import frozen
from ..loop.affine import canonical, text_of
from ..loop.context import Context
from ..loop.statements import Address, ExternCall
from .canonical_values import canonical_values
from .index_maps import renamed
from .inlining import inline
from .value_patterns import MOST_ORDERS, Bound, Pattern, is_row_major
from .values import (
    Axis,
    Compute,
    Define,
    FailIf,
    Named,
    Nest,
    Output,
    Read,
    Reduce,
    TensorProgram,
    Value,
    ValueTable,
    reads_of,
)


@frozen
class ValueRule:
    """A rule: the pattern, and its replacement over the same parameters."""

    name: str
    pattern: TensorProgram
    replacement: TensorProgram

    @property
    def calls(self) -> tuple[ExternCall, ...]:
        """The calls of C functions in the replacement."""
        return tuple([n for d in self.replacement.definitions if isinstance(d.value, Nest)
                      for s in d.value.stmts for n in s.walk() if isinstance(n, ExternCall)])

    @property
    def addressed(self) -> frozenset[str]:
        """The arrays that C functions get."""
        return frozenset([a.buffer for c in self.calls for a in c.args if isinstance(a, Address)])


@frozen
class Match:
    """A place where a rule applies. `part`: the expression of the value that is replaced; None: the whole value.
    `order`: the axes of the value in the order of those of the pattern."""

    rule: ValueRule
    pattern: Pattern
    bound: Bound
    order: tuple[Axis, ...]
    part: Expr | None = None


def rewritten(program: TensorProgram, rules: Sequence[ValueRule]) -> tuple[TensorProgram, tuple[str, ...]]:
    """The program after the rules, each value rewritten by the first rule that fits it; and the names of the rules that
    did, once for each value."""
    matches = _matches(program, rules)
    if not matches:
        return program, ()
    rewriting = _Rewriting(program)
    for d in program.definitions:
        rewriting.definition(d, matches.get(d.name) if d.names else None)
    return canonical_values(rewriting.program()), tuple([m.rule.name for m in matches.values()])


def _matches(program: TensorProgram, rules: Sequence[ValueRule]) -> dict[str, Match]:
    """The values to rewrite, from the outputs to the inputs: what is only part of a larger match is left to it."""
    readers: dict[str, set[str]] = {}
    for d in program.definitions:
        for name in {r.buffer for r in reads_of(d.value)} if not isinstance(d.value, Nest) else ():
            readers.setdefault(name, set()).add(d.name)
    kept = set(program.results)
    patterns = [(rule, Pattern(rule.pattern, program, rule.addressed)) for rule in rules]
    found: dict[str, Match] = {}
    inner: set[str] = set()
    for d in reversed(program.definitions):
        if len(d.names) != 1 or isinstance(d.value, Nest) or (
                d.name in inner and d.name not in kept and readers.get(d.name, set()) <= inner):
            continue
        match = next((m for rule, pattern in patterns for m in _applied(rule, pattern, d.value)), None)
        if match is not None:
            found[d.name] = match
            inner |= {d.name, *[v for n, v in match.bound.items() if n in match.pattern.parts and isinstance(v, str)]}
    return {d.name: found[d.name] for d in program.definitions if d.names and d.name in found}


def _applied(rule: ValueRule, pattern: Pattern, value: Value) -> Iterator[Match]:
    """The ways in which a rule applies to a value: to all of it (of a reduce, with its axes in any order), or to a part
    of the expression of a map."""
    parts: list[tuple[Compute | Reduce, Expr | None]] = []
    root = pattern.root
    if isinstance(value, Compute):
        parts.append((value, None))
    elif isinstance(value, Reduce):
        orders = permutations(value.axes) if len(value.axes) <= MOST_ORDERS else iter([value.axes])
        parts += [(value.replace(axes=axes), None) for axes in orders]
    if isinstance(value, Compute) and isinstance(root, Compute) and isinstance(root.expr, Op):
        parts += [(Compute(n.dtype, value.axes, n), n) for n in value.expr.unique()
                  if isinstance(n, Op) and n.fn == root.expr.fn and n is not value.expr and n.dtype == root.type]
    for whole, part in parts:
        bound = pattern.match(whole)
        if bound is not None and not (rule.calls and _is_stored_otherwise(whole, pattern.program)):
            yield Match(rule, pattern, bound, whole.axes, part)


def _is_stored_otherwise(value: Value, program: TensorProgram) -> bool:
    """May a value be in the memory of an output that is not row-major?"""
    assert isinstance(value, Compute | Reduce)
    shape = [canonical(a.extent) for a in value.axes]
    return any(not is_row_major(b) and b.type == value.type and [canonical(e) for e in b.axes] == shape
               for b in program.buffers.values() if b.access != "in")


class _Rewriting:
    """The new definitions."""

    def __init__(self, program: TensorProgram) -> None:
        self.old, self.others = program, program.without(Define, FailIf, Output, Named)
        self.table = ValueTable(self.others)
        self.names: dict[str, str] = {}
        self.context = Context.of(program)
        self.rows = max([c.row for c in program.all(Check)], default=0)
        self.facts: list[Node] = []

    def definition(self, d: Define, match: Match | None) -> None:
        """Define a value, rewritten if a rule applies."""
        value = renamed(d.value, self.names)
        if match is None:
            self.names |= dict(zip(d.names, self.table.define(value), strict=True))
            return
        made = self.replacement(match)
        assert isinstance(d.value, Compute | Reduce)
        if match.order != d.value.axes:
            turned = Read(made, tuple([a.var for a in match.order]), d.value.type)
            (made,) = self.table.define(Compute(d.value.type, d.value.axes, turned))
        if match.part is not None:
            assert isinstance(value, Compute)
            part = renamed(Compute(match.part.dtype, value.axes, match.part), self.names)
            assert isinstance(part, Compute)
            whole = Read(made, tuple([a.var for a in value.axes]), match.part.dtype)
            (made,) = self.table.define(value.replace(expr=substitute(value.expr, {part.expr: whole})))
        self.names[d.name] = made

    def replacement(self, match: Match) -> str:
        """Define the values of a replacement. Returns the name of the last."""
        numbers = match.pattern.numbers(match.bound)
        arrays: dict[str, str] = {}
        for hole in match.pattern.holes:
            stands = match.bound.get(hole)
            if isinstance(stands, Compute):
                (arrays[hole],) = self.table.define(renamed(stands, self.names))
            elif isinstance(stands, str):
                arrays[hole] = self.names.get(stands, stands)
            elif match.pattern.holes[hole].access == "out":
                arrays[hole] = ""
        names = inline(match.rule.replacement, self.table, arrays, numbers)
        self.arguments_fit([substitute(c, numbers) for c in match.rule.calls])
        return names[match.rule.replacement.outputs[0].value]

    def arguments_fit(self, calls: Sequence[ExternCall]) -> None:
        """Conditions of a call for sizes that may be too large for an argument."""
        for call in calls:
            for arg in call.args:
                if not isinstance(arg, Cast) or arg.arg.dtype != "i64" or DTYPES[arg.type].kind not in ("int", "uint"):
                    continue
                row = DTYPES[arg.type]
                limits = [Op("le", (index(row.least), arg.arg)), Op("le", (arg.arg, index(row.greatest)))]
                for fits in [each for each in limits if not self.context.proves(each)]:
                    self.rows += 1
                    self.context = self.context.given(fits)
                    self.facts += [Ensure(self.rows, fits),
                                   Check(self.rows, f"{text_of(arg.arg)} is too large for {call.fn}, which takes "
                                                    f"{arg.type}")]

    def program(self) -> TensorProgram:
        """All of it."""
        named = {self.names[n.value]: n.replace(value=self.names[n.value]) for n in reversed(self.old.all(Named))
                 if n.value in self.names}
        checks = [c.renamed(self.names) for c in self.old.checks]
        outputs = [o.replace(value=self.names.get(o.value, o.value)) for o in self.old.outputs]
        return self.old.replace(clauses=(*self.others.clauses, *self.facts, *reversed(named.values()),
                                         *self.table.definitions, *checks, *outputs))
