"""Conditions on vectors in C: masks, as integers of the width of the data."""
from __future__ import annotations

from ..core.dtypes import DTYPES, computed, is_integer, is_packed, is_short
from ..core.expr import Bitcast, Cast, Const, Expr, Op, Var, index, number
from ..core.scalars import COMPARISONS, EXCHANGED
from ..loop.statements import Ramp, Shuffle, Splat, Vref
from .addresses import Memory
from .code import ADD, BITXOR, CHOICE, EQUALITY, OR, RELATION, UNARY, Code, Infix, call, infix, prefix


class Conditions(Memory):
    """Comparisons and logic lane by lane."""

    def mask(self, expr: Expr, bits: int) -> Code:
        """A bool vector as integers of `bits` bits: -1 where it holds, 0 elsewhere."""
        lanes, h = self.lanes(expr), self.helpers
        asked = _of_lanes(expr)
        small = self._counted(asked, bits, lanes) or self._periodic(asked, bits, lanes)
        if small is not None:
            return small
        narrow = _in_narrow_lanes(asked, lanes)
        if narrow is not None:
            return self.mask(narrow, bits)
        match expr:
            case Op(fn=fn, args=args) if fn in (*COMPARISONS, "isnan", "isinf") and args[0].dtype != "bool":
                own = DTYPES[args[0].dtype].bits
                sides = tuple([self.vector(a, lanes) for a in args]) if h.is_wide(args[0].dtype, lanes) else \
                    self.operands(fn, args, lanes)
                if fn == "isnan":
                    done = infix("!=", EQUALITY, sides[0], sides[0])
                elif fn == "isinf":
                    h.headers.add("math.h")
                    done = infix("==", EQUALITY, call(h.vector_operator("abs", args[0].dtype, lanes, 1), sides[0]),
                                 self.splat(Const(float("inf"), args[0].dtype), lanes))
                else:
                    done = h.compared(fn, args[0].dtype, sides[0], sides[1], lanes)
                return self._compared(done, own, bits, lanes)
            case Op(fn="not", args=(arg,)):
                return prefix("~", self.condition(arg, bits, lanes))
            case Op(fn="where", args=(cond, yes, no)):
                arms = self.condition(yes, bits, lanes), self.condition(no, bits, lanes)
                if self.lanes(cond) == 1:
                    return Code(f"{self.value(cond).at(OR)} ? {arms[0].at(OR)} : {arms[1].at(OR)}", CHOICE)
                return call(h.select(f"i{bits}", lanes), self.mask(cond, bits), *arms)
            case Op(fn=fn, args=args):                          # logic, and the comparison of conditions
                left, right = [self.condition(a, bits, lanes) for a in args]
                match fn:
                    case "and" | "or" | "xor":
                        spelling = h.ops[fn]
                        assert isinstance(spelling, Infix)
                        return infix(spelling.symbol, spelling.level, left, right)
                    case "eq":
                        return prefix("~", infix("^", BITXOR, left, right))
                    case "ne":
                        return infix("^", BITXOR, left, right)
                # true is -1 in a mask, so the order turns around
                symbol = {"lt": ">", "gt": "<", "le": ">=", "ge": "<="}[fn]
                return self._compared(infix(symbol, RELATION, left, right), bits, bits, lanes)
            case Cast(arg=arg) if is_short(arg.dtype):
                return self.mask(Cast("bool", Cast(computed(arg.dtype), arg)), bits)
            case Cast(arg=arg) if arg.dtype != "bool":
                return self._compared(infix("!=", EQUALITY, self.value(arg), self.splat(number(0, arg.dtype), lanes)),
                                      DTYPES[arg.dtype].bits, bits, lanes)
            case Cast(arg=arg) | Bitcast(arg=arg):
                return self.mask(arg, bits)
            case Splat(arg=arg):
                return self.condition(arg, bits, lanes)
            case Shuffle(arg=arg, picks=picks):
                v = self.mask(arg, bits).text
                return Code(f"__builtin_shufflevector({v}, {v}, {', '.join(map(str, picks))})")
            case Var(name=name):
                return self._resized(Code(self.mention(name)), self.vectors[name][1], bits, lanes)
            case Vref():
                return self._compared(infix("!=", EQUALITY, self.load(expr), Code(f"(ct_u8x{lanes}){{0}}")), 8, bits,
                                      lanes)
        raise TypeError(f"no mask for {expr!r}")

    def _counted(self, expr: Expr, bits: int, lanes: int) -> Code | None:
        """Which lanes of a range of indices lie below a bound: their number, compared with the numbers of the lanes.
        One comparison in the width of the data, where two of 64 bits and a conversion would be."""
        match expr:
            case Op(fn=fn, args=(Ramp(base=base, step=Const(value=1 | -1 as step)), Splat(arg=end))):
                pass
            case _:
                return None
        if fn not in EXCHANGED or not self.is_index(base) or not self.is_index(end) or lanes >= 1 << (bits - 1):
            return None
        if step < 0:                                 # base - lane > end  where  end + lane < base
            base, end, fn = end, base, EXCHANGED[fn]
        limit = self.value(end + 1 if fn in ("le", "gt") else end)
        rest = bool(base.variables & end.variables)      # it begins at a multiple of the lanes in what there is
        below = call(self.helpers.below(bits, lanes, rest), self.value(base), limit)
        return below if fn in ("lt", "le") else prefix("~", below)

    def _periodic(self, expr: Expr, bits: int, lanes: int) -> Code | None:
        """Which lanes of a range of indices have a remainder: of small numbers, which are those of the lanes and the
        remainder of the first one. Divisions of 64 bits have no vector form."""
        match expr:
            case Op(fn=fn, args=(Op("mod", (Ramp(base=base, step=Const(value=1)), Splat(arg=Const(value=int(by))))),
                                 Splat(arg=Const(value=int(rest))))) if fn in COMPARISONS:
                pass
            case _:
                return None
        h, width = self.helpers, min(max(bits, 16), 32)
        if not self.is_index(base) or not 0 <= rest < by or by + lanes >= 1 << (width - 1):
            return None
        small, kind = f"i{width}", h.mask_type(width, lanes)
        first = prefix(f"({h.types[small]})", self.value(Op("mod", (base, number(by, "i64")))))
        numbers = infix("+", ADD, call(h.splat(small, lanes), first),
                        Code(f"({kind}){{{', '.join(map(str, range(lanes)))}}}"))
        left = call(h.divided("mod", small, lanes), numbers, self.splat(number(by, small), lanes))
        done = h.compared(fn, small, left, self.splat(number(rest, small), lanes), lanes)
        return self._resized(done, width, bits, lanes)

    def is_index(self, expr: Expr) -> bool:
        """Is it made of loop variables and sizes alone, and so far from the ends of 64 bits?"""
        return expr.dtype == "i64" and all(n.name in self.indices if isinstance(n, Var) else isinstance(n, Const | Op)
                                           for n in expr.unique())

    def condition(self, expr: Expr, bits: int, lanes: int) -> Code:
        """A condition, scalar or vector, as a mask."""
        if self.lanes(expr) > 1:
            return self.mask(expr, bits)
        self.helpers.mask_type(bits, lanes)
        signed = self.helpers.types[f"i{bits}"]
        return call(self.helpers.splat(f"i{bits}", lanes), Code(f"({signed})-{self.value(expr).at(UNARY)}", UNARY))

    def _compared(self, done: Code, own: int, bits: int, lanes: int) -> Code:
        """What a comparison of lanes of `own` bits gives, as a mask. Of bytes, clang gives plain `char`, which has no
        sign on many machines."""
        return self._resized(prefix(f"({self.helpers.mask_type(8, lanes)})", done) if own == 8 else done, own, bits,
                             lanes)

    def _resized(self, mask: Code, own: int, bits: int, lanes: int) -> Code:
        if own == bits:
            return mask
        given = prefix(f"({self.helpers.mask_type(own, lanes)})", mask)     # a comparison of longs may be one of ints
        return self.helpers.converted(given, f"i{own}", f"i{bits}", lanes)

    def truth(self, expr: Expr) -> Code:
        """A bool vector as it is stored: bytes 1 and 0."""
        return prefix(f"({self.helpers.type('bool', self.lanes(expr))})", prefix("-", self.mask(expr, 8)))

    def splat(self, arg: Expr, count: int) -> Code:
        return call(self.helpers.splat(arg.dtype, count), self.value(arg))

    def operands(self, fn: str, args: tuple[Expr, ...], lanes: int) -> tuple[Code, ...]:
        """The operands of a vector operator. C's own operators broadcast a scalar operand, so they need no splat."""
        scalars = [a.arg if isinstance(a, Splat) else a for a in args]
        plain = (isinstance(self.helpers.ops.get(fn), Infix) and DTYPES[args[0].dtype].bits >= 32
                 and any(self.lanes(a) > 1 for a in scalars))
        return tuple([self.value(a) if plain else self.vector(a, lanes) for a in (scalars if plain else args)])

    def vector(self, arg: Expr, count: int) -> Code:
        return self.value(arg) if self.lanes(arg) > 1 else self.splat(arg, count)


def _in_narrow_lanes(expr: Expr, lanes: int) -> Expr | None:
    """A comparison of integers with a number of 64 bits, in their own width: with the nearest number that their type
    has. What is below them all, or above, is told once for all lanes."""
    match expr:
        case Op(fn="lt" | "le" | "gt" | "ge" as fn, args=(Cast(type="i64", arg=numbers), Splat(arg=end))) if (
                is_integer(numbers.dtype) and not is_packed(numbers.dtype) and DTYPES[numbers.dtype].bits < 64
                and not isinstance(numbers, Ramp)):
            row = DTYPES[numbers.dtype]
        case _:
            return None
    least, greatest = index(row.least), index(row.greatest)
    if isinstance(end, Const):
        return None
    nearest = Splat(lanes, Cast(numbers.dtype, Op("min", (Op("max", (end, least)), greatest))))
    if fn in ("le", "gt"):                       # numbers ≤ end
        holds = Op("and", (Op("le", (numbers, nearest)), Splat(lanes, Op("le", (least, end)))))
    else:                                        # end ≤ numbers
        holds = Op("and", (Op("ge", (numbers, nearest)), Splat(lanes, Op("le", (end, greatest)))))
    return holds if fn in ("le", "ge") else Op("not", (holds,))


def _of_lanes(expr: Expr) -> Expr:
    """A comparison with what differs from lane to lane first, and what is the same in all behind it."""
    match expr:
        case Op(fn=fn, args=(Splat() as same, lanes)) if fn in COMPARISONS:
            return Op(EXCHANGED.get(fn, fn), (lanes, same))
    return expr
