"""Kernels that are equal but for where their arrays begin, as the steps of a recurrence over x[:, t] are.

    v1[i, j] += w[i, p] · x[j, 0, p]        |  one kernel over x[j, 0, p], which runs on x from [0, 0, 0],
    v2[i, j] += w[i, p] · x[j, 1, p]        |  from [0, 1, 0] and from [0, 2, 0] on
    v3[i, j] += w[i, p] · x[j, 2, p]        |

A start is a number of elements along each axis, which all accesses to the array have in their indices. It is added to
the pointer that the kernel is called with, so the kernel itself is as one that begins at 0.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.dtypes import is_packed
from ..core.expr import Const, Var, index
from ..core.node import unique_in
from ..core.program import Buffer
from ..loop.affine import Linear, linear
from ..loop.renaming import shifted_arrays
from ..loop.statements import Aref, For, Local, Stmt, Vref

Start = tuple[int, ...]
LEAST = 3                           # kernels that become one: less code is worth little more than a pointer's alignment


def starts_of(stmts: Sequence[Stmt], arrays: Mapping[str, Buffer | Local]) -> dict[str, Start]:
    """How far from the beginning all accesses to an array are at least, along each axis; only for arrays where that is
    not 0 throughout."""
    not_negative: set[str] = set()
    found: dict[str, Start] = {}
    for n in unique_in(stmts):
        match n:
            case For(name, lo, _, Const(int() as step)) if step > 0 and _least(linear(lo), not_negative) >= 0:
                not_negative.add(name)
            case Aref(name, at) if name in arrays and not is_packed(arrays[name].type):
                own = tuple([max(0, _least(linear(i), not_negative)) for i in at])
                found[name] = tuple(map(min, own, found.get(name, own)))
            case Vref(name):
                found[name] = ()
    return {name: start for name, start in found.items() if any(start)}


def _least(form: Linear, not_negative: set[str]) -> int:
    """A number that an index is not below: 0 where none is known."""
    return form.constant if all(c > 0 and all(isinstance(atom, Var) and atom.name in not_negative for atom in monomial)
                                for monomial, c in form.terms.items()) else 0


def moved_by(stmts: tuple[Stmt, ...], starts: Mapping[str, Start], sign: int) -> tuple[Stmt, ...]:
    """The statements with their accesses that many elements further on, or with `sign` -1 nearer to the beginning."""
    return shifted_arrays(stmts, {name: tuple([index(sign * n) for n in start]) for name, start in starts.items()})


def where_they_differ(every: Sequence[Sequence[Start]]) -> list[Mapping[int, Start]]:
    """Of kernels that are equal but for the starts of their arrays: those along axes where they are not the same for
    all kernels, by the numbers of the arrays."""
    differ = [tuple([len(set(along)) > 1 for along in zip(*starts, strict=True)])
              for starts in zip(*every, strict=True)]
    return [{k: tuple([n if varies else 0 for n, varies in zip(start, differ[k], strict=True)])
             for k, start in enumerate(starts) if any(differ[k])} for starts in every]
