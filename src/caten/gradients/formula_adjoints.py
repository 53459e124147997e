"""Reverse accumulation over one formula: how much an element depends on each of its reads.

    y[i] = x[i] · exp(x[i])      the weight of x[i]:  g[i] · exp(x[i]) + g[i] · x[i] · exp(x[i])

The weight of a read is the derivative of the element with respect to it, times what the element is weighted with
(Griewank and Walther, Evaluating Derivatives, 2nd edition, chapter 3). A part that is evaluated only under a condition
has its weight under this condition, so that what happens in the other arm (1/0, an element outside) is of no effect.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.derivatives import derivative
from ..core.dtypes import computed, is_complex, is_float
from ..core.expr import TRUE, Bitcast, Cast, Const, Expr, Op, Var, number
from ..core.node import Node, kept
from ..tensor.conditional_values import both, either, under
from ..tensor.values import Pieces, Read

STEPS = frozenset(("floordiv", "truncdiv", "floor", "ceil", "trunc", "round", "sign"))      # constant between jumps
Leaf = Read | Var
Weights = dict[Leaf, tuple[Expr, Expr]]


class NotDifferentiable(Exception):
    """Something has no derivative. `what`: what it is; `name`: of the value whose formula it is in, once known."""

    def __init__(self, what: str, name: str = "") -> None:
        super().__init__(what)
        self.what, self.name = what, name


def weights(e: Expr, seed: Expr, is_wanted: Callable[[Leaf], bool]) -> Weights:
    """For each wanted read, and each wanted scalar, of a formula: the condition under which the element depends on it,
    and its weight there, of the type in which its own type is computed. `seed`: the weight of the element."""
    order = _operands_first(e)
    depends = _dependents(order, is_wanted)
    found: Weights = {}
    if e not in depends:
        return found
    weight_of: dict[Expr, tuple[Expr, Expr]] = {e: (TRUE, seed)}
    for part in reversed(order):
        if part not in depends:
            continue
        guard, weight = weight_of[part]
        if isinstance(part, Read | Var):
            found[part] = guard, weight
            continue
        for operand, cond, factor in _operands(part, depends):
            more = both(guard, cond), times(weight, factor) if factor is not None else _cast(
                weight, computed(operand.dtype))
            weight_of[operand] = _sum(weight_of[operand], more) if operand in weight_of else more
    return found


def _operands(part: Expr, depends: set[Expr]) -> list[tuple[Expr, Expr, Expr | None]]:
    """The operands that matter, the condition under which each does, and the derivative with respect to it; None for a
    conversion."""
    match part:
        case Op("where", (cond, yes, no)):
            return [(arm, under, one(computed(arm.dtype))) for arm, under in ((yes, cond), (no, Op("not", (cond,))))
                    if arm in depends]
        case Pieces(at, arms, bounds):
            lows, highs = (None, *bounds), (*bounds, None)
            return [(arm, both(TRUE if low is None else Op("le", (low, at)),
                               TRUE if high is None else Op("lt", (at, high))), one(computed(arm.dtype)))
                    for arm, low, high in zip(arms, lows, highs, strict=True) if arm in depends]
        case Cast(_, arg):
            return [(arg, TRUE, None)]
        case Op(fn, args) if any(is_complex(e.dtype) for e in (part, *args)):
            raise NotDifferentiable("gradients of complex numbers are not known")
        case Bitcast():
            raise NotDifferentiable("it works on the bits of a number")
        case Op(fn, args):
            made: list[tuple[Expr, Expr, Expr | None]] = []
            for n, arg in enumerate(args):
                if arg in depends:
                    slope = _slope(part, n)
                    if slope is None:
                        raise NotDifferentiable(f"the derivative of {fn} is not known")
                    made.append((arg, TRUE, slope))
            return made
    raise NotDifferentiable(f"{part.head or type(part).__name__.lower()} has no derivative")


def _slope(e: Op, n: int) -> Expr | None:
    match e:
        case Op("pow", (x, _)) if n == 1:                    # log(0) · 0^y is 0 for y > 0
            return Op("where", (Op("eq", (x, number(0.0, x.dtype))), number(0.0, x.dtype), Op("log", (x,)) * e))
        case Op("pow", (_, y)) if not isinstance(y, Const):  # 0 · 0^-1 is 0 for y = 0
            zero, slope = number(0.0, y.dtype), derivative(e, n)
            return None if slope is None else Op("where", (Op("eq", (y, zero)), zero, slope))
        case Op("conj" | "real"):                            # of real numbers
            return one(e.dtype)
    return derivative(e, n)


def _dependents(order: Sequence[Expr], is_wanted: Callable[[Leaf], bool]) -> set[Expr]:
    """Of parts, each after its operands, those that depend on wanted leaves, and depend smoothly."""
    found: set[Expr] = set()
    for part in order:
        if is_wanted(part) if isinstance(part, Read | Var) else any(o in found for o in _smooth_operands(part)):
            found.add(part)
    return found


def _smooth_operands(part: Expr) -> tuple[Expr, ...]:
    """The operands on which a part depends but by steps."""
    match part:
        case Read() | Var() | Const():
            return ()
        case Pieces(_, arms):
            return arms
        case Op("where", (_, yes, no)):
            return yes, no
        case Op(fn, args):
            return () if fn in STEPS or not (is_float(part.dtype) or is_complex(part.dtype)) else args
        case Cast(dtype, arg):
            return (arg,) if is_float(dtype) and (is_float(arg.dtype) or is_complex(arg.dtype)) else ()
        case Bitcast(dtype, arg) if is_float(dtype):         # whatever is in it
            return tuple([n for n in arg.unique() if isinstance(n, Read | Var)])
    return ()


@kept
def holds_bits(value: Node) -> bool:
    """Does it have the bits of a float as an integer?"""
    return any(isinstance(n, Bitcast) and is_float(n.arg.dtype) and not is_float(n.type) for n in value.unique())


def _operands_first(e: Expr) -> list[Expr]:
    """The parts on which the element depends smoothly, each after its operands."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack = [(e, False)]
    while stack:
        part, is_ready = stack.pop()
        if is_ready:
            order.append(part)
        elif part not in seen:
            seen.add(part)
            stack.append((part, True))
            stack += [(o, False) for o in _smooth_operands(part)]
    return order


def _sum(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """Two weights of one part, under the condition that either holds."""
    if a[0] is b[0]:
        return a[0], plus(a[1], b[1])
    return either(a[0], b[0]), plus(under(*a), under(*b))


def one(dtype: str) -> Const:
    """The number 1 of a type."""
    return number(1.0, dtype)


def times(a: Expr, b: Expr) -> Expr:
    """a · b in a simple form."""
    for x, y in ((a, b), (b, a)):
        match x:
            case Const(1.0 | 1):
                return y
            case Const(-1.0 | -1):
                return Op("neg", (y,))
            case Op("sub", (Const(0.0), z)):
                return Op("neg", (times(y, z),))
            case Op("neg", (z,)):
                return Op("neg", (times(y, z),))
            case Op("div", (Const(1.0), z)):
                return Op("div", (y, z))
    return Op("mul", (a, b))


def plus(a: Expr, b: Expr) -> Expr:
    """a + b, or a - c where b is -c."""
    return Op("sub", (a, b.args[0])) if isinstance(b, Op) and b.fn == "neg" else Op("add", (a, b))


def _cast(e: Expr, dtype: str) -> Expr:
    return e if e.dtype == dtype else Cast(dtype, e)


def wide(e: Expr) -> Expr:
    """An expression in the type in which its own type is computed: gradients of 16-bit floats are summed in float32."""
    return _cast(e, computed(e.dtype))
