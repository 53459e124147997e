"""The parameters of plans: numbers and decisions for which a planner has a default, and that may have another value for one kernel on one machine.

Each is declared beside the planner that asks for it. Without a choice it has its default; `caten tune` measures others.
"""
from __future__ import annotations

from ...frozen import frozen


@frozen
class Parameter:
    """`values` are what `caten tune` tries instead of the default, the default among them or not; the machine table says which of these make no sense
    on a machine. `default`: None where the planner takes it from the machine. `what` it is, for readers."""

    name: str
    values: tuple[int, ...]
    default: int | None = None
    what: str = ""


@frozen
class Choices:
    """Values of some parameters, by name; every other one has its default."""

    values: tuple[tuple[str, int], ...] = ()

    def of(self, parameter: str, default: int) -> int:
        """The value of a parameter."""
        return dict(self.values).get(parameter, default)

    def with_(self, parameter: str, value: int) -> Choices:
        """The same choices but for one parameter."""
        return Choices(tuple(sorted((dict(self.values) | {parameter: value}).items())))

    def __str__(self) -> str:
        return ", ".join([f"{name} = {value}" for name, value in self.values]) or "the defaults"


DEFAULTS = Choices()
