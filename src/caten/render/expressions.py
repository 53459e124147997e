"""Expressions of the loop level in C: scalars as C operators or helpers, vectors as GNU vector types, conditions on vectors as masks."""
from __future__ import annotations

from dataclasses import dataclass, field

from ..core.dtypes import DTYPES
from ..core.expr import Bitcast, Cast, Const, Expr, Op, Var, number
from ..errors import error
from ..loop.statements import Aref, Fold, Ramp, Ref, Shuffle, Splat, Vref
from . import registers
from .code import ADD, BITAND, BITXOR, CHOICE, EQUALITY, MUL, OR, PRIMARY, RELATION, SHIFT, UNARY, Code, Infix, call, infix, prefix
from .flatten import distance, offset
from .helpers import COMPARISONS, PART, Helpers
from .literals import literal
from .names import Names

STRIDED = {"load": "gather", "store": "scatter"}


@dataclass(frozen=True)
class View:
    """How a buffer or local is reached: its shape and memory order, and for one in named registers the elements per variable."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    order: tuple[int, ...]
    strides: tuple[Expr, ...] = ()
    width: int = 0                         # named registers: elements in one variable (0: an array in memory)
    outside: bool = False                  # memory of the caller: a bool there may be any byte


@dataclass
class Expressions:
    """Turns expressions into C. `views` and `vectors` grow as declarations are met; `used` collects the parameters that the text mentions."""

    helpers: Helpers
    names: Names
    views: dict[str, View] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()                                 # bool scalars of the caller
    indices: frozenset[str] = frozenset()                               # loop variables and sizes
    vectors: dict[str, tuple[int, int]] = field(default_factory=dict)   # vector names: lanes, and bits of a mask's lanes
    used: dict[str, None] = field(default_factory=dict)

    # -- shape of a value -------------------------------------------------------------------------------------------------------------------

    def lanes(self, expr: Expr) -> int:
        match expr:
            case Var(name=name):
                return self.vectors.get(name, (1, 0))[0]
            case Op(args=args):
                return max([self.lanes(a) for a in args])
            case Cast(arg=arg) | Bitcast(arg=arg):
                return self.lanes(arg)
        return expr.lanes

    def mask_bits(self, expr: Expr) -> int:
        """The width of lanes that a condition on vectors comes in most naturally."""
        match expr:
            case Var(name=name) if name in self.vectors:
                return self.vectors[name][1]
            case Op(fn=fn, args=args) if fn in (*COMPARISONS, "isnan", "isinf") and args[0].dtype != "bool":
                return DTYPES[args[0].dtype].bits
            case Op(args=args):
                return max([self.mask_bits(a) for a in args if self.lanes(a) > 1])
            case Cast(arg=arg) if arg.dtype != "bool":
                return DTYPES[arg.dtype].bits
            case Cast(arg=arg) | Shuffle(arg=arg):
                return self.mask_bits(arg)
        return 8

    def mention(self, name: str) -> str:
        """The C name of a variable or buffer."""
        self.used[name] = None
        return self.names.of(name)

    # -- values -----------------------------------------------------------------------------------------------------------------------------

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
                if to == arg.dtype or {to, arg.dtype} <= {"bool", "u8"}:
                    return self._cast(to, arg)
                if self.lanes(arg) > 1:
                    return prefix(f"({self.helpers.type(to, self.lanes(arg))})", self.value(arg))
                return call(self.helpers.bits(to, arg.dtype), self.value(arg))
            case Splat(count=count, arg=arg):
                return self._splat(arg, count)
            case Ramp(count=count, base=base, step=step):
                steps = Code(f"({self.helpers.type(base.dtype, count)}){{{', '.join(map(str, range(count)))}}}")
                if not (isinstance(step, Const) and step.value == 1):
                    steps = infix("*", MUL, steps, self._splat(step, count))
                return infix("+", ADD, self.value(base) if DTYPES[base.dtype].bits >= 32 else self._splat(base, count), steps)
            case Shuffle(arg=arg, picks=picks):
                v = self.text(arg)
                return Code(f"__builtin_shufflevector({v}, {v}, {', '.join(map(str, picks))})")
            case Fold(fn=fn, arg=arg):
                return call(self.helpers.fold(fn, arg.dtype, self.lanes(arg)), self.value(arg))
            case Aref():
                return self._element(expr)
            case Vref():
                return self._load(expr)
        raise TypeError(f"no C for {expr!r}")

    def _constant(self, value: object, dtype: str) -> Code:
        if DTYPES[dtype].kind == "complex":
            self.helpers.type(dtype)
        code = literal(value, dtype)
        if "INFINITY" in code.text or "NAN" in code.text:
            self.helpers.headers.add("math.h")
        return code

    def _splat(self, arg: Expr, count: int) -> Code:
        return call(self.helpers.splat(arg.dtype, count), self.value(arg))

    def _operands(self, fn: str, args: tuple[Expr, ...], lanes: int) -> tuple[Code, ...]:
        """The operands of a vector operator. C's own operators take a scalar beside a vector, so there a splat is left out."""
        scalars = [a.arg if isinstance(a, Splat) else a for a in args]
        plain = isinstance(self.helpers.ops.get(fn), Infix) and DTYPES[args[0].dtype].bits >= 32 and any(self.lanes(a) > 1 for a in scalars)
        return tuple([self.value(a) if plain else self._vector(a, lanes) for a in (scalars if plain else args)])

    def _vector(self, arg: Expr, count: int) -> Code:
        return self.value(arg) if self.lanes(arg) > 1 else self._splat(arg, count)

    def _operator(self, op: Op) -> Code:
        fn, args, lanes = op.fn, op.args, self.lanes(op)
        dtype = args[-1].dtype
        if fn == "where":
            return self._where(args, lanes)
        if lanes > 1:
            if DTYPES[dtype].kind == "complex":
                raise error("E613", "complex numbers have no vector form", hint="do not vectorize this loop")
            if fn in ("shl", "shr") and (shift := self._plain_shift(op, lanes)) is not None:
                return shift
            return self.helpers.apply(fn, dtype, lanes, self._operands(fn, args, lanes))
        if (simple := self._simplified(op)) is not None:
            return simple
        codes = [self.value(a) for a in args]
        if all(isinstance(a, Const) for a in args) and DTYPES[dtype].bits >= 32 and DTYPES[dtype].kind in ("int", "uint"):
            codes[0] = self._typed(codes[0], dtype)
        return self.helpers.apply(fn, dtype, 1, tuple(codes))

    def _typed(self, constant: Code, dtype: str) -> Code:
        """A constant that has its type in C, too: a plain one may be narrower."""
        return Code(f"({self.helpers.types[dtype]}){constant.at(UNARY)}", UNARY)

    def _simplified(self, op: Op) -> Code | None:
        """The plain C operator where its operands make it exact."""
        last, dtype = op.args[-1], op.args[0].dtype
        if not isinstance(last, Const) or DTYPES[dtype].kind not in ("int", "uint") or len(op.args) != 2 or DTYPES[dtype].bits < 32:
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

    def _plain_shift(self, op: Op, lanes: int) -> Code | None:
        left, by = op.args[0], op.args[1].arg if isinstance(op.args[1], Splat) else op.args[1]
        row = DTYPES[left.dtype]
        if op.fn not in ("shl", "shr") or not isinstance(by, Const) or not 0 <= by.value < row.bits or isinstance(left, Const):
            return None
        if lanes > 1:
            amount = Code(str(by.value)) if row.bits >= 32 and self.lanes(left) > 1 else self._splat(by, lanes)
            return infix("<<" if op.fn == "shl" else ">>", SHIFT, self._vector(left, lanes), amount)
        return infix("<<" if op.fn == "shl" else ">>", SHIFT, self.value(left), Code(str(by.value)))

    def _where(self, args: tuple[Expr, ...], lanes: int) -> Code:
        cond, yes, no = args
        if self.lanes(cond) > 1:
            dtype = yes.dtype
            return call(self.helpers.select(dtype, lanes), self.mask(cond, DTYPES[dtype].bits), self._vector(yes, lanes), self._vector(no, lanes))
        arms = [self._vector(a, lanes) if lanes > 1 else self.value(a) for a in (yes, no)]
        if lanes == 1 and isinstance(yes, Const) and isinstance(no, Const) and yes.dtype in ("i64", "u64"):
            arms[0] = self._typed(arms[0], yes.dtype)
        return Code(f"{self.value(cond).at(CHOICE + 1)} ? {arms[0].at(CHOICE + 1)} : {arms[1].at(CHOICE)}", CHOICE)

    def _cast(self, to: str, arg: Expr) -> Code:
        of, lanes = arg.dtype, self.lanes(arg)
        kinds = DTYPES[of].kind, DTYPES[to].kind
        if of == to:
            return self.value(arg)
        if lanes > 1:
            return self._cast_vector(to, arg, lanes)
        value = self.value(arg)
        if kinds[0] == "complex":
            if kinds[1] == "complex":
                part = self.helpers.types[PART[to]]
                return Code(f"({self.helpers.type(to)}){{({part}){value.at(PRIMARY)}.re, ({part}){value.at(PRIMARY)}.im}}")
            if to == "bool":
                return Code(f"{value.at(PRIMARY)}.re != 0 || {value.at(PRIMARY)}.im != 0", OR)
            real = Code(f"{value.at(PRIMARY)}.re")
            return real if to == PART[of] else call(self.helpers.saturate(to, PART[of]), real) if kinds[1] in ("int", "uint") else \
                prefix(f"({self.helpers.types[to]})", real)
        if kinds[1] == "complex":
            part = self.helpers.types[PART[to]]
            return Code(f"({self.helpers.type(to)}){{{value.text if of == PART[to] else f'({part}){value.at(UNARY)}'}, 0}}")
        if to == "bool":
            return infix("!=", EQUALITY, value, Code("0"))
        if kinds[0] == "float" and kinds[1] in ("int", "uint"):
            return call(self.helpers.saturate(to, of), value)
        return prefix(f"({self.helpers.types[to]})", value)

    def _cast_vector(self, to: str, arg: Expr, lanes: int) -> Code:
        of, h = arg.dtype, self.helpers
        kinds = DTYPES[of].kind, DTYPES[to].kind
        if "complex" in kinds:
            raise error("E613", "complex numbers have no vector form", hint="do not vectorize this loop")
        if of == "bool":                                        # a mask is -1 or 0
            bits = DTYPES[to].bits
            ones = Code(f"-{self.mask(arg, bits).at(UNARY)}", UNARY)
            return ones if to == f"i{bits}" else Code(f"__builtin_convertvector({ones.text}, {h.type(to, lanes)})")
        if kinds[0] == "float" and kinds[1] in ("int", "uint"):
            return call(h.lanewise(h.saturate(to, of), f"ct_{to}_of_{of}x{lanes}", of, to, lanes, 1), self.value(arg))
        return Code(f"__builtin_convertvector({self.text(arg)}, {h.type(to, lanes)})")

    # -- conditions on vectors --------------------------------------------------------------------------------------------------------------

    def mask(self, expr: Expr, bits: int) -> Code:
        """A bool vector as integers of `bits` bits: -1 where it holds, 0 elsewhere."""
        lanes, h = self.lanes(expr), self.helpers
        counted = self._counted(expr, bits, lanes)
        if counted is not None:
            return counted
        match expr:
            case Op(fn=fn, args=args) if fn in (*COMPARISONS, "isnan", "isinf") and args[0].dtype != "bool":
                own = DTYPES[args[0].dtype].bits
                sides = self._operands(fn, args, lanes)
                if fn == "isnan":
                    done = infix("!=", EQUALITY, sides[0], sides[0])
                elif fn == "isinf":
                    h.headers.add("math.h")
                    done = infix("==", EQUALITY, call(h.vector_operator("abs", args[0].dtype, lanes, 1), sides[0]),
                                 self._splat(Const(float("inf"), args[0].dtype), lanes))
                else:
                    spelling = h.ops[fn]
                    assert isinstance(spelling, Infix)
                    done = infix(spelling.symbol, spelling.level, *sides)
                return self._resized(done, own, bits, lanes)
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
                return infix(symbol, RELATION, left, right)
            case Cast(arg=arg) if arg.dtype != "bool":
                return self._resized(infix("!=", EQUALITY, self.value(arg), self._splat(number(0, arg.dtype), lanes)),
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
                return self._resized(infix("!=", EQUALITY, self._load(expr), Code(f"(ct_u8x{lanes}){{0}}")), 8, bits, lanes)
        raise TypeError(f"no mask for {expr!r}")

    def _counted(self, expr: Expr, bits: int, lanes: int) -> Code | None:
        """Which lanes of a range of indices lie below a bound: their number, compared with the numbers of the lanes. One comparison in the
        width of the data, where two of 64 bits and a conversion would be."""
        match expr:
            case Op(fn=compare, args=(Ramp(base=base, step=Const(value=1)), Splat(arg=end))):
                fn = compare
            case Op(fn=compare, args=(Splat(arg=end), Ramp(base=base, step=Const(value=1)))):
                fn = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(compare, "")
            case _:
                return None
        if fn not in ("lt", "le", "gt", "ge") or not self._is_index(base) or not self._is_index(end) or lanes >= 1 << (bits - 1):
            return None
        limit = self.value(end + 1 if fn in ("le", "gt") else end)
        below = call(self.helpers.below(bits, lanes), self.value(base), limit)
        return below if fn in ("lt", "le") else prefix("~", below)

    def _is_index(self, expr: Expr) -> bool:
        """Is it made of loop variables and sizes alone, and so far from the ends of 64 bits?"""
        return expr.dtype == "i64" and all(n.name in self.indices if isinstance(n, Var) else isinstance(n, Const | Op) for n in expr.unique())

    def condition(self, expr: Expr, bits: int, lanes: int) -> Code:
        """A condition, scalar or vector, as a mask."""
        if self.lanes(expr) > 1:
            return self.mask(expr, bits)
        self.helpers.mask_type(bits, lanes)
        signed = self.helpers.types[f"i{bits}"]
        return call(self.helpers.splat(f"i{bits}", lanes), Code(f"({signed})-{self.value(expr).at(UNARY)}", UNARY))

    def _resized(self, mask: Code, own: int, bits: int, lanes: int) -> Code:
        kind = self.helpers.mask_type(bits, lanes)
        return mask if own == bits else Code(f"__builtin_convertvector({mask.text}, {kind})")

    def truth(self, expr: Expr) -> Code:
        """A bool vector as it is stored: bytes 1 and 0."""
        return prefix(f"({self.helpers.type('bool', self.lanes(expr))})", prefix("-", self.mask(expr, 8)))

    # -- memory -----------------------------------------------------------------------------------------------------------------------------

    def register(self, ref: Ref) -> Code | None:
        """The named variable (or a lane of it) that holds the place, if there is one."""
        assert isinstance(ref, (Aref, Vref))
        view = self.views[ref.buffer]
        if not view.width:
            return None
        name, lane = registers.variable(ref.buffer, ref.index, view.width)
        return Code(f"{self.mention(name)}[{lane}]" if view.width > 1 and isinstance(ref, Aref) else self.mention(name))

    def pointer(self, ref: Ref) -> Code:
        """The address of the place (of its first lane)."""
        assert isinstance(ref, (Aref, Vref))
        view = self.views[ref.buffer]
        at = offset(ref.index, view.shape, view.order, view.strides)
        base = Code(self.mention(ref.buffer))
        return base if isinstance(at, Const) and at.value == 0 else Code(f"{base.text} + {self.value(at).at(ADD)}", ADD)

    def place(self, ref: Aref) -> Code:
        """The place as something to assign to."""
        view = self.views[ref.buffer]
        return self.register(ref) or Code(f"{self.mention(ref.buffer)}[{self.text(offset(ref.index, view.shape, view.order, view.strides))}]")

    def stride(self, ref: Vref) -> Code:
        """The distance between lanes in elements."""
        view = self.views[ref.buffer]
        return self.value(distance(ref.axis % len(view.shape), view.shape, view.order, view.strides))

    def _element(self, ref: Aref) -> Code:
        place = self.place(ref)
        return infix("!=", EQUALITY, place, Code("0")) if ref.dtype == "bool" and self.views[ref.buffer].outside else place

    def _load(self, ref: Vref) -> Code:
        named = self.register(ref)
        if named is not None:
            return named
        if DTYPES[ref.dtype].kind == "complex":
            raise error("E613", "complex numbers have no vector form", hint="do not vectorize this loop")
        return self.access("load", ref)

    def access(self, action: str, ref: Vref, value: Code | None = None) -> Code:
        """A vector in memory read (`load`) or written (`store` with a value): as a whole, or lane by lane where it is strided or masked."""
        bits = DTYPES[ref.dtype].bits
        stride = self.stride(ref)
        tail = () if value is None else (value,)
        if ref.mask is not None:
            mask = self.condition(ref.mask, bits, ref.count)
            if stride.text == "1":
                return call(self.helpers.memory(action + "_if", ref.dtype, ref.count), self.pointer(ref), mask, *tail)
            return call(self.helpers.memory(STRIDED[action] + "_if", ref.dtype, ref.count), self.pointer(ref), stride, mask, *tail)
        if stride.text == "1":
            return call(self.helpers.memory(action, ref.dtype, ref.count), self.pointer(ref), *tail)
        return call(self.helpers.memory(STRIDED[action], ref.dtype, ref.count), self.pointer(ref), stride, *tail)
