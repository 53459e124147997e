"""A program in TOML as programs of values, which `caten` compiles: one that computes its outputs, one that computes
its loss and the gradients of its parameters. Arrays and sizes have the names that the program gives them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import zip_longest

import numpy as np

from caten.core.expr import Var
from caten.errors import CatenError, error
from caten.frontend.structure import names_of, renamed
from caten.frozen import frozen
from caten.tensor.values import TensorProgram

from .assembly import assembled
from .extents import Recipe
from .graph import Call, Leaf, Ref
from .graph_keys import leaves_of
from .program_file import GraphProgram
from .tensor import Tensor, gradients


@frozen
class Lowered:
    """`program`: the values; `recipe`: for which extents it is; `arrays`: of its arguments that are read, in order;
    `results`: what it computes, in order; `fixed`: the sizes that are numbers in it."""

    program: TensorProgram
    recipe: Recipe
    arrays: tuple[Ref, ...]
    results: tuple[Ref, ...]
    fixed: dict[str, int] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of the sizes here."""
        return {e.name: n for buffer, r in zip(self.program.buffers.values(), self.arrays, strict=False)
                for e, n in zip(buffer.shape, r.shape, strict=True) if isinstance(e, Var)}


def lowered(read: GraphProgram, given: Mapping[str, np.ndarray], stem: str, with_gradients: bool) -> list[Lowered]:
    """The program `{stem}_forward`, and where there is a loss and `with_gradients` the program `{stem}_backward`.
    `given`: an array for each input, for its extents. Each is for all sizes, if it is right for others, too: a
    `reshape` to numbers makes a program for the sizes of `given` alone."""
    found = list[Lowered]()
    for graph, other in zip_longest(_graphs(read, given, with_gradients), _others(read, given, with_gradients)):
        made = _lowered(f"{stem}_{graph.name}", graph)
        if other is None or not _is_for(made, other):
            made = _lowered(f"{stem}_{graph.name}", graph, is_fixed=True)
        found.append(made)
    return found


def _is_for(made: Lowered, graph: _Graph) -> bool:
    """Is the program for the extents of this graph, too?"""
    calls, leaves = leaves_of(graph.wanted)
    return made.recipe.fits(leaves, calls)


@frozen
class _Graph:
    """Results by name, and the inputs that they come from."""

    name: str
    results: dict[str, Tensor]
    inputs: dict[str, Tensor]
    read: GraphProgram

    @property
    def wanted(self) -> list[Ref]:
        """The results."""
        return [t._ref for t in self.results.values()]


def _graphs(read: GraphProgram, given: Mapping[str, np.ndarray], with_gradients: bool) -> list[_Graph]:
    inputs = read.bound(given)
    made = read.forward(inputs)
    found = [_Graph("forward", {name: made[name] for name in read.outputs or made}, inputs, read)]
    if read.loss and with_gradients:
        found.append(_Graph("backward", with_loss(read, made), inputs, read))
    return found


def _others(read: GraphProgram, given: Mapping[str, np.ndarray], with_gradients: bool) -> list[_Graph]:
    """The same where each size is greater by one; none where it has no meaning."""
    other = {name: np.zeros([n + isinstance(e, str) for e, n in zip(declared.shape, given[name].shape, strict=True)],
                            given[name].dtype) for name, declared in read.inputs.items()}
    try:
        return _graphs(read, other, with_gradients)
    except (CatenError, ValueError):
        return []


def with_loss(read: GraphProgram, made: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The loss, and the gradient `grad_W` for each parameter W that is trained."""
    loss = read.checked_loss(made)
    found = gradients(loss, list(read.trained.values()))
    return {read.loss: loss} | {f"grad_{name}": g for name, g in zip(read.trained, found, strict=True)}


def _lowered(name: str, graph: _Graph, is_fixed: bool = False) -> Lowered:
    names = {t._ref: name for name, t in (*graph.inputs.items(), *graph.read.parameters.items())}
    shapes = {t._ref: graph.read.inputs[name].shape for name, t in graph.inputs.items()}
    for key, r in zip(graph.results, graph.wanted, strict=True):
        if not isinstance(r.node, Call) or r.array is not None:
            raise error("E678", f"'{key}' is an input or a parameter as it is: there is nothing to compile")
    calls, leaves = leaves_of(graph.wanted)
    for r in leaves if is_fixed else ():
        assert isinstance(r.node, Leaf)
        r.node.stays = True
    program, recipe = assembled(graph.wanted, calls, leaves)
    buffers = list(program.buffers.values())
    new = dict(zip([b.name for b in buffers], [*[names.get(r, b.name) for r, b in zip(leaves, buffers, strict=False)],
                                               *graph.results], strict=True))
    fixed: dict[str, int] = {}
    for r, b in zip(leaves, buffers, strict=False):
        for own, e, n in zip(shapes.get(r, ()), b.shape, r.shape, strict=False):
            if isinstance(own, str) and isinstance(e, Var):
                new.setdefault(e.name, own)
            elif isinstance(own, str):
                fixed[own] = n
    taken = {name for name in names_of(program) if name not in new}
    for old, wished in new.items():
        while wished in taken:
            wished += "_"
        new[old] = wished
        taken.add(wished)
    return Lowered(renamed(program, new).replace(name=name), recipe, tuple(leaves), tuple(graph.wanted), fixed)
