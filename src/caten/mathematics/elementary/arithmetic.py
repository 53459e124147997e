"""What elementary functions are written with: the layout of a float type, fused multiply-add where the machine has it,
bits as exponents.

Everything is arithmetic, choice by lane and shifts of unsigned integers, so any SIMD unit runs it, without one 64-bit
multiplication, signed shift or conversion between integers and floats.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...core.expr import Bitcast, Expr, Op, number
from ...frozen import frozen

# the integers of its width, bits of the mantissa, bias of the exponent
LAYOUT = {"f32": ("u32", 23, 127), "f64": ("u64", 52, 1023)}


class Scaled(Expr):
    """value · 2^n, rounded once, for a machine that has an instruction for it where C has none for vectors. n is a
    whole number as a float, and `biased` holds n + 2 · bias in its low bits."""

    value: Expr
    n: Expr
    biased: Expr

    @property
    def dtype(self) -> str:
        return self.value.dtype

    @property
    def lanes(self) -> int:
        return self.value.lanes

    def to_form(self) -> tuple[object, ...]:
        return "scaled", self.value, self.n, self.biased


@frozen
class Arithmetic:
    """Arithmetic in one float type. `fused`: has the machine a fused multiply-add? `fast`: fewer operations before the
    last digit. `short`: float64 for a result that is rounded to float32, so that 2^-30 is exact enough and nothing of
    float32's range overflows or is denormal. `scales`: may the machine have an instruction for value · 2^n?"""

    dtype: str
    fused: bool = True
    fast: bool = False
    short: bool = False
    scales: bool = False

    @property
    def integer(self) -> str:
        return LAYOUT[self.dtype][0]

    @property
    def mantissa(self) -> int:
        """Bits after the binary point."""
        return LAYOUT[self.dtype][1]

    @property
    def bias(self) -> int:
        """What is added to an exponent to store it."""
        return LAYOUT[self.dtype][2]

    @property
    def rounder(self) -> float:
        """1.5 · 2^m: what is added to it is rounded to a whole number, which then stands in the low bits."""
        return 1.5 * 2.0**self.mantissa

    def at(self, value: float) -> Expr:
        """A constant."""
        return number(value, self.dtype)

    def mad(self, a: Expr, b: Expr, c: Expr) -> Expr:
        """a · b + c, rounded once where the machine can."""
        return Op("fma", (a, b, c)) if self.fused else a * b + c

    def horner(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """c₀ + c₁ x + c₂ x² + …"""
        total = self.at(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.mad(total, x, self.at(c))
        return total

    def minus(self, x: Expr) -> Expr:
        """-x"""
        return x * -1.0

    # -- choice --------------------------------------------------------------------------------------------------------

    def where(self, cond: Expr, yes: Expr | float, no: Expr | float) -> Expr:
        """yes if cond else no, lane by lane."""
        arms = [arm if isinstance(arm, Expr) else self.at(arm) for arm in (yes, no)]
        return Op("where", (cond, *arms))

    def clamp(self, x: Expr, low: float | None, high: float | None) -> Expr:
        """x brought into [low, high]; NaN stays."""
        if high is not None:
            x = self.where(x > high, high, x)
        return x if low is None else self.where(x < low, low, x)

    # -- bits ----------------------------------------------------------------------------------------------------------

    def word(self, value: int) -> Expr:
        """An unsigned integer of the type's width."""
        return number(value, self.integer)

    def bits(self, x: Expr) -> Expr:
        return Bitcast(self.integer, x)

    def real(self, bits: Expr) -> Expr:
        return Bitcast(self.dtype, bits)

    def magnitude(self, x: Expr) -> Expr:
        """|x|"""
        return self.real(Op("and", (self.bits(x), self.word((1 << (self.mantissa + self.exponent_bits)) - 1))))

    @property
    def exponent_bits(self) -> int:
        return (self.bias + 1).bit_length()

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.mantissa + self.exponent_bits)

    def sign_of(self, x: Expr) -> Expr:
        """The sign bit of x, and nothing else."""
        return Op("and", (self.bits(x), self.word(self.sign)))

    def with_sign(self, magnitude: Expr, x: Expr) -> Expr:
        """A value that is not negative, with the sign of x."""
        return self.real(Op("or", (self.bits(magnitude), self.sign_of(x))))

    def shl(self, bits: Expr, by: int) -> Expr:
        return Op("shl", (bits, self.word(by)))

    def shr(self, bits: Expr, by: int) -> Expr:
        return Op("shr", (bits, self.word(by)))

    def power_of_two(self, biased: Expr) -> Expr:
        """2^(biased - bias) from the low bits of an integer; 0 is 0, and the greatest is infinity."""
        return self.real(self.shl(biased, self.mantissa))

    def scaled(self, value: Expr, n: Expr, shifted: Expr) -> Expr:
        """value · 2^n in two factors, so that a result below the normal range is rounded once; `shifted` holds n + 2 ·
        bias in its low bits."""
        both = self.bits(shifted)
        if self.scales:
            return Scaled(value, n, both)
        half = self.shr(both, 1)
        return value * self.power_of_two(half) * self.power_of_two(both - half)

    @property
    def least(self) -> int:
        """What is added to n so that 1 stands for the greatest n for which v · 2^n rounds to 0, whatever v is below
        2."""
        return self.bias + self.mantissa + 2

    def scaled_or_0(self, value: Expr, shifted: Expr) -> Expr:
        """value · 2^n, rounded once, for a value in [1/2, 2) and any n from -least up; `shifted` holds n + least in its
        low bits. Where it rounds to 0 by n alone, a factor is 0: many processors take over a hundred cycles for an
        operation that underflows, and a masked softmax takes e^-inf for every second element."""
        both = self.bits(shifted)
        half = self.shr(both, 1)                                # its power is 0 for 0 and 1, and the least normal for 2
        other = Op("add", (both - half, self.word(2 * self.bias - self.least)))
        return value * self.power_of_two(other) * self.power_of_two(half)

    def whole(self, bits: Expr, bias: Expr) -> Expr:
        """A small unsigned integer as a float, less `bias` (2^m and what else is to be taken off)."""
        start = (self.mantissa + self.bias) << self.mantissa                   # the bits of 2^m
        return self.real(Op("add", (bits, self.word(start)))) - bias

    def two_product(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """x · y and its rounding error; needs the fused multiply-add."""
        product = x * y
        return product, self.mad(x, y, self.minus(product))

    def wide(self) -> Arithmetic:
        """Float64 for a result in float32, on the same machine."""
        return Arithmetic("f64", self.fused, self.fast, short=True)
