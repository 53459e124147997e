"""What the program of a graph depends on: for this process, and for others."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache

from .extents import groups_of
from .graph import Call, Constant, Ref, in_order
from .templates import Barrier, ByHand, Reshape, Template

Key = tuple[object, ...]


def leaves_of(wanted: Sequence[Ref]) -> tuple[list[Call], list[Ref]]:
    """The operators to run, in order, and the arrays that they read."""
    calls = list(in_order(wanted))
    found: dict[int, Ref] = {}
    for call in calls:
        for r in call.inputs:
            if r.array is not None:
                found.setdefault(id(r.array), r)
    return calls, list(found.values())


def key_of(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref]) -> Key:
    """What the program of a graph depends on, beside the extents of its recipe: its operators and how they are
    connected, the element types and the axes of its arrays."""
    def operator(call: Call) -> object:
        if isinstance(call.template, Reshape):
            shape = call.shapes[0]
            return tuple([(ours.stop, theirs.stop) for ours, theirs in groups_of(call.inputs[0].shape, shape)]
                         ), tuple([e == 1 for e in shape])
        if isinstance(call.template, ByHand | Barrier):
            return call.template.name, len(call.shapes)
        return id(call.template)
    shapes = tuple([(r.dtype, tuple([(e,) if stays else e == 1 for e, stays in zip(r.shape, r.numbers, strict=True)]))
                    for r in leaves])
    return shapes, *_connected(wanted, calls, leaves, operator)


def words_of(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref]) -> tuple[str, ...] | None:
    """What the program of a graph with these extents depends on, for other processes; None if an operator is unknown to
    them."""
    if any(isinstance(call.template, Template) and call.template.known is None for call in calls):
        return None

    def operator(call: Call) -> object:
        if isinstance(call.template, Template):
            return tuple(map(_digest, call.template.known or ()))
        return call.template.name, call.shapes, getattr(call.template, "formulas", None)
    shapes = [(r.dtype, r.shape, r.numbers) for r in leaves]
    return repr(shapes), *map(repr, _connected(wanted, calls, leaves, operator))


def _connected(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref],
               operator: Callable[[Call], object]) -> tuple[Key, Key]:
    """The operators with what they read, and the results that are wanted."""
    numbers: dict[int, int] = {id(call): n for n, call in enumerate(calls)}
    arrays = {id(r.array): n for n, r in enumerate(leaves)}

    def named(r: Ref) -> Key:
        if isinstance(r.node, Constant):
            return "c", repr(r.node.value), r.node.dtype
        return ("a", arrays[id(r.array)]) if r.array is not None else ("v", numbers[id(r.node)], r.index)
    return tuple([(operator(call), *map(named, call.inputs)) for call in calls]), tuple(map(named, wanted))


@cache
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
