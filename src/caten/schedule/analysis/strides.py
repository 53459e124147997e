"""Every second, third or fourth element of a row as a vector: the row is read as a vector of more lanes, and some of them are kept."""
from __future__ import annotations

from ...core.expr import Const, Expr, Op, index
from ...loop.accesses import conjuncts
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.statements import ZERO, Aref, Ramp, Shuffle, Splat, Vref

MOST_LANES = 64
FARTHEST = 4                   # elements from lane to lane: beyond it, too much would be read for what is kept


def apart(ref: Aref, first: Aref, step: int, lanes: int, mask: Expr | None, shape: tuple[Expr, ...], context: Context) -> Shuffle | None:
    """The elements `ref`, of which the last index grows by `step` from lane to lane and `first` is the first: zeros where a condition of the mask
    that `widened` knows fails. None where what lies between them is not shown to be there, or there is too much of it."""
    count = 1 << ((lanes - 1) * step).bit_length()
    if not 2 <= step <= FARTHEST or count > MOST_LANES:
        return None
    conds = [wide for cond in (conjuncts(mask) if mask is not None else ()) if (wide := widened(cond, step, count)) is not None]
    for cond in conds:
        if isinstance(cond, Splat):
            context = context.given(cond.arg)
    *others, base = first.index
    if not all(context.proves(Op("le", (ZERO, i))) and context.proves(Op("lt", (i, n))) for i, n in zip(others, shape[:-1], strict=True)):
        return None
    row = Ramp(count, base, index(1))
    for proven, bound in ((Op("le", (ZERO, base)), Op("le", (Splat(count, ZERO), row))),
                          (Op("lt", (canonical(base + (count - 1)), shape[-1])), Op("lt", (row, Splat(count, shape[-1]))))):
        if bound not in conds and not context.proves(proven):
            conds.append(bound)
    wide = None
    for cond in conds:
        wide = cond if wide is None else Op("and", (wide, cond))
    return Shuffle(Vref(ref.buffer, count, first.index, -1, wide, ref.type), kept(step, lanes))


def kept(step: int, lanes: int) -> tuple[int, ...]:
    """The lanes that are kept."""
    return tuple(range(0, step * lanes, step))


def widened(cond: Expr, step: int, count: int) -> Expr | None:
    """A condition on `count` lanes, of which every `step`th is a lane of `cond`; None where it is not known for those between."""
    match cond:
        case Splat(arg=arg):
            return Splat(count, arg)
        case Ramp(base=base, step=Const(value=by)) if by % step == 0:
            return Ramp(count, base, index(by // step))
        case Op(fn=fn, args=args) if cond.lanes > 1:
            wide = [widened(a, step, count) for a in args]
            return None if None in wide else Op(fn, tuple([w for w in wide if w is not None]))
    return None


def is_zero_without(vector: Expr, test: Expr) -> bool:
    """Does a vector of elements that lie apart hold zero where `test` fails?"""
    match vector:
        case Shuffle(arg=Vref(count=count, mask=mask), picks=(0, step, *_) as picks) if mask is not None and picks == kept(step, len(picks)):
            return step > 1 and all(widened(part, step, count) in conjuncts(mask) for part in conjuncts(test))
    return False
