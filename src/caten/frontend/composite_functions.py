"""Composites as functions of bodies over whole arrays: a call brings their values."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ..core.program import Require
from ..errors import error
from ..loop.accumulations import normalise
from ..loop.zero_fill import fill_outputs
from ..options import Instance
from ..tensor.raising import raise_op
from ..tensor.values import TensorProgram
from .arrays.called_composites import CalledComposite
from .composite import Callees, Composite, parameters
from .lowered_body import Lowered
from .op import Body, OpProgram


class CompositeFunctions:
    """Composites as functions that return their outputs as values. `lower`: lowers the body of one."""

    def __init__(self, callees: Callees, lower: Callable[[Composite], Lowered]) -> None:
        self.callees, self.lower = callees, lower
        self.known: dict[str, TensorProgram] = {}
        self.callers: list[str] = []                     # whose bodies are being read

    def function(self, name: str) -> CalledComposite | None:
        """The composite of this name, in any spelling."""
        return self._called(self.callees.find(name))

    def of_library(self, name: str) -> CalledComposite | None:
        """The operator of the library, also where the spec has another composite of this name."""
        return self._called(self.callees.of_library(name))

    def _called(self, found: Composite | None) -> CalledComposite | None:
        if found is None:
            return None
        return CalledComposite(found.called, found.inputs, found.outputs, partial(self.instance, found),
                               found.attributes, found.generic)

    def names(self) -> list[str]:
        return self.callees.names()

    def library_names(self) -> list[str]:
        return self.callees.library_names()

    def instance(self, composite: Composite, instance: Instance | None) -> TensorProgram:
        """The values of a composite, or of an instance of it."""
        return self.values(composite if instance is None else self.callees.instance(composite, instance))

    def values(self, composite: Composite) -> TensorProgram:
        """The values of a composite. E233 if it calls itself, directly or through others."""
        if composite.key not in self.known:
            with self.reading(composite):
                self.known[composite.key] = self.made(composite)
        return self.known[composite.key]

    @contextmanager
    def reading(self, composite: Composite) -> Iterator[None]:
        """While the body of a composite is read. E233 if that is done already."""
        if composite.name in self.callers:
            chain = " calls ".join((*self.callers[self.callers.index(composite.name):], composite.name))
            raise error("E233", f"{chain}: recursion is not possible", composite.name_place, hint="write a loop")
        self.callers.append(composite.name)
        try:
            yield
        finally:
            self.callers.pop()

    def made(self, composite: Composite) -> TensorProgram:
        """The values of a composite, those of loops raised."""
        lowered = self.lower(composite)
        if lowered.values is not None:
            return lowered.values
        requirements = [Require(cond) for cond in lowered.requirements]
        op = OpProgram(composite.name, (*parameters(composite), *requirements, Body(lowered.stmts)))
        return raise_op(fill_outputs(normalise(op)))
