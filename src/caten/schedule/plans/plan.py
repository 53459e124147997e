"""What a planner makes: a plan is data, which one place (`emit`) turns into steps of the schedule language.

A planner is a pure function: from what a nest computes, the machine and the values of parameters it makes a plan, and says for which calls the plan
is meant. Nothing here looks at what a primitive makes, and nothing in `emit` chooses a number.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, fields
from typing import Any

from ...core.dtypes import DTYPES, is_complex
from ...core.expr import Const, Var
from ...core.program import Machine
from ...frozen import frozen
from ...loop.affine import canonical
from ...loop.statements import Aref, Stmt
from ..analysis.classify import Chain
from .parameters import Parameter

LONG_VECTOR = 32                # bytes of vectors whose lanes have masks of their own


class NotApplicable(Exception):
    """A plan does not fit what it was tried on, and why: the next simpler one has its turn."""


class Plan:
    """How a nest is to be computed. Its text is an S-expression: the name of its class and its fields, but those that are empty, false or 0."""

    def __str__(self) -> str:
        parts = [_spelled(f.name, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]   # every plan is a dataclass
        return f"({' '.join([self.head(), *filter(None, parts)])})"

    @classmethod
    def head(cls) -> str:
        """The first word of its text."""
        return "".join([f"-{c.lower()}" if c.isupper() and n else c.lower() for n, c in enumerate(cls.__name__)])


def _spelled(name: str, value: Any) -> str:
    if value is True:
        return f"({name.replace('_', '-')})"
    if not value:
        return ""
    return f"({name.replace('_', '-')} {' '.join(map(str, value)) if isinstance(value, tuple) else value})"


@frozen
class Given:
    """What a planner goes by beside the nest. `threads`: may loops of the nest be shared by threads? `ask`: the value of a parameter, from its
    default for this machine."""

    machine: Machine
    threads: bool
    ask: Callable[[Parameter, int], int] = field(default=lambda parameter, default: default, compare=False)

    def __call__(self, parameter: Parameter, default: int | None = None) -> int:
        """The value of a parameter. Its own default has to be there where no other is given."""
        value = parameter.default if default is None else default
        assert value is not None, parameter.name
        return self.ask(parameter, value)

    def lanes(self, dtypes: Sequence[str]) -> int:
        """How many elements of the widest of these types a vector holds; 1 where the machine has no vectors for them. What is computed with storage
        types is of 4 bytes."""
        widest = max([4 if DTYPES[d].storage else DTYPES[d].bytes for d in dtypes], default=8)
        return max(1, self.machine.vector_bytes // widest)

    def vectors_of(self, stmts: Sequence[Stmt]) -> int:
        """Those of all that statements read and write. NotApplicable where there are no vectors of them."""
        dtypes = [n.dtype for s in stmts for n in s.unique() if isinstance(n, Aref)]
        lanes = self.lanes(dtypes)
        if lanes < 2 or any(is_complex(t) for t in dtypes):
            raise NotApplicable("the machine has no vectors of its elements")
        return lanes

    @property
    def masks_are_cheap(self) -> bool:
        """Does an instruction read or write some lanes of a vector? Short vectors leave so little that single iterations do as well."""
        return self.machine.vector_bytes >= LONG_VECTOR

    @property
    def shares(self) -> bool:
        """Do several threads run what is parallel in this nest?"""
        return self.threads and self.machine.threads

    @property
    def streams_pay(self) -> bool:
        """Does memory give more to several streams, each long and far from the others? Cores that fetch ahead by themselves do so for each of them,
        and several threads are several streams already."""
        return self.machine.fetches_ahead and not self.machine.threads


@frozen
class Axis:
    """A loop of a nest. `end`: where it ends, as a condition has it; `size`: the same, where that is a size of the call and the loop begins with 0;
    `count`: how often it runs, where that is a number."""

    name: str
    end: str = ""
    size: str = ""
    count: int | None = None


@frozen
class Version:
    """A plan, and for which calls it is meant. `when`: a condition over sizes, for which the nest gets a copy, whose loops have names with this
    `ending`; None for all calls that the versions before leave over."""

    plan: Plan
    when: Any = None
    ending: str = ""


Planner = Callable[[Any, Given], Version]       # from what the nest computes


@frozen
class Family:
    """Nests of one kind, and `what` they are. `seen`: what a nest computes, as its planners want it (NotApplicable where it is of another kind);
    `planners`: those of the versions that a nest may get, in the order in which a call asks for them. The first one that is for all calls is
    the last. `for_all`: is there one? Else what is left is planned by others."""

    name: str
    what: str
    seen: Callable[[Any, Chain, Given], Any]
    planners: tuple[Planner, ...]
    for_all: bool = True


def both(*conds: Any) -> Any:
    """A condition that holds where all of these do."""
    *others, last = conds
    for cond in reversed(others):
        last = ("and", cond, last)
    return last


def running(axes: Sequence[Axis], cond: Any) -> Any:
    """A condition for calls in which these loops run as well: what is done around them would be done in vain in others, at whatever cost."""
    for axis in axes:
        if axis.size:
            cond = ("and", ("<", "0", axis.size), cond)
    return cond


def axes_of(chain: Chain) -> tuple[Axis, ...]:
    """The loops of a chain, as planners see them."""
    found = []
    for loop in chain.loops:
        extent = canonical(loop.hi - loop.lo)
        size = loop.hi.name if loop.lo == Const(0, "i64") and isinstance(loop.hi, Var) else ""
        found.append(Axis(loop.name, str(loop.hi), size, int(extent.value) if isinstance(extent, Const) else None))
    return tuple(found)
