"""The table of operators: name, operand types, result type, meaning and largest error of each.

A runtime must support the 27 principal operators: 21 rows of this table, the conversions `cast` and `bitcast` (separate
node classes), and the structural operators `load`, `store`, `loop` and `if`. All other operators are derived: they are
decomposed into principal ones (mathematics.decompose) unless a runtime's table supports them. The interpreter, the
error bounds, the documentation and the tests use this table. An error of 0.5 ulp (unit in the last place) means correct
rounding, 0 means exact."""
from __future__ import annotations

from typing import TypedDict

from ..frozen import frozen
from .dtypes import DTYPES, is_packed, part, whole

NUMBER, FLOAT, INTEGER, BITS, ANY = "number", "float", "integer", "bits", "any"
_KINDS = {NUMBER: ("int", "uint", "float", "complex"), FLOAT: ("float", "complex"), INTEGER: ("int", "uint"),
          BITS: ("int", "uint", "bool"), ANY: ("int", "uint", "float", "bool", "complex")}


@frozen
class Operator:
    """One row.

    `takes`: the element types of its operands. `gives`: its result type, `same` (as the operands), `bool`, `part` (the
    real type of a complex type) or `whole` (the complex type of a real one). `meaning`: a formula, or words. `numpy`:
    the equal numpy function on floats.
    `libm`: the name in the C library without the suffix `f`. `derivative`: for each operand the partial derivative, an
    S-expression over x y z; empty if there is none. `ulp`: the largest error (0.5: correctly rounded, 0: exact)."""

    name: str
    spelling: str
    arity: int
    takes: str = NUMBER
    gives: str = "same"
    meaning: str = ""
    numpy: str = ""
    libm: str = ""
    derivative: tuple[str, ...] = ()
    ulp: float = 0.5
    principal: bool = False
    commutative: bool = False
    associative: bool = False
    ordered: bool = True              # False: also defined on complex numbers

    def accepts(self, kind: str) -> bool:
        """Is it defined on elements of this kind (`float int uint bool complex`)?"""
        return kind in _KINDS[self.takes] and not (kind == "complex" and self.ordered)

    def defined_on(self, dtype: str) -> bool:
        """Is it defined on elements of this type? Integers of 4 bits are only chosen (`where`)."""
        return self.accepts(DTYPES[dtype].kind) and (self.name == "where" or not is_packed(dtype)) and (
            self.gives != "whole" or whole(dtype) != "")

    def takes_type(self, dtype: str) -> bool:
        """Is it computed in elements of this type? A storage type is only chosen, and converted for all else."""
        return self.accepts(DTYPES[dtype].kind) and (self.name == "where" or not DTYPES[dtype].storage) and (
            self.gives != "whole" or whole(dtype) != "")

    def result_type(self, operands: tuple[str, ...]) -> str:
        """The element type of the result from those of the operands."""
        if self.gives == "bool":
            return "bool"
        if self.gives == "part":
            return part(operands[0])
        if self.gives == "whole":
            return whole(operands[0])
        return operands[1] if self.name == "where" else operands[0]


class _Principal(TypedDict):
    principal: bool


class _Reorders(TypedDict):
    commutative: bool
    associative: bool


_row = Operator                             # short, for the table
_P: _Principal = {"principal": True}
_CA: _Reorders = {"commutative": True, "associative": True}

OPERATORS: dict[str, Operator] = {row.name: row for row in (
    # arithmetic
    _row("add", "+", 2, meaning="x + y; integers wrap", numpy="add", derivative=("1", "1"), ordered=False, **_P, **_CA),
    _row("sub", "-", 2, meaning="x - y; integers wrap", numpy="subtract", derivative=("1", "-1"), ordered=False, **_P),
    _row("mul", "*", 2, meaning="x * y; integers wrap", numpy="multiply", derivative=("y", "x"), ordered=False, **_P,
         **_CA),
    _row("div", "/", 2, FLOAT, meaning="x / y", numpy="divide", derivative=("(/ 1 y)", "(- 0 (/ (/ x y) y))"),
         ordered=False, **_P),
    _row("floordiv", "floordiv", 2, meaning="floor(x / y); an integer divided by 0 is 0", numpy="floor_divide", ulp=1,
         **_P),
    _row("mod", "mod", 2, meaning="x - y * floordiv(x, y), with the sign of y; an integer modulo 0 is 0",
         numpy="remainder",
         derivative=("1", "(- 0 (floordiv x y))"), ulp=1, **_P),
    _row("max", "max", 2, meaning="the greater; NaN if either is NaN; of 0 and -0 either", numpy="maximum",
         derivative=("(where (< x y) 0 1)", "(where (< x y) 1 0)"), ulp=0, **_P, **_CA),
    _row("min", "min", 2, meaning="the smaller; NaN if either is NaN; of 0 and -0 either", numpy="minimum",
         derivative=("(where (< y x) 0 1)", "(where (< y x) 1 0)"), ulp=0, **_P, **_CA),
    _row("fma", "fma", 3, meaning="x * y + z, rounded once; integers wrap", libm="fma", derivative=("y", "x", "1"),
         **_P),
    # bits
    _row("and", "and", 2, BITS, meaning="logical on bool, bitwise on integers", numpy="bitwise_and", ulp=0, **_P,
         **_CA),
    _row("or", "or", 2, BITS, meaning="logical on bool, bitwise on integers", numpy="bitwise_or", ulp=0, **_P, **_CA),
    _row("xor", "xor", 2, BITS, meaning="logical on bool, bitwise on integers", numpy="bitwise_xor", ulp=0, **_P,
         **_CA),
    _row("shl", "shl", 2, INTEGER, meaning="x * 2^y, wrapping; 0 when y is the width or more, or negative", ulp=0,
         **_P),
    _row("shr", "shr", 2, INTEGER, meaning="floor(x / 2^y); 0 or the sign when y is the width or more, or negative",
         ulp=0, **_P),
    # comparison, choice
    _row("lt", "<", 2, ANY, "bool", meaning="x < y; false if either is NaN", numpy="less", ulp=0, **_P),
    _row("eq", "=", 2, ANY, "bool", meaning="x = y; false if either is NaN", numpy="equal", ulp=0, commutative=True,
         ordered=False, **_P),
    _row("where", "where", 3, ANY, meaning="y if x else z; the other arm is not evaluated", numpy="where",
         derivative=("0", "(where x 1 0)", "(where x 0 1)"), ulp=0, ordered=False, **_P),
    # functions
    _row("sqrt", "sqrt", 1, FLOAT, meaning="square root; NaN below 0", numpy="sqrt", libm="sqrt",
         derivative=("(/ 0.5 (sqrt x))",), **_P),
    _row("exp", "exp", 1, FLOAT, meaning="e^x", numpy="exp", libm="exp", derivative=("(exp x)",), ulp=1, **_P),
    _row("log", "log", 1, FLOAT, meaning="natural logarithm; -inf at 0, NaN below", numpy="log", libm="log",
         derivative=("(/ 1 x)",), ulp=1, **_P),
    _row("sin", "sin", 1, FLOAT, meaning="sine of x radians", numpy="sin", libm="sin", derivative=("(cos x)",), ulp=1,
         **_P),
    # decomposed: sign, order, logic
    _row("neg", "neg", 1, meaning="-x; integers wrap", numpy="negative", derivative=("-1",), ulp=0, ordered=False),
    _row("abs", "abs", 1, gives="part",
         meaning="|x|; the least integer wraps to itself; the modulus of a complex number", numpy="absolute",
         libm="fabs", derivative=("(sign x)",), ulp=0, ordered=False),
    _row("sign", "sign", 1, meaning="-1, 0 or 1; NaN for NaN", numpy="sign", derivative=("0",), ulp=0),
    _row("gt", ">", 2, ANY, "bool", meaning="x > y; false if either is NaN", numpy="greater", ulp=0),
    _row("le", "<=", 2, ANY, "bool", meaning="x <= y; false if either is NaN", numpy="less_equal", ulp=0),
    _row("ge", ">=", 2, ANY, "bool", meaning="x >= y; false if either is NaN", numpy="greater_equal", ulp=0),
    _row("ne", "/=", 2, ANY, "bool", meaning="not x = y; true if either is NaN", numpy="not_equal", ulp=0,
         commutative=True, ordered=False),
    _row("not", "not", 1, BITS, meaning="logical on bool, bitwise on integers", numpy="invert", ulp=0),
    _row("truncdiv", "truncdiv", 2, meaning="x / y rounded towards zero, as in C; an integer divided by 0 is 0", ulp=1),
    _row("truncmod", "truncmod", 2,
         meaning="x - y * truncdiv(x, y), with the sign of x, as in C; an integer modulo 0 is 0", numpy="fmod",
         libm="fmod",
         derivative=("1", "(- 0 (truncdiv x y))"), ulp=0),
    _row("fmax", "fmax", 2, meaning="the greater; a NaN is ignored; of two zeros either", numpy="fmax", libm="fmax",
         derivative=("(where (< x y) 0 1)", "(where (< x y) 1 0)"), ulp=0, commutative=True),
    _row("fmin", "fmin", 2, meaning="the smaller; a NaN is ignored; of two zeros either", numpy="fmin", libm="fmin",
         derivative=("(where (< y x) 0 1)", "(where (< y x) 1 0)"), ulp=0, commutative=True),
    _row("clip", "clip", 3, meaning="min(max(x, y), z); z when y > z", numpy="clip", ulp=0,
         derivative=("(where (or (< x y) (< z x)) 0 1)", "(where (and (< x y) (not (< z y))) 1 0)",
                     "(where (< z (max x y)) 1 0)")),
    _row("relu", "relu", 1, meaning="max(x, 0); NaN for NaN", derivative=("(where (< 0 x) 1 0)",), ulp=0),
    # decomposed: rounding
    _row("floor", "floor", 1, FLOAT, meaning="the greatest integer not above x", numpy="floor", libm="floor",
         derivative=("0",), ulp=0),
    _row("ceil", "ceil", 1, FLOAT, meaning="the least integer not below x", numpy="ceil", libm="ceil",
         derivative=("0",), ulp=0),
    _row("trunc", "trunc", 1, FLOAT, meaning="x rounded towards zero", numpy="trunc", libm="trunc", derivative=("0",),
         ulp=0),
    _row("round", "round", 1, FLOAT, meaning="the nearest integer, halves to even", numpy="rint", libm="rint",
         derivative=("0",), ulp=0),
    # decomposed: roots, powers, logarithms
    _row("rsqrt", "rsqrt", 1, FLOAT, meaning="1 / sqrt(x)", derivative=("(/ -0.5 (* x (sqrt x)))",), ulp=1.5),
    _row("cbrt", "cbrt", 1, FLOAT, meaning="cube root", numpy="cbrt", libm="cbrt",
         derivative=("(/ 1 (* 3 (* (cbrt x) (cbrt x))))",), ulp=1),
    _row("exp2", "exp2", 1, FLOAT, meaning="2^x", numpy="exp2", libm="exp2",
         derivative=("(* 0.6931471805599453 (exp2 x))",), ulp=1),
    _row("expm1", "expm1", 1, FLOAT, meaning="e^x - 1", numpy="expm1", libm="expm1", derivative=("(exp x)",), ulp=1),
    _row("log2", "log2", 1, FLOAT, meaning="logarithm to base 2", numpy="log2", libm="log2",
         derivative=("(/ 1.4426950408889634 x)",), ulp=1),
    _row("log10", "log10", 1, FLOAT, meaning="logarithm to base 10", numpy="log10", libm="log10",
         derivative=("(/ 0.4342944819032518 x)",), ulp=2),
    _row("log1p", "log1p", 1, FLOAT, meaning="log(1 + x)", numpy="log1p", libm="log1p", derivative=("(/ 1 (+ 1 x))",),
         ulp=1),
    _row("pow", "pow", 2, FLOAT, meaning="x^y", numpy="power", libm="pow",
         derivative=("(* y (pow x (- y 1)))", "(* (log x) (pow x y))"), ulp=1),
    _row("hypot", "hypot", 2, FLOAT, meaning="sqrt(x^2 + y^2) without overflow", numpy="hypot", libm="hypot",
         derivative=("(/ x (hypot x y))", "(/ y (hypot x y))"), ulp=1.1),
    # decomposed: trigonometry
    _row("cos", "cos", 1, FLOAT, meaning="cosine of x radians", numpy="cos", libm="cos", derivative=("(neg (sin x))",),
         ulp=1),
    _row("tan", "tan", 1, FLOAT, meaning="tangent of x radians", numpy="tan", libm="tan",
         derivative=("(+ 1 (* (tan x) (tan x)))",), ulp=1.5),
    _row("asin", "asin", 1, FLOAT, meaning="arc sine", numpy="arcsin", libm="asin",
         derivative=("(/ 1 (sqrt (- 1 (* x x))))",), ulp=1),
    _row("acos", "acos", 1, FLOAT, meaning="arc cosine", numpy="arccos", libm="acos",
         derivative=("(/ -1 (sqrt (- 1 (* x x))))",), ulp=1),
    _row("atan", "atan", 1, FLOAT, meaning="arc tangent", numpy="arctan", libm="atan",
         derivative=("(/ 1 (+ 1 (* x x)))",), ulp=1),
    _row("atan2", "atan2", 2, FLOAT,
         meaning="the angle of the point (y, x): the arc tangent of x / y in the right quadrant", numpy="arctan2",
         libm="atan2",
         derivative=("(/ y (+ (* x x) (* y y)))", "(/ (neg x) (+ (* x x) (* y y)))"), ulp=1),
    _row("sinh", "sinh", 1, FLOAT, meaning="hyperbolic sine", numpy="sinh", libm="sinh", derivative=("(cosh x)",),
         ulp=2.5),
    _row("cosh", "cosh", 1, FLOAT, meaning="hyperbolic cosine", numpy="cosh", libm="cosh", derivative=("(sinh x)",),
         ulp=2),
    _row("tanh", "tanh", 1, FLOAT, meaning="hyperbolic tangent", numpy="tanh", libm="tanh",
         derivative=("(- 1 (* (tanh x) (tanh x)))",), ulp=2.5),
    _row("asinh", "asinh", 1, FLOAT, meaning="inverse hyperbolic sine", numpy="arcsinh", libm="asinh",
         derivative=("(/ 1 (sqrt (+ (* x x) 1)))",), ulp=2.5),
    _row("acosh", "acosh", 1, FLOAT, meaning="inverse hyperbolic cosine", numpy="arccosh", libm="acosh",
         derivative=("(/ 1 (sqrt (- (* x x) 1)))",), ulp=2.5),
    _row("atanh", "atanh", 1, FLOAT, meaning="inverse hyperbolic tangent", numpy="arctanh", libm="atanh",
         derivative=("(/ 1 (- 1 (* x x)))",), ulp=2.5),
    # decomposed: special functions
    _row("erf", "erf", 1, FLOAT, meaning="error function", libm="erf",
         derivative=("(* 1.1283791670955126 (exp (neg (* x x))))",), ulp=1),
    _row("erfc", "erfc", 1, FLOAT, meaning="1 - erf(x)", libm="erfc",
         derivative=("(* -1.1283791670955126 (exp (neg (* x x))))",), ulp=4),
    _row("lgamma", "lgamma", 1, FLOAT, meaning="logarithm of |gamma(x)|", libm="lgamma", ulp=6),
    _row("sigmoid", "sigmoid", 1, FLOAT, meaning="1 / (1 + e^-x)", derivative=("(* (sigmoid x) (- 1 (sigmoid x)))",),
         ulp=3),
    _row("isnan", "isnan", 1, FLOAT, "bool", meaning="is x NaN?", numpy="isnan", ulp=0, ordered=False),
    _row("isinf", "isinf", 1, FLOAT, "bool", meaning="is x plus or minus infinity?", numpy="isinf", ulp=0,
         ordered=False),
    # complex numbers
    _row("complex", "complex", 2, FLOAT, "whole", meaning="the complex number x + iy; float32 and float64 only", ulp=0),
    _row("real", "real", 1, gives="part", meaning="the real part", numpy="real", ulp=0, ordered=False),
    _row("imag", "imag", 1, gives="part", meaning="the imaginary part", numpy="imag", ulp=0, ordered=False),
    _row("conj", "conj", 1, meaning="the complex conjugate", numpy="conjugate", ulp=0, ordered=False),
)}

COMPARISONS: tuple[str, ...] = tuple([row.name for row in OPERATORS.values() if row.gives == "bool" and row.arity == 2])
# The comparison that holds where another fails. With NaN only = and /= are each other's negation.
NEGATED: dict[str, str] = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
# The comparison of the same operands the other way round: x < y is y > x.
EXCHANGED: dict[str, str] = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
BY_SPELLING: dict[str, Operator] = {row.spelling: row for row in OPERATORS.values()}

# The structural operators complete the 27: they are nodes and statements, not rows of arithmetic.
STRUCTURAL: dict[str, str] = {
    "cast": "(cast T x): conversion by value", "bitcast": "(bitcast T x): reinterpret the bits as another type",
    "load": "(aref A i …): load an element of a buffer; an index may be loaded too",
    "store": "(setf ref x), (incf ref x): store or accumulate",
    "loop": "(for i lo hi step mark …)", "if": "(if cond (…) (…))",
}
PRINCIPAL: tuple[str, ...] = (*[row.name for row in OPERATORS.values() if row.principal], *STRUCTURAL)
