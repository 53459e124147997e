"""Expressions of the loop level in C: scalars as C operators or helpers, vectors as GNU vector types."""
from __future__ import annotations

from ..core.dtypes import DTYPES, is_packed, is_short
from ..core.expr import Bitcast, Cast, Const, Expr, Op, Var, number
from ..errors import error
from ..loop.float_ranges import is_nonpositive
from ..loop.statements import Address, Aref, Fold, Lanes, Prefix, Ramp, Shuffle, Splat, Vref
from ..mathematics.elementary.arithmetic import Scaled
from . import conversions
from .c_literals import literal
from .code import ADD, BITAND, CHOICE, EQUALITY, MUL, OR, PRIMARY, SHIFT, UNARY, Code, call, infix, prefix
from .helper_bodies import PART
from .vector_masks import Conditions


def _known(ref: Vref, holds: Expr) -> Vref:
    """A load whose lanes are all on or all off, where they are on. As a masked one it would be made for both arms of a
    choice: of lanes that are off from pages that are not there, it takes a processor hundreds of cycles."""
    match ref.mask:
        case Op(fn="and", args=(a, b)) if holds in (a, b):
            return ref.replace(mask=b if a is holds else a)
    return ref.replace(mask=None) if ref.mask is holds else ref


def shorter_exponential(arg: Expr) -> tuple[str, Expr] | None:
    """The form in elementary_table.PARTIAL that e^arg may have, and what it is of; None where the sign is not known."""
    match arg:
        case Op(fn="min", args=(x, Const(value=0) | Splat(arg=Const(value=0)))):
            return "exp_of_min_0", x
    return ("exp_of_nonpositive", arg) if is_nonpositive(arg) else None


class Expressions(Conditions):
    """Turns expressions into C."""

    def text(self, expr: Expr) -> str:
        """The value as a whole C expression."""
        return self.value(expr).text

    def value(self, expr: Expr) -> Code:
        """The value; a condition on vectors as a mask of its natural width."""
        if expr.dtype == "bool" and self.lanes(expr) > 1:
            return self.mask(expr, self.mask_bits(expr))
        match expr:
            case Const(value=constant, type=dtype):
                return self._constant(constant, dtype)
            case Var(name=name):
                return Code(f"{self.mention(name)} != 0", EQUALITY) if name in self.flags else Code(self.mention(name))
            case Op():
                return self._operator(expr)
            case Cast(type=to, arg=arg):
                return self._cast(to, arg)
            case Bitcast(type=to, arg=arg):
                if to == arg.dtype or {to, arg.dtype} <= {"bool", "u8"} or is_packed(to):
                    return self._cast(to, arg)
                if self.lanes(arg) > 1:
                    return prefix(f"({self.helpers.type(to, self.lanes(arg))})", self.value(arg))
                return call(self.helpers.bits(to, arg.dtype), self.value(arg))
            case Scaled(value=arg, n=n, biased=biased):
                return call(self.helpers.scaled(arg.dtype, self.lanes(arg)), self.value(arg), self.value(n),
                            self.value(biased))
            case Splat(count=count, arg=arg):
                return self.splat(arg, count)
            case Ramp(count=count, base=base, step=step):
                steps = Code(f"({self.helpers.type(base.dtype, count)}){{{', '.join(map(str, range(count)))}}}")
                if not (isinstance(step, Const) and step.value == 1):
                    steps = infix("*", MUL, steps, self.splat(step, count))
                return infix("+", ADD, self.value(base) if DTYPES[base.dtype].bits >= 32 else self.splat(base, count),
                             steps)
            case Lanes(args=args):
                lanes = ", ".join([self.value(a).text for a in args])
                return Code(f"({self.helpers.type(expr.dtype, len(args))}){{{lanes}}}")
            case Shuffle(arg=arg, picks=picks):
                return Code(self.helpers.picked(self.text(arg), arg.dtype, self.lanes(arg), picks))
            case Fold(fn=fn, arg=arg):
                return call(self.helpers.fold(fn, arg.dtype, self.lanes(arg)),
                            self.truth(arg) if arg.dtype == "bool" else self.value(arg))
            case Prefix(fn=fn, arg=arg):
                return call(self.helpers.prefix(fn, arg.dtype, self.lanes(arg)), self.value(arg))
            case Aref():
                return self.element(expr)
            case Vref(mask=Splat(arg=holds), dtype=dtype) if dtype != "bool" and not is_packed(dtype):
                # all lanes or none, without reading what may lie on no page
                zero = self.splat(number(0, dtype), expr.count)
                return Code(f"{self.value(holds).at(CHOICE + 1)} ? {self.load(expr.replace(mask=None)).at(CHOICE + 1)}"
                            f" : {zero.at(CHOICE)}", CHOICE)
            case Vref():
                return self.load(expr)
            case Address(buffer=name):
                return Code(self.mention(name))
        raise TypeError(f"no C for {expr!r}")

    def _constant(self, value: object, dtype: str) -> Code:
        if DTYPES[dtype].kind == "complex":
            self.helpers.type(dtype)
        code = literal(value, dtype)
        if "INFINITY" in code.text or "NAN" in code.text:
            self.helpers.headers.add("math.h")
        return code

    def _operator(self, op: Op) -> Code:
        fn, args, lanes = op.fn, op.args, self.lanes(op)
        dtype = args[-1].dtype
        if fn == "where":
            return self._where(args, lanes)
        if lanes > 1:
            if isinstance(args[0], Vref) and DTYPES[dtype].kind == "complex" and fn in ("real", "imag"):
                return self.part(fn, args[0])
            if DTYPES[dtype].kind == "complex":
                raise error("E613", "complex numbers have no vector form", hint="do not vectorize this loop")
            if (simple := self._simplified_vector(op, lanes)) is not None:
                return simple
            return self.helpers.apply(fn, dtype, lanes, self.operands(fn, args, lanes))
        if (simple := self._simplified(op)) is not None:
            return simple
        codes = [self.value(a) for a in args]
        if all(isinstance(a, Const)
               for a in args) and DTYPES[dtype].bits >= 32 and DTYPES[dtype].kind in ("int", "uint"):
            codes[0] = self._typed(codes[0], dtype)
        return self.helpers.apply(fn, dtype, 1, tuple(codes))

    def _typed(self, constant: Code, dtype: str) -> Code:
        """A constant that has its type in C, too: a plain one may be narrower."""
        return Code(f"({self.helpers.types[dtype]}){constant.at(UNARY)}", UNARY)

    def _simplified(self, op: Op) -> Code | None:
        """The plain C operator where its operands make it exact."""
        last, dtype = op.args[-1], op.args[0].dtype
        match op:
            case Op("floordiv", (Const(value=int(value)),
                                 Op("max", (_, Const(value=int(least)))) as divisor)) if value >= 0 and least > 0:
                return infix("/", MUL, literal(value, dtype), self.value(divisor))
        row = DTYPES[dtype]
        if not isinstance(last, Const) or row.kind not in ("int", "uint") or len(op.args) != 2 or row.bits < 32:
            return None
        value, left = int(last.value), op.args[0]
        if op.fn in ("add", "sub") and DTYPES[dtype].least < value < 0 and not isinstance(left, Const):
            return infix("-" if op.fn == "add" else "+", ADD, self.value(left), literal(-value, dtype))
        power = value > 0 and value & (value - 1) == 0
        if op.fn == "floordiv" and power and not isinstance(left, Const):
            return infix(">>", SHIFT, self.value(left), Code(str(value.bit_length() - 1)))
        if op.fn == "mod" and power and not isinstance(left, Const):
            return infix("&", BITAND, self.value(left), literal(value - 1, dtype))
        return self._plain_shift(op, 1)

    def _simplified_vector(self, op: Op, lanes: int) -> Code | None:
        """The same for a vector and a constant. A division by one is a multiplication, which compilers make of it.
        Exponentials of what is known to be at most 0 have a shorter form."""
        if op.fn == "exp" and (shorter := shorter_exponential(op.args[0])) is not None and (
                function := self.helpers.partial(shorter[0], op.dtype, lanes)) is not None:
            return call(function, self.value(shorter[1]))
        if op.fn in ("shl", "shr"):
            return self._plain_shift(op, lanes)
        left, by = op.args[0], op.args[-1].arg if isinstance(op.args[-1], Splat) else op.args[-1]
        dtype = left.dtype
        if (op.fn not in ("floordiv", "mod", "truncdiv", "truncmod") or DTYPES[dtype].kind not in ("int", "uint")
                or not isinstance(by, Const) or by.value <= 0 or self.lanes(left) == 1):
            return None
        value, vector = int(by.value), self.vector(left, lanes)
        if op.fn.startswith("trunc"):
            return infix("/" if op.fn == "truncdiv" else "%", MUL, vector, self.splat(by, lanes))
        if value & (value - 1):
            return call(self.helpers.divided(op.fn, dtype, lanes), vector, self.splat(by, lanes))
        if op.fn == "mod":
            return infix("&", BITAND, vector, self.splat(number(value - 1, dtype), lanes))
        return self._plain_shift(Op("shr", (left, number(value.bit_length() - 1, dtype))), lanes)

    def _plain_shift(self, op: Op, lanes: int) -> Code | None:
        left, by = op.args[0], op.args[1].arg if isinstance(op.args[1], Splat) else op.args[1]
        row = DTYPES[left.dtype]
        if (op.fn not in ("shl", "shr") or not isinstance(by, Const) or not 0 <= by.value < row.bits
                or isinstance(left, Const)):
            return None
        if lanes > 1:
            amount = Code(str(by.value)) if row.bits >= 32 and self.lanes(left) > 1 else self.splat(by, lanes)
            return infix("<<" if op.fn == "shl" else ">>", SHIFT, self.vector(left, lanes), amount)
        return infix("<<" if op.fn == "shl" else ">>", SHIFT, self.value(left), Code(str(by.value)))

    def _where(self, args: tuple[Expr, ...], lanes: int) -> Code:
        cond, yes, no = args
        if self.lanes(cond) > 1:
            dtype = yes.dtype
            if isinstance(cond, Splat) and isinstance(yes, Vref) and isinstance(no, Vref):
                return self._where((cond.arg, _known(yes, cond), _known(no, Op("not", (cond,)))), lanes)
            return call(self.helpers.select(dtype, lanes), self.mask(cond, DTYPES[dtype].bits), self.vector(yes, lanes),
                        self.vector(no, lanes))
        arms = [self.vector(a, lanes) if lanes > 1 else self.value(a) for a in (yes, no)]
        if lanes == 1 and isinstance(yes, Const) and isinstance(no, Const) and yes.dtype in ("i64", "u64"):
            arms[0] = self._typed(arms[0], yes.dtype)
        return Code(f"{self.value(cond).at(CHOICE + 1)} ? {arms[0].at(CHOICE + 1)} : {arms[1].at(CHOICE)}", CHOICE)

    def _cast(self, to: str, arg: Expr) -> Code:
        of, lanes = arg.dtype, self.lanes(arg)
        kinds = DTYPES[of].kind, DTYPES[to].kind
        if of == to:
            return self.value(arg)
        if (through := conversions.by_way_of(to, of)) is not None:
            return self._cast(to, Cast(through, arg))
        if lanes > 1:
            return self._cast_vector(to, arg, lanes)
        value = self.value(arg)
        if is_short(to) or is_short(of):
            return call(conversions.scalar(self.helpers, to, of), value)
        if kinds[0] == "complex":
            if kinds[1] == "complex":
                part = self.helpers.types[PART[to]]
                return Code(f"({self.helpers.type(to)}){{({part}){value.at(PRIMARY)}.re, "
                            f"({part}){value.at(PRIMARY)}.im}}")
            if to == "bool":
                return Code(f"{value.at(PRIMARY)}.re != 0 || {value.at(PRIMARY)}.im != 0", OR)
            real = Code(f"{value.at(PRIMARY)}.re")
            if to == PART[of]:
                return real
            if kinds[1] in ("int", "uint"):
                return call(self.helpers.saturate(to, PART[of]), real)
            return prefix(f"({self.helpers.types[to]})", real)
        if kinds[1] == "complex":
            part = self.helpers.types[PART[to]]
            first = value.text if of == PART[to] else f"({part}){value.at(UNARY)}"
            return Code(f"({self.helpers.type(to)}){{{first}, 0}}")
        if to == "bool":
            return infix("!=", EQUALITY, value, Code("0"))
        if kinds[0] == "float" and kinds[1] in ("int", "uint"):
            return call(self.helpers.saturate(to, of), value)
        if is_packed(to) and of != "bool":
            byte = "i8" if to == "i4" else "u8"
            return call(conversions.wrapped(self.helpers, to), prefix(f"({self.helpers.types[byte]})", value))
        return prefix(f"({self.helpers.types[to]})", value)

    def _cast_vector(self, to: str, arg: Expr, lanes: int) -> Code:
        of, h = arg.dtype, self.helpers
        kinds = DTYPES[of].kind, DTYPES[to].kind
        if "complex" in kinds:
            raise error("E613", "complex numbers have no vector form", hint="do not vectorize this loop")
        if is_short(to) or is_short(of):
            return call(conversions.vector(h, to, of, lanes), self.value(arg))
        if of == "bool":                                        # a mask is -1 or 0
            bits = DTYPES[to].bits
            ones = Code(f"-{self.mask(arg, bits).at(UNARY)}", UNARY)
            return ones if to == f"i{bits}" else h.converted(ones, f"i{bits}", to, lanes)
        if kinds[0] == "float" and kinds[1] in ("int", "uint"):
            return call(conversions.saturated(h, to, of, lanes), self.value(arg))
        if is_packed(to):
            byte = "i8" if to == "i4" else "u8"
            return call(conversions.wrapped(h, to, lanes), h.converted(self.value(arg), of, byte, lanes))
        return h.converted(self.value(arg), of, to, lanes)
