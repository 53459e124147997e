"""Every second element of a row as a vector: the row is read as a vector of twice the lanes, and half of them are kept."""
from __future__ import annotations

from ..core.expr import Const, Expr, Op, index
from ..loop.accesses import conjuncts
from ..loop.affine import canonical
from ..loop.context import Context
from ..loop.statements import ZERO, Aref, Ramp, Shuffle, Splat, Vref

MOST_LANES = 64


def every_second(ref: Aref, first: Aref, lanes: int, mask: Expr | None, shape: tuple[Expr, ...], context: Context) -> Shuffle | None:
    """The elements `ref`, of which the last index grows by 2 from lane to lane and `first` is the first: zeros where a condition of the mask that
    `doubled` knows fails. None where what lies between them is not shown to be there."""
    count = 2 * lanes
    if count > MOST_LANES:
        return None
    conds = [wide for cond in (conjuncts(mask) if mask is not None else ()) if (wide := doubled(cond)) is not None]
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
    return Shuffle(Vref(ref.buffer, count, first.index, -1, wide, ref.type), tuple(range(0, count, 2)))


def doubled(cond: Expr) -> Expr | None:
    """A condition on twice the lanes, of which every second one is a lane of `cond`; None where it is not known for those between."""
    match cond:
        case Splat(count=count, arg=arg):
            return Splat(2 * count, arg)
        case Ramp(count=count, base=base, step=Const(value=step)) if step % 2 == 0:
            return Ramp(2 * count, base, index(step // 2))
        case Op(fn=fn, args=args) if cond.lanes > 1:
            wide = [doubled(a) for a in args]
            return None if None in wide else Op(fn, tuple([w for w in wide if w is not None]))
    return None


def is_zero_without(vector: Expr, test: Expr) -> bool:
    """Does a vector of every second element hold zero where `test` fails?"""
    match vector:
        case Shuffle(arg=Vref(mask=mask), picks=picks) if mask is not None and picks == tuple(range(0, 2 * len(picks), 2)):
            return all(doubled(part) in conjuncts(mask) for part in conjuncts(test))
    return False
