"""Preparing a call: checks, sizes from shapes, new outputs, and copies of arrays that the kernel cannot use."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.size_formula import evaluate, formula, names
from ..core.size_inference import determined, dimensions, equations, sizes_of
from ..errors import error, out_of_memory
from ..frozen import frozen
from . import array_arguments, scalar_arguments
from .call_signature import CallSignature

OUT_OF_MEMORY = -1
# Whose sizes are remembered: a caller that never repeats a shape must not fill the memory.
MOST_SHAPES = 512


@frozen
class Solved:
    """What shapes determine: the sizes, what the C function takes for them in its order, and the shapes of new
    outputs."""

    sizes: Mapping[str, int]
    passed: tuple[int, ...]
    new: Mapping[str, tuple[int, ...]]


@frozen
class Prepared:
    """A checked call. `originals`: what the caller gave, and new outputs; `work`: what the kernel takes; `sizes`: by
    name; `tail`: the sizes and strides that the kernel takes; `copies`: (is it written?, original, copy, argument) of
    arrays that the kernel cannot use in place."""

    originals: list[Any]
    work: list[Any]
    sizes: Mapping[str, int]
    tail: tuple[int, ...]
    copies: tuple[tuple[bool, Any, Any, Mapping[str, Any]], ...]


class CallArguments(CallSignature):
    """The arguments of an operator, from its manifest, and their preparation for the C function."""

    def __init__(self, op: Mapping[str, Any]):
        super().__init__(op)
        self.dims, self.equations = dimensions(op["arguments"]), equations(op["conditions"])
        self.binds = {n: (v, "as compiled") for n, v in op.get("binds", {}).items()}
        self.scratch = formula(op["scratch_bytes"])
        self.convert = {i: scalar_arguments.scalar(a, self.name)
                        for i, a in enumerate(self.inputs) if a["kind"] == "scalar"}
        self.arrays_at = [i for i, a in enumerate(self.leading) if a["kind"] == "tensor"]
        self.written = [i for i in self.arrays_at if self.leading[i]["direction"] != "in"]
        self.returns = [i for n in op["outputs"] for i in self.written if self.leading[i]["name"] == n]
        mentioned = {n for pair in self.equations for side in pair for n in names(side)}
        self.numbers = {i: a["name"] for i, a in enumerate(self.inputs)
                        if a["kind"] == "scalar" and a["name"] in mentioned}
        self._solved: dict[Any, Solved] = {}

    def prepare(self, values: Sequence[Any], sizes: Mapping[str, int]) -> Prepared:
        """Check everything, allocate the outputs that are None, and copy arrays that the kernel cannot use in place."""
        leading, op = self.leading, self.name
        originals: list[Any] = list(values)
        missing = [i for i in self.arrays_at if i >= len(self.inputs) and values[i] is None]
        present = [i for i in self.arrays_at if i not in missing] if missing else self.arrays_at
        work: list[Any] = [None if i in missing else convert(v) if (convert := self.convert.get(i))
                           else array_arguments.as_array(v, leading[i], op) for i, v in enumerate(values)]
        for i in present:
            array_arguments.check(work[i], leading[i], op)
        shapes = {leading[i]["name"]: work[i].shape for i in present}
        solved = self._solve(shapes, sizes, {name: int(work[i]) for i, name in self.numbers.items()})
        for i in missing:
            work[i] = originals[i] = array_arguments.empty(solved.new[leading[i]["name"]], leading[i], op)
        whole = list(work)
        self._outputs_are_apart(work)
        for i in self.arrays_at:
            if not array_arguments.fits(work[i], leading[i]):
                work[i] = array_arguments.copy(work[i], leading[i], op)
        for out in self.written:
            for i in self.arrays_at:
                if i not in self.written and array_arguments.overlap(work[out], work[i]):
                    work[i] = array_arguments.copy(work[i], leading[i], op)
        strides = [s for i in self.arrays_at for s in array_arguments.stride_values(work[i], leading[i])]
        copies = tuple([(i in self.written, whole[i], work[i], leading[i])
                        for i in self.arrays_at if work[i] is not whole[i]])
        return Prepared(originals, work, solved.sizes, (*solved.passed, *strides), copies)

    def _solve(self, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int],
               numbers: Mapping[str, int]) -> Solved:
        """The sizes from shapes, from `numbers` in conditions and from `sizes` by name; the shapes of new outputs."""
        key = (*shapes.items(), *sizes.items(), *numbers.items())
        if key not in self._solved:
            for name, value in sizes.items():
                if name in self.binds and self.binds[name][0] != value:
                    raise error("E705", f"{self.name}: the size {name} is {self.binds[name][0]} as compiled,"
                                        f" and {value} as given")
            given = self.binds | {n: (v, "as given") for n, v in (*numbers.items(), *sizes.items())}
            known = sizes_of(self.name, self.dims, shapes, self.equations, given, self.sizes)
            new = {a["name"]: tuple([evaluate(formula(e), known) for e in a["shape"]])
                   for a in self.leading[len(self.inputs):] if a["name"] not in shapes}
            for name, shape in new.items():
                if min(shape, default=0) < 0:
                    raise error("E704", f"{self.name}: {name} would have the shape {shape}")
            if len(self._solved) >= MOST_SHAPES:
                self._solved.clear()
            passed = tuple([math.prod([known[n] for n in group]) for group in self.passed])
            self._solved[key] = Solved({n: known[n] for n in self.sizes}, passed, new)
        return self._solved[key]

    def _outputs_are_apart(self, work: Sequence[Any]) -> None:
        for n, i in enumerate(self.written):
            if array_arguments.folded(work[i]):
                raise error("E713", f"{self.name}: elements of the output {self.leading[i]['name']}"
                                    " share memory with each other")
            for j in self.written[:n]:
                if array_arguments.share(work[i], work[j]):
                    raise error("E713", f"{self.name}: the outputs {self.leading[j]['name']} and"
                                        f" {self.leading[i]['name']} share memory")

    def finished(self, prepared: Prepared, code: int, check: Callable[[int], str]) -> Any:
        """Copy outputs back after a call that returned `code`, and return them. Raises what the code means unless 0."""
        if code:
            raise self.failure(code, prepared.sizes, check)
        for written, original, worked, described in prepared.copies:
            if written:
                array_arguments.give_back(original, worked, described)
        return self.returned(prepared.originals)

    def returned(self, values: Sequence[Any]) -> Any:
        """The outputs among `values`: one array, or a tuple in the order of the spec."""
        return values[self.returns[0]] if len(self.returns) == 1 else tuple([values[i] for i in self.returns])

    def failure(self, code: int, sizes: Mapping[str, int], check: Callable[[int], str]) -> Exception:
        """The error for a result other than 0. `check`: the text of a failed check, by its number."""
        if code == OUT_OF_MEMORY:
            needed = f": {evaluate(self.scratch, sizes)} bytes" if set(names(self.scratch)) <= sizes.keys() else ""
            return out_of_memory(self.name, f"no memory for scratch{needed}")
        shown = ", ".join([f"{n} = {v}" for n, v in sizes.items()])
        return error("E711", f"{self.name}: {check(code)}", notes=((f"called with {shown}", None),) if shown else ())


def keyword_sizes(arguments: CallArguments) -> list[str]:
    """The sizes that a caller names: neither the shapes of inputs nor conditions determine them."""
    inputs = {a["name"] for a in arguments.inputs}
    found = determined([d for d in arguments.dims if d.array in inputs], arguments.equations,
                       [*arguments.binds, *arguments.numbers.values()])
    return [n for n in arguments.sizes if n not in found]
