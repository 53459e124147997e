"""A program in TOML as programs of values, which `caten` compiles: one that computes its outputs, one that computes
its loss and the gradients of its parameters. Arrays and sizes have the names that the program gives them."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import zip_longest

import numpy as np

from caten.core.expr import Var
from caten.core.program import Check, Size
from caten.core.text import Text
from caten.errors import CatenError, error
from caten.frontend.structure import names_of, renamed
from caten.frozen import frozen
from caten.tensor.values import TensorProgram

from .assembly import assembled
from .extents import Recipe
from .graph import Call, Constant, Leaf, Ref
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
    `reshape` to numbers makes a program for the sizes of `given` alone. Two sizes are one only where the program needs
    them to be equal."""
    found = list[Lowered]()
    here = _graphs(read, given, with_gradients)
    apart = _resized(read, given, with_gradients, _distinct)
    others = _resized(read, given, with_gradients, lambda sizes: {
        name: n + 1 for name, n in (_distinct(sizes) if apart else sizes).items()})
    for graph, general, other in zip_longest(here, apart or here, others):
        made = _lowered(f"{stem}_{graph.name}", general)
        if other is None or not _is_for(made, other) or not _is_for(made, graph):
            made = _lowered(f"{stem}_{graph.name}", graph, is_fixed=True)
        found.append(replace(made, arrays=tuple(_parts(graph)[1]), results=tuple(graph.wanted)))
    return found


def _is_for(made: Lowered, graph: _Graph) -> bool:
    """Is the program for the extents of this graph, too?"""
    calls, leaves = _parts(graph)
    return made.recipe.fits(leaves, calls)


def _parts(graph: _Graph) -> tuple[Sequence[Call], Sequence[Ref]]:
    """The operators of a graph, and its arrays in the order in which the program declares them."""
    calls, leaves = leaves_of(graph.wanted)
    place = {r: n for n, r in enumerate(_names(graph))}
    return calls, sorted(leaves, key=lambda r: place.get(r, len(place)))


def _names(graph: _Graph) -> dict[Ref, str]:
    """The inputs and the parameters."""
    return {t._ref: name for name, t in (*graph.inputs.items(), *graph.read.parameters.items())}


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


def _distinct(sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes of which no two are equal: sizes that are equal by chance would be one in the program."""
    found: dict[str, int] = {}
    for name, n in sizes.items():
        while n in found.values():
            n += 1
        found[name] = n
    return found


def _resized(read: GraphProgram, given: Mapping[str, np.ndarray], with_gradients: bool,
             change: Callable[[Mapping[str, int]], Mapping[str, int]]) -> list[_Graph]:
    """The same with other sizes; none where it has no meaning."""
    now = {e: n for name, declared in read.inputs.items()
           for e, n in zip(declared.shape, given[name].shape, strict=True) if isinstance(e, str)}
    sizes = change(now)
    other = {name: np.zeros([sizes[e] if isinstance(e, str) else e for e in declared.shape], given[name].dtype)
             for name, declared in read.inputs.items()}
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
    names = _names(graph)
    shapes = {t._ref: graph.read.inputs[name].shape for name, t in graph.inputs.items()}
    for key, r in zip(graph.results, graph.wanted, strict=True):
        if not isinstance(r.node, Call) or r.array is not None:
            if graph.name == "backward" and key != graph.read.loss and r not in names:
                raise error("E678", f"the loss does not depend on the parameter '{key.removeprefix('grad_')}'",
                            hint="remove the parameter, or its grad")
            what = "a number" if isinstance(r.node, Constant) else "an input or a parameter as it is"
            raise error("E678", f"'{key}' is {what}: there is nothing to compile")
    calls, leaves = _parts(graph)
    for r in leaves if is_fixed else ():
        assert isinstance(r.node, Leaf)
        r.node.stays = True
    program, recipe = assembled(graph.wanted, calls, leaves)
    buffers = list(program.buffers.values())
    new = dict(zip([b.name for b in buffers], [*[names.get(r, b.name) for r, b in zip(leaves, buffers, strict=False)],
                                               *graph.results], strict=True))
    fixed: dict[str, int] = {}
    first: dict[str, str] = {}                              # the sizes by the names that the program gives them
    same: dict[str, str] = {}                               # sizes with the name of another one: it is declared
    for r, b in zip(leaves, buffers, strict=False):
        for own, e, n in zip(shapes.get(r, ()), b.shape, r.shape, strict=False):
            if isinstance(own, str) and isinstance(e, Var):                 # declared with it: it is equal
                if first.setdefault(own, e.name) != e.name:
                    same[e.name] = first[own]
                new.setdefault(e.name, own)
            elif isinstance(own, str):
                fixed[own] = n
    taken = {name for name in names_of(program) if name not in new}
    for old, wished in new.items():
        while wished in taken:
            wished += "_"
        new[old] = wished
        taken.add(wished)
    program = program.replace(clauses=tuple([c for c in program.clauses
                                             if not (isinstance(c, Size) and c.name in same)]))
    program = renamed(program, same)
    made = _with_own_names(renamed(program, new), {e.name: new[e.name] for b in buffers for e in b.shape
                                                   if isinstance(e, Var) and e.name in new})
    return Lowered(made.replace(name=name), recipe, tuple(leaves), tuple(graph.wanted), fixed)


def _with_own_names(program: TensorProgram, sizes: Mapping[str, str]) -> TensorProgram:
    """The program whose checks say the names that its sizes have."""
    def said(text: str) -> Text:
        return Text(re.sub(r"[A-Za-z]\w*", lambda m: sizes.get(m[0], m[0]), text))
    return program.replace(clauses=tuple([c.replace(text=said(c.text)) if isinstance(c, Check) else c
                                          for c in program.clauses]))
