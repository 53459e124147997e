"""Reverse accumulation over a graph: gradients are nodes like others, and can be differentiated again."""
from __future__ import annotations

from collections.abc import Sequence

from caten.core.dtypes import is_complex, is_float
from caten.errors import CatenError, error

from . import templates
from .graph import Call, Constant, Ref, called, in_order, reshaped, stops_gradients
from .templates import Barrier, ByHand, Reshape, Template
from .tracing import formulas_of, zeros

Key = tuple[int, int]                                       # a node and which of its results


def differentiated(of: Sequence[Ref], wrt: Sequence[Ref], first: Sequence[Ref], is_partial: bool = False) -> list[Ref]:
    """The gradients of a number with respect to some results; `first`: its gradients with respect to `of`.
    `is_partial`: as if the results in `wrt` were computed from nothing. No gradient goes through integers and bools.
    E676 for an operator without gradient, and where one goes through complex numbers."""
    wanted = {_key(r) for r in wrt}
    order = list(in_order(of, lambda r: stops_gradients(r) or (is_partial and _key(r) in wanted)))
    depends: set[int] = set()

    def carries(r: Ref) -> bool:
        """Does a result depend on what is wanted, by numbers that have gradients?"""
        return (_key(r) in wanted or id(r.node) in depends) and (is_float(r.dtype) or is_complex(r.dtype))
    for call in order:
        if any(map(carries, call.inputs)):
            depends.add(id(call))
    parts: dict[Key, list[Ref]] = {}
    for r, seed in zip(of, first, strict=True):
        parts.setdefault(_key(r), []).append(seed)
    for call in reversed(order):
        if id(call) not in depends:
            continue
        seeds = [_total(parts.get((id(call), n), [])) for n in call.template.seeded]
        if all(s is None for s in seeds):
            continue
        given = [s if s is not None else _zeros(Ref(call, n)) for s, n in zip(seeds, call.template.seeded, strict=True)]
        want = tuple(map(carries, call.inputs))
        if isinstance(call.template, ByHand):
            want = tuple([n >= len(call.shapes) and each for n, each in enumerate(want)])
        if any(each and is_complex(r.dtype) for r, each in zip(call.inputs, want, strict=True)):
            raise error("E676", f"{call.template.name} has no gradient: gradients of complex numbers are not known",
                        hint="compute the real and the imaginary part apart, or detach it")
        if not any(want):
            continue
        made = iter(_adjoints(call, given, want))
        for r, want_it in zip(call.inputs, want, strict=True):
            if want_it:
                parts.setdefault(_key(r), []).append(next(made))
    return [_total(parts.get(_key(r), [])) or _zeros(r) for r in wrt]


def _adjoints(call: Call, seeds: Sequence[Ref], want: tuple[bool, ...]) -> tuple[Ref, ...]:
    """The gradients of an operator with respect to its wanted inputs, from those of its results."""
    template = call.template
    if isinstance(template, Reshape):
        return (reshaped(seeds[0], call.inputs[0].shape, formulas_of(call.inputs[0])),)
    if isinstance(template, Barrier):
        by_result = dict(zip(template.seeded, seeds, strict=True))
        return tuple([by_result[n] for n, wanted in enumerate(want) if wanted])
    if isinstance(template, ByHand):
        found = template.backward(call.inputs[len(call.shapes):], call.inputs[:len(call.shapes)], seeds)
        return tuple([r for r, wanted in zip(found, want[len(call.shapes):], strict=True) if wanted])
    results = [Ref(call, n) for n in range(len(call.shapes))] if template.takes_results else []
    try:
        return called(template.gradient(want), [*call.inputs, *results, *seeds])
    except CatenError as problem:
        if problem.diagnostics[0].code != "E676" or not template.steps:
            raise
        return _in_steps(template, call.inputs, seeds, want)


def _in_steps(template: Template, inputs: Sequence[Ref], seeds: Sequence[Ref], want: tuple[bool, ...]) -> tuple[
        Ref, ...]:
    """The gradients of an operator with respect to its wanted inputs, as those of the steps that it consists of."""
    apart = tuple(inputs)
    if len({_key(r) for r in inputs}) < len(inputs):         # one array is several of the inputs
        apart = called(Barrier(tuple([r.dtype for r in inputs])), inputs)
    known = dict(zip(template.inputs, apart, strict=True))
    for step, takes, gives in template.steps:
        given = [known[name] for name in takes]
        known |= zip(gives, called(step, given) if step is not None else given, strict=True)
    results = [known[template.outputs[n]] for n in template.seeded]
    return tuple(differentiated(results, [r for r, wanted in zip(apart, want, strict=True) if wanted], seeds,
                                is_partial=True))


def _total(parts: list[Ref]) -> Ref | None:
    """The sum of the gradients of all readers, those of the last ones first: they are there first."""
    total = parts[0] if parts else None
    for part in parts[1:]:
        assert total is not None
        given = [(r.dtype, r.shape) for r in (total, part)]
        total = called(templates.of_library("add", given, {}), (total, part))[0]
    return total


def _zeros(r: Ref) -> Ref:
    if not r.shape:
        return Ref(Constant(0.0, r.dtype))
    return zeros(r)


def _key(r: Ref) -> Key:
    return id(r.node), r.index
