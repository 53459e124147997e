"""Reshaped arrays: nests over flat or reshaped arrays become nests over their axes.

A reshape such as x.T.reshape(-1) leaves x[i mod M, i / M] in a loop over i < M · N. As two loops, i = M · io + ii, it
is x[ii, io], stored at y[M · io + ii]; with y viewed as a matrix, it is a transpose. Quotients by constants stay: short
rows of a fixed length are better in one loop. But where a remainder by a small constant chooses whether to read the
element at the quotient, as in zeros between the elements of an array, it is known in each iteration of the loop over
remainders, once that is unrolled; so are rows whose elements alternate, x[i mod 2, i / 2]. A loop over the elements of
groups of which an inner loop visits others, x[C * (i / C) + p], is one over groups and one inside each: a grouped
convolution is a batch. A product whose writer indexed vectors, a[i * K + k], becomes one of matrices.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..core.expr import Const, Expr, Op, Var
from ..core.text import form_of
from ..loop.affine import linear
from ..loop.context import Context
from ..loop.divisibility import is_multiple
from ..loop.effects import loop_names
from ..loop.statements import Aref, For, LoopProgram
from .analysis.classify import chain_of, is_compute_bound, outermost
from .analysis.loop_queries import outside_indices
from .draft import Draft
from .step_results import Split

MOST_CHOICES = 8                # iterations of a loop that is unrolled for what a remainder chooses


def unfuse_reshaped(draft: Draft) -> None:
    """Unfuse loops until none has a quotient by a size that divides its number of iterations. Loops over rows whose
    elements alternate are split where that is not known: the last element may be one without a partner."""
    while any(draft.attempt(partial(_unfuse, loop=loop.name, count=count), f"the step 'unfuse {loop.name} {count}'")
              for loop, count in _candidates(draft.program)):
        pass
    for loop, count in tuple(_alternating(draft.program)):
        draft.attempt(partial(_split_alternating, loop=loop.name, count=count),
                      f"the step 'unfuse {loop.name} {count}'")


def _unfuse(draft: Draft, loop: str, count: Expr) -> None:
    """Unfuse a loop, and view the arrays that it stepped through with its two axes. NotApplicable if an index remains
    that is a multiple of a sum, because no access is then shown to be in bounds."""
    form, made = form_of(count), draft.take("unfuse", loop, form_of(count))
    assert isinstance(made, Split)
    if len(linear(count).terms) + bool(linear(count).constant) == 1:
        return
    row = Var(made.outer, "i64")
    steps = {(ref.buffer, axis) for ref in draft.loop(made.outer).unique() if isinstance(ref, Aref)
             for axis, place in enumerate(ref.index) if any(row in m and len(m) > 1 for m in linear(place).terms)}
    for array, axis in sorted(steps, reverse=True):
        draft.take("unflatten", array, axis, form)


def _split_alternating(draft: Draft, loop: str, count: int) -> None:
    """Unfuse a loop but for its last iterations, that are no multiple."""
    made = draft.split(loop, count)
    draft.take("unfuse", draft.fuse(made.outer, made.inner), count)


def unflatten_arrays(draft: Draft) -> None:
    """View arrays with more axes until no index is a multiple of a size plus an index below it."""
    while any(draft.attempt(partial(_unflatten, array=array, axis=axis, count=count),
                            f"the step 'unflatten {array} {axis} {count}'")
              for array, axis, count in _flat_axes(draft.program)):
        pass


def _unflatten(draft: Draft, array: str, axis: int, count: Expr) -> None:
    draft.take("unflatten", array, axis, form_of(count))


def _flat_axes(program: LoopProgram) -> Iterator[tuple[str, int, Expr]]:
    """Axes of arrays with a size that all their indices are a multiple of, apart from terms below it."""
    found: dict[tuple[str, int], dict[Expr, None]] = {}
    for ref in [n for kernel in program.kernels for n in kernel.unique() if isinstance(n, Aref)]:
        for axis, place in enumerate(ref.index):
            factors = [factor for product in linear(place).terms if len(product) > 1 for factor in product]
            sizes: dict[Expr, None] = {factor: None for factor in factors if isinstance(factor, Var)}
            known = found.setdefault((ref.buffer, axis), sizes)
            found[ref.buffer, axis] = {size: None for size in known if size in sizes}
    shapes = {buffer.name: buffer.axes for buffer in program.buffers.values()}
    for (array, axis), sizes in found.items():
        for size in sizes:
            if array in shapes and linear(shapes[array][axis]).quotient(linear(size)) is not None:
                yield array, axis, size


def _candidates(program: LoopProgram) -> Iterator[tuple[For, Expr]]:
    """Loops with a size by which they can be unfused, the shortest rows first. Only the innermost loops: divisions
    outside of them cost little."""
    known = Context.of(program)
    for kernel in program.kernels:
        for nest in outermost(kernel.body):
            yield from _of_groups(nest)
            for loop in _innermost(nest):
                divisors = dict.fromkeys([by for node in loop.unique() for by in _divisor(node, loop)])
                divisors |= dict.fromkeys([*_chosen_by(loop), *_interleaved(loop)])
                for count in sorted(divisors, key=lambda size: linear(size).degree):
                    if linear(loop.hi).quotient(linear(count)) is not None or (
                            isinstance(count, Const) and is_multiple(known, known, loop.hi, count.value)):
                        yield loop, count


def _alternating(program: LoopProgram) -> Iterator[tuple[For, int]]:
    """Innermost loops over rows whose elements alternate, and the number of rows."""
    for kernel in program.kernels:
        for nest in outermost(kernel.body):
            for loop in _innermost(nest):
                yield from [(loop, count.value) for count in _interleaved(loop) if isinstance(count, Const)]


def _of_groups(nest: For) -> Iterator[tuple[For, Expr]]:
    """Loops over elements of groups, of which an inner loop visits others, b[c * (i / c) + p]: as a batch of products
    (grouped convolutions)."""
    for loop in chain_of(nest).loops:
        var = Var(loop.name, "i64")
        inner = {Var(name, "i64") for name in loop_names(loop)} - {var}
        for ref in loop.unique():
            for place in ref.index if isinstance(ref, Aref) else ():
                terms = linear(place).terms
                if not any(product[0] in inner for product in terms if len(product) == 1):
                    continue
                for atom in [n for product in terms for n in product]:
                    match atom:
                        case Op(fn="floordiv", args=(by_whom, by)) if by_whom is var and (
                                linear(loop.hi).quotient(linear(by)) is not None):
                            yield loop, by


def _innermost(nest: For) -> Iterator[For]:
    """The innermost loops that are not constant, and the constant ones around them."""
    chain = chain_of(nest)
    for loop in reversed(chain.loops):
        yield loop
        if not isinstance(loop.hi, Const):
            break
    for inner in outermost(chain.body):
        yield from _innermost(inner)


def _divisor(node: object, loop: For) -> tuple[Expr, ...]:
    """The divisor of a quotient or remainder of the loop's variable, unless it is constant."""
    match node:
        case Op(fn="floordiv" | "mod", args=(Var(name=name), by)) if name == loop.name and not isinstance(by, Const):
            return (by,)
    return ()


def _chosen_by(loop: For) -> list[Expr]:
    """The small constants whose remainders of the loop's variable choose whether an element at the quotient is read.
    (Where an element at the quotient times the constant is read, all elements read are next to each other.)"""
    nodes = list(loop.unique())
    remainders = [n for choice in nodes if isinstance(choice, Op) and choice.fn == "where"
                  for n in outside_indices((choice.args[0],)) if isinstance(n, Op) and n.fn == "mod"]
    quotients = {q.args for ref in nodes if isinstance(ref, Aref) for i in ref.index
                 for product, times in linear(i).terms.items() for q in product if isinstance(q, Op)
                 and q.fn == "floordiv" and isinstance(q.args[1], Const) and times % q.args[1].value}
    return [n.args[1] for n in remainders if n.args in quotients and _is_shifted(n.args[0], loop)
            and isinstance(n.args[1], Const) and 2 <= n.args[1].value <= MOST_CHOICES]


def _interleaved(loop: For) -> list[Expr]:
    """The small constants by which elements of several rows of an array alternate, x[i mod 2, i / 2]; none where each
    element takes an elementary function, which is computed in vectors along i."""
    found: list[Expr] = []
    if is_compute_bound(loop.body):
        return found
    for ref in loop.unique():
        match ref:
            case Aref(index=(*others, Op(fn="floordiv", args=(Var(name=name), Const(value=count) as by) as of))) if (
                    name == loop.name and 2 <= count <= MOST_CHOICES and Op("mod", of) in others):
                found.append(by)
    return found


def _is_shifted(e: Expr, loop: For) -> bool:
    """Is it the variable of a loop, plus a number?"""
    return linear(e).shifted(-linear(e).constant) == linear(Var(loop.name, "i64"))
