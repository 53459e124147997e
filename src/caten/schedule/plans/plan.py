"""The plan of a loop nest: plain data that a planner chooses and that `emit` turns into schedule steps.

A planner is a pure function. It takes what a nest computes, the machine and the parameter values, and returns a plan
and the condition on the sizes under which the plan is used. Planners choose all numbers; `emit` chooses none.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, field, fields
from functools import reduce
from typing import Any, ClassVar

from ...core.dtypes import DTYPES, part
from ...core.expr import Cast, Const, Op, Var
from ...core.program import FREE_MASKS_BYTES, Machine
from ...frozen import frozen
from ...loop.statements import Aref, Stmt
from ..analysis.classify import Chain
from ..analysis.complex_vectors import is_in_parts
from ..analysis.loop_queries import mentions, outside_indices, trip_count
from .parameters import Parameter

MASK_BYTES = 32                 # vectors of at least this size have cheap lane masks
OF_SIZES = ("add", "sub", "mul", "floordiv")       # operators of extents; min is the rest of a block


class NotApplicable(Exception):
    """The plan does not fit this nest. The message says why; the next plan is tried."""


class Plan:
    """How to compute a nest. Its text is an S-expression: the class name, then all fields that are not empty, false or
    0."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]          # subclasses are dataclasses

    def __str__(self) -> str:
        parts = [_field(f.name, getattr(self, f.name)) for f in fields(self)]
        return f"({' '.join([self.head(), *filter(None, parts)])})"

    @classmethod
    def head(cls) -> str:
        """The first word of the text: the class name in kebab case."""
        return "".join([f"-{c.lower()}" if c.isupper() and n else c.lower() for n, c in enumerate(cls.__name__)])


def _field(name: str, value: Any) -> str:
    if value is True:
        return f"({name.replace('_', '-')})"
    if not value:
        return ""
    return f"({name.replace('_', '-')} {' '.join(map(str, value)) if isinstance(value, tuple) else value})"


@frozen
class PlanContext:
    """The machine and the parameters that a planner uses. `threads`: may threads share loops of the nest? `ask` gives
    the value of a parameter from its default on this machine."""

    machine: Machine
    threads: bool
    ask: Callable[[Parameter, int], int] = field(default=lambda parameter, default: default, compare=False)

    def value(self, parameter: Parameter, default: int | None = None) -> int:
        """The value of a parameter. `default` is required if the parameter has no default of its own."""
        value = parameter.default if default is None else default
        assert value is not None, parameter.name
        return self.ask(parameter, value)

    def lanes(self, dtypes: Sequence[str]) -> int:
        """The number of lanes of a vector of the widest of these types; 1 if the machine has no such vectors.
        Of complex types, the parts are in vectors. Storage types (bf16, fp8 and the like) are computed in 4 bytes."""
        widest = max([4 if DTYPES[d].storage else DTYPES[part(d)].bytes for d in dtypes], default=8)
        return max(1, self.machine.vector_bytes // widest)

    def vector_lanes(self, stmts: Sequence[Stmt], computed: bool = False) -> int:
        """The number of lanes for everything these statements load and store. NotApplicable if it cannot be vectors.
        `computed`: and for what they convert it to, so that no vector of a map is wider than a register. Sums keep
        their wide vectors, which are several accumulators."""
        dtypes = [n.dtype for s in stmts for n in s.unique() if isinstance(n, Aref)]
        if computed:
            dtypes += [n.dtype for n in outside_indices(stmts) if isinstance(n, Cast)]
        lanes = self.lanes(dtypes)
        if lanes < 2 or not all(is_in_parts(s) for s in stmts):
            raise NotApplicable("the machine has no vectors of its elements")
        return lanes

    def masks_are_cheap(self, lanes: int) -> bool:
        """Are masked loads and stores of so many lanes one instruction? With short vectors, a scalar tail is as fast.
        AVX2 has masks for elements of four bytes and more."""
        width = self.machine.vector_bytes
        return width >= MASK_BYTES and (width >= FREE_MASKS_BYTES or lanes * 4 <= width)

    @property
    def masks_are_free(self) -> bool:
        """Does a masked store take no longer than another one? Where masks have registers of their own (AVX-512); a
        masked store of AVX2 takes ten times as long."""
        return self.machine.vector_bytes >= FREE_MASKS_BYTES

    def has_masks_for_wider_elements(self, lanes: int) -> bool:
        """Are masks of so many lanes expensive only because the elements are small? Then shorter vectors pay."""
        return self.machine.vector_bytes >= MASK_BYTES and not self.masks_are_cheap(lanes)

    @property
    def uses_threads(self) -> bool:
        """Do several threads run the parallel loops of this nest?"""
        return self.threads and self.machine.threads

    @staticmethod
    def vectors_of(axis: Axis, lanes: int, most: int) -> int:
        """How many whole vectors an axis has, at most `most`."""
        return most if axis.count is None else min(most, axis.count // lanes)

    @property
    def streams_pay(self) -> bool:
        """Does one thread gain bandwidth by reading several distant streams? Yes if the core has a hardware prefetcher
        per stream. Several threads are several streams already."""
        return self.machine.fetches_ahead and not self.machine.threads


@frozen
class Axis:
    """A loop as planners see it. `end`: the upper bound as text. `size`: the same, if the loop counts from 0 to a
    constant, or to what can be computed before the nest from sizes. `count`: the trip count, if it is constant."""

    name: str
    end: str = ""
    size: str = ""
    count: int | None = None


OTHER_SIZES = "the sizes are known to be others"


@frozen
class Version:
    """A plan and the calls it is for (loop versioning). `when`: a condition on the sizes, under which a copy of the
    nest runs whose loop names end in `ending`; None: the plan is for all remaining calls."""

    plan: Plan
    when: Any = None
    ending: str = ""


Planner = Callable[[Any, PlanContext], Version]       # its first argument is what `NestKind.match` returned


@frozen
class NestKind:
    """A kind of loop nest. `match` describes a nest for the planners, or raises NotApplicable if the nest is of another
    kind. `planners` are tried in order; the first unconditional version ends the list. `is_total`: is there always an
    unconditional version? If not, the remaining calls are planned as another kind."""

    name: str
    description: str
    match: Callable[[Any, Chain, PlanContext], Any]
    planners: tuple[Planner, ...]
    is_total: bool = True


def both(*conds: Any) -> Any:
    """The conjunction of conditions."""
    *others, last = conds
    for cond in reversed(others):
        last = ("and", cond, last)
    return last


def decided(cond: Any) -> Any:
    """A condition without the parts that numbers decide: True or False if nothing is left."""
    match cond:
        case ("and" | "or" as fn, *parts):
            left = [part for part in map(decided, parts) if part is not (fn == "and")]
            if (fn == "or") in left:
                return fn == "or"
            return reduce(lambda last, part: (fn, part, last), reversed(left)) if left else fn == "and"
        case ("<" | "<=" as fn, a, b) if (known := _number(a)) is not None and (other := _number(b)) is not None:
            return known < other if fn == "<" else known <= other
    return cond


def _number(value: Any) -> int | None:
    """The value of a term of numbers."""
    match value:
        case str() if value.isdigit():
            return int(value)
        case ("*" | "+" | "floordiv" as fn, a, b) if (known := _number(a)) is not None and (
                other := _number(b)) is not None:
            return known * other if fn == "*" else known + other if fn == "+" else known // other
    return None


def version_if(plan: Plan, when: Any, ending: str, why_not: str = OTHER_SIZES) -> Version:
    """A plan for calls with a condition on the sizes. NotApplicable if numbers decide that it never holds."""
    left = decided(when)
    if left is False:
        raise NotApplicable(why_not)
    return Version(plan) if left is True else Version(plan, left, ending)


def nonempty(axes: Sequence[Axis], cond: Any) -> Any:
    """`cond`, and each of these loops runs at least once: work that is hoisted out of an empty loop would be wasted."""
    for axis in axes:
        if axis.size:
            cond = ("and", ("<", "0", axis.size), cond)
    return cond


def axes_of(chain: Chain) -> tuple[Axis, ...]:
    """The loops of a chain, outermost first."""
    found = []
    for loop in chain.loops:
        known = loop.lo == Const(0, "i64") and not mentions(loop.hi, chain.names) and all(
            isinstance(n, Var | Const) or (isinstance(n, Op) and n.fn in OF_SIZES) for n in loop.hi.unique())
        size = str(loop.hi) if known else ""
        found.append(Axis(loop.name, str(loop.hi), size, trip_count(loop)))
    return tuple(found)
