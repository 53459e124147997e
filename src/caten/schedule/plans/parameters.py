"""Parameters of plans: numbers and switches with a default that `caten tune` may replace for one kernel on one machine.

Each parameter is declared in the module of the planner that uses it.
"""
from __future__ import annotations

from ...frozen import frozen


@frozen
class Parameter:
    """`values`: the candidates that `caten tune` tries; the machine table excludes those that make no sense on a
    machine. `default`: None if the planner derives it from the machine. `what`: a description for readers."""

    name: str
    values: tuple[int, ...]
    default: int | None = None
    what: str = ""


@frozen
class Choices:
    """Values of some parameters by name. The others have their defaults."""

    values: tuple[tuple[str, int], ...] = ()

    def of(self, parameter: str, default: int) -> int:
        """The value of a parameter."""
        return dict(self.values).get(parameter, default)

    def with_(self, parameter: str, value: int) -> Choices:
        """A copy with one parameter changed."""
        return Choices(tuple(sorted((dict(self.values) | {parameter: value}).items())))

    def __str__(self) -> str:
        return ", ".join([f"{name} = {value}" for name, value in self.values]) or "the defaults"


DEFAULTS = Choices()
