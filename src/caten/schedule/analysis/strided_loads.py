"""Strided loads (every second, third or fourth element): a longer contiguous load, then a shuffle that selects
lanes."""
from __future__ import annotations

from ...core.expr import Const, Expr, Op, index
from ...loop.accesses import conjuncts
from ...loop.affine import canonical, linear
from ...loop.context import Context
from ...loop.statements import ZERO, Aref, Ramp, Shuffle, Splat, Vref

MOST_LANES = 64
MAX_STRIDE = 4                 # a larger stride would load too much for the lanes it keeps


def apart(ref: Aref, first: Aref, step: int, lanes: int, mask: Expr | None, shape: tuple[Expr, ...],
          context: Context) -> Shuffle | None:
    """Load `ref` with a stride. Its last index grows by `step` per lane; `first` is the first lane. A lane is zero
    where a condition of the mask that `widened` handles fails. None if the elements between the lanes are not proven to
    be in bounds, or if there are too many."""
    count = 1 << ((lanes - 1) * step).bit_length()
    if not 2 <= step <= MAX_STRIDE or count > MOST_LANES:
        return None
    *others, base = first.index
    offset = linear(base).constant % step
    if (lanes - 1) * step + offset < count and context.proves(Op("le", (ZERO, base - offset))):
        base = canonical(base - offset)                # neighbours are lanes of one load
    else:
        offset = 0
    parts = conjuncts(mask) if mask is not None else ()
    conds = [wide for cond in parts if (wide := widened(cond, step, count, offset)) is not None]
    for cond in conds:
        if isinstance(cond, Splat):
            context = context.given(cond.arg)
    if not all(context.proves(Op("le", (ZERO, i))) and context.proves(Op("lt", (i, n)))
               for i, n in zip(others, shape[:-1], strict=True)):
        return None
    row = Ramp(count, base, index(1))
    last = canonical(base + (count - 1))
    for proven, bound in ((Op("le", (ZERO, base)), Op("le", (Splat(count, ZERO), row))),
                          (Op("lt", (last, shape[-1])), Op("lt", (row, Splat(count, shape[-1]))))):
        if bound not in conds and not context.proves(proven):
            conds.append(bound)
    wide = None
    for cond in conds:
        wide = cond if wide is None else Op("and", (wide, cond))
    return Shuffle(Vref(ref.buffer, count, (*others, base), -1, wide, ref.type), kept(step, lanes, offset))


def kept(step: int, lanes: int, offset: int = 0) -> tuple[int, ...]:
    """The lanes that the shuffle keeps."""
    return tuple(range(offset, offset + step * lanes, step))


def widened(cond: Expr, step: int, count: int, offset: int = 0) -> Expr | None:
    """Widen a condition to `count` lanes, every `step`th of which is a lane of `cond`, from lane `offset` on; None if
    the others are unknown."""
    match cond:
        case Splat(arg=arg):
            return Splat(count, arg)
        case Ramp(base=base, step=Const(value=by)) if by % step == 0:
            return Ramp(count, canonical(base - offset * (by // step)) if offset else base, index(by // step))
        case Op(fn=fn, args=args) if cond.lanes > 1:
            wide = [widened(a, step, count, offset) for a in args]
            return None if None in wide else Op(fn, tuple([w for w in wide if w is not None]))
    return None


def is_zero_without(vector: Expr, test: Expr) -> bool:
    """Is a strided load zero where `test` fails?"""
    match vector:
        case Shuffle(arg=Vref(count=count, mask=mask), picks=(offset, second, *_) as picks) if mask is not None:
            step = second - offset
            is_strided = 0 <= offset < step and step > 1 and picks == kept(step, len(picks), offset)
            known = conjuncts(mask) if is_strided else ()
            return bool(known) and all(widened(part, step, count, offset) in known for part in conjuncts(test))
    return False
