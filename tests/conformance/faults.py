"""Faults that a runtime may have: each changes the programs or the text that it renders, and names the cells of the report that it must turn red.

Most change the nest as written (`-O0`), where one operator is one node; those that are about vectors and threads change what is scheduled (`-O2`).
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from caten.core.expr import Bitcast, Cast, Const, Expr, Op, Var, index, number
from caten.core.node import Node
from caten.core.program import Buffer, Ensure
from caten.loop.statements import Aref, Fail, For, If, Incf, Let, Setf, Vref

Rule = Callable[[Any], Any]                  # a node -> the wrong one, the same, or None: a statement that is left out


@dataclass(frozen=True)
class Fault:
    """`red`: patterns of --filter, each of which must select a case that is not PASS; `may`: others in which there may be some; elsewhere there are none. `program`: applied to every node, leaves
    first. `text`: applied to what is rendered. `flags`: further ones
    of the C compiler; `threads`: only where threads are on; `opt`: the level of optimisation."""

    red: tuple[str, ...]
    program: Rule | None = None
    text: Callable[[str], str] | None = None
    flags: tuple[str, ...] = ()
    threads: bool = False
    may: tuple[str, ...] = ()
    opt: int = 0


def applied(rule: Rule, node: Any) -> Any:
    """A program with the rule applied everywhere; equal nodes are one, and each is changed once."""
    @cache
    def go(n: Any) -> Any:
        if not isinstance(n, Node):
            return n
        parts = [tuple([k for k in (go(c) for c in p) if k is not None]) if isinstance(p, tuple) else go(p) for p in n.parts]
        return rule(n if all(a is b for a, b in zip(parts, n.parts, strict=True)) or parts == list(n.parts) else type(n)(*parts))
    return go(node)


def op(fn: str, dtype: str, wrong: Callable[..., Expr]) -> Rule:
    """Another expression for one operator on one type."""
    def rule(n: Any) -> Any:
        return wrong(*n.args) if isinstance(n, Op) and n.fn == fn and n.args[-1].dtype == dtype else n
    return rule


def cast(source: str, target: str, wrong: Callable[[Expr], Expr]) -> Rule:
    def rule(n: Any) -> Any:
        return wrong(n.arg) if isinstance(n, Cast) and n.type == target and n.arg.dtype == source else n
    return rule


def loop(chosen: Callable[[For], bool], wrong: Callable[[For], Any]) -> Rule:
    return lambda n: wrong(n) if isinstance(n, For) and chosen(n) else n


def store(chosen: Callable[[Setf], bool], wrong: Callable[[Setf], Any]) -> Rule:
    return lambda n: wrong(n) if isinstance(n, Setf) and chosen(n) else n


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(old, new, text)


def fn(name: str, *args: Expr) -> Op:
    return Op(name, args)


def is_zero(value: Expr) -> bool:
    return isinstance(value, Const) and value.value == 0


def stores(n: For, dtype: str) -> bool:
    """Does the body of an innermost loop store elements of this type?"""
    return any(isinstance(s, Setf) and s.ref.dtype == dtype for s in n.body)


def reads_index(n: For) -> bool:
    return any(isinstance(s, Let) and isinstance(s.value, Aref) and s.value.buffer == "k" for s in n.body)


def fails(n: Any) -> bool:
    return isinstance(n, If) and any(isinstance(s, Fail) for s in n.then)


def other_row(n: Any) -> Any:
    return Fail(n.row - 1) if isinstance(n, Fail) else n


def in_half(x: Expr) -> Expr:
    """A float32 with the 13 low bits of its fraction cut off."""
    return Bitcast("f32", fn("and", Bitcast("i32", x), number(-(1 << 13), "i32")))


FAULTS: dict[str, Fault] = {
    # operators
    "comparison flipped": Fault(("operator/lt/f32", "feature/branches/f32", "feature/constants/f32"), op("lt", "f32", lambda x, y: fn("lt", y, x))),
    "division rounds to zero": Fault(("operator/floordiv/i32",), op("floordiv", "i32", lambda x, y: fn("truncdiv", x, y)), may=("feature/wraps-before-divided/i32",)),
    "floor cuts off": Fault(("operator/floor/f32",), op("floor", "f32", lambda x: fn("trunc", x))),
    "halves rounded up": Fault(("operator/round/f32/halves",), op("round", "f32", lambda x: fn("where", fn("eq", fn("floor", x), x), x, fn("floor", fn("add", x, number(0.5, "f32"))))), may=("operator/round/f32",)),
    "NaN lost in a maximum": Fault(("operator/max/f32/nan", "feature/nan-in-a-maximum/f32"), lambda n: n.replace(fn="fmax") if isinstance(n, Incf) and n.fn == "max" and n.ref.dtype == "f32" else op("max", "f32", lambda x, y: fn("fmax", x, y))(n)),
    "maximum and minimum swapped": Fault(("operator/max/i32",), op("max", "i32", lambda x, y: fn("min", x, y)), may=("feature/*/i32/*",)),
    "negative zero lost": Fault(("operator/neg/f32/negative-zero", "operator/neg/f32/halves", "operator/neg/f32/infinities"), op("neg", "f32", lambda x: fn("sub", number(0.0, "f32"), x)), may=("feature/constants/f32",)),
    "unsigned division as signed": Fault(("operator/floordiv/u32",), op("floordiv", "u32", lambda x, y: Cast("u32", fn("floordiv", Cast("i32", x), Cast("i32", y)))), may=("feature/wraps-before-divided/u32",)),
    "shift count wraps": Fault(("operator/shl/i32",), op("shl", "i32", lambda x, y: fn("shl", x, fn("and", y, number(31, "i32"))))),
    "shift loses the sign": Fault(("operator/shr/i32", "feature/wraps-before-shifted/i32"), op("shr", "i32", lambda x, y: Cast("i32", fn("shr", Cast("u32", x), Cast("u32", y))))),
    "NaN equals NaN": Fault(("operator/eq/f32/nan",), op("eq", "f32", lambda x, y: fn("not", fn("or", fn("lt", x, y), fn("lt", y, x))))),
    "arms swapped": Fault(("operator/where/f32", "feature/constants/f32", "feature/guarded-access/f32"), op("where", "f32", lambda c, x, y: fn("where", c, y, x))),
    "sums in half precision": Fault(("operator/add/f32",), op("add", "f32", lambda x, y: in_half(fn("add", x, y)))),
    "division by the reciprocal": Fault(("operator/div/f32",), op("div", "f32", lambda x, y: fn("mul", x, fn("div", number(1.0, "f32"), y)))),
    "exponential off by a thousandth": Fault(("operator/exp/f32",), op("exp", "f32", lambda x: fn("mul", fn("exp", x), number(1.001, "f32")))),
    "imaginary part wrong": Fault(("operator/mul/c64", "operator/mul/c128", "feature/broadcast/c64"), text=replaced(r"a\.re \* b\.im \+ a\.im", "a.re * b.im - a.im"), may=("feature/*/c64/*", "feature/*/c128/*",)),
    "division by zero traps": Fault(("operator/floordiv/i32",), text=replaced(r"(ct_floordiv_i32\([^{]*\{\s*return )b == 0 \? 0 : ", r"\1")),
    "fast math": Fault(("operator/isnan", "operator/isinf", "*/nan", "*/infinities"), flags=("-ffast-math",), may=("operator/*/f*", "operator/*/bf*", "operator/*/c*", "conversion/*", "bitcast/*", "feature/*/f*", "feature/*/bf*", "feature/*/c*",)),
    # conversions and storage
    "conversion rounds": Fault(("conversion/f32/i32",), cast("f32", "i32", lambda x: Cast("i32", fn("round", x)))),
    "conversion wraps": Fault(("conversion/f32/i32/saturating", "conversion/f32/i32/overflow", "conversion/f32/i32/infinities"), cast("f32", "i32", lambda x: Cast("i32", Cast("i64", x)))),
    "sign extension lost": Fault(("conversion/i8/i64", "feature/widening-sum/i8"), cast("i8", "i64", lambda x: Cast("i64", Cast("u8", x)))),
    "int8 promoted": Fault(("feature/wraps-before-compared/i8",), op("lt", "i8", lambda x, y: fn("lt", *[fn(e.fn, *[Cast("i32", a) for a in e.args]) if isinstance(e, Op) else Cast("i32", e) for e in (x, y)]))),
    "bits converted": Fault(("bitcast/f32/i32",), lambda n: Cast("i32", n.arg) if isinstance(n, Bitcast) and (n.arg.dtype, n.type) == ("f32", "i32") else n),
    "true stored as 2": Fault(("operator/lt/f64",), store(lambda n: isinstance(n.value, Op) and n.value.fn == "lt" and n.value.args[0].dtype == "f64", lambda n: Setf(Aref(n.ref.buffer, n.ref.index, "u8"), fn("add", Cast("u8", n.value), Cast("u8", n.value))))),
    "denormals flushed": Fault(("operator/*/f32/denormals",), store(lambda n: n.ref.dtype == "f32", lambda n: n.replace(value=fn("where", fn("lt", fn("abs", n.value), number(2.0**-126, "f32")), fn("mul", n.value, number(0.0, "f32")), n.value)) if not isinstance(n.value, Const) else n), may=("bitcast/*/f32/*", "operator/*/f32/*", "conversion/*/f32/*",)),
    "second output forgotten": Fault(("feature/several-outputs", "feature/constants", "feature/bool-of-any-byte", "feature/bool-logic-of-any-byte"), store(lambda n: n.ref.buffer == "S", lambda n: None)),
    "scalar argument cut off": Fault(("feature/scalar-by-value/f32", "feature/rank-0/f32"), lambda n: Cast("f32", Cast("i32", n)) if isinstance(n, Var) and n.name == "a" and n.dtype == "f32" else n),
    # loops and reductions
    "bound one short": Fault(("feature/symbolic-bounds",), loop(lambda n: isinstance(n.lo, Var), lambda n: n.replace(hi=n.hi - 1))),
    "one element too many": Fault(("feature/tail-of-a-copy/u16", "operator/add/u16"), loop(lambda n: stores(n, "u16"), lambda n: n.replace(hi=n.hi + 1)), may=("*/u16/*",)),
    "loop without iterations runs once": Fault(("feature/zero-trip",), loop(lambda n: n.lo is index(5), lambda n: n.replace(hi=fn("max", n.hi, index(6))))),
    "counting down stops early": Fault(("feature/negative-step",), loop(lambda n: n.step is index(-2), lambda n: n.replace(hi=n.hi + 2))),
    "sum not set to zero": Fault(("feature/symbolic-bounds/f32", "feature/sums-of-columns/f32", "feature/nested-reductions/f32", "feature/sum-of-nothing/f32"), store(lambda n: n.ref.dtype == "f32" and bool(n.ref.index) and is_zero(n.value), lambda n: None), may=("feature/*/f32/*",)),
    "sum begins with one": Fault(("feature/tail-of-a-sum/i32", "feature/sum-of-maxima/i32", "feature/several-outputs/i32"), store(lambda n: n.ref.dtype == "i32" and not n.ref.index and is_zero(n.value), lambda n: n.replace(value=number(1, "i32"))), may=("feature/*/i32/*",)),
    # layouts and accesses
    "wrong stride": Fault(("feature/strided", "feature/strided-3d"), text=replaced(r"\* X_stride0", "* (X_stride0 - 1)"), may=("feature/offsets-over-2^31",)),
    "indices of 32 bits": Fault(("feature/offsets-over-2^31/u8",), text=replaced(r"\bi \* X_stride0", "(int32_t)i * (int32_t)X_stride0"), may=("feature/offsets-over-2^31",)),
    "permutation forgotten": Fault(("feature/permuted", "feature/permuted-3d"), lambda n: n.replace(order=tuple(range(len(n.shape)))) if isinstance(n, Buffer) else n),
    "last row of a scatter dropped": Fault(("feature/gather", "feature/scatter", "feature/scatter-of-sums", "feature/index-too-large", "feature/index-negative", "feature/index-of-a-store"), loop(reads_index, lambda n: n.replace(hi=n.hi - 1)), may=("feature/threads-check", "feature/gather-by-type",)),
    "index wraps around": Fault(("feature/index-too-large", "feature/index-negative", "feature/index-of-a-store"), lambda n: n.replace(value=fn("mod", n.value, Var("N", "i64"))) if isinstance(n, Let) and isinstance(n.value, Aref) and n.value.buffer == "k" else n, may=("feature/threads-check", "feature/second-check-fails",)),
    # checks
    "checks never fail": Fault(("feature/index-too-large", "feature/index-negative", "feature/index-of-a-store", "feature/second-check-fails"), lambda n: None if fails(n) else n, may=("feature/threads-check",)),
    "another check named": Fault(("feature/index-too-large", "feature/index-negative", "feature/index-of-a-store", "feature/second-check-fails"), other_row, may=("feature/threads-check",)),
    "conditions ignored": Fault(("feature/condition-fails",), lambda n: None if isinstance(n, Ensure) and any(isinstance(e, Op) and e.fn == "eq" for e in n.unique()) else n),
    # vectors and threads
    "rest of a vector dropped": Fault(("feature/tail-of-a-copy/f64", "feature/tail-of-a-map/f64", "operator/add/f64"), lambda n: None if isinstance(n, Setf) and isinstance(n.ref, Vref) and n.ref.mask is not None and n.ref.dtype == "f64" else n, opt=2, may=("*/f64/*",)),
    # C compilers may make a call of memcpy of the copy
    "loads expected to be aligned": Fault(("feature/misaligned/f32",), text=replaced(r"(ct_f32x\d+_at __attribute__\(\(vector_size\((\d+)\), aligned)\(4\)", r"\1(\2)"), opt=2, may=("feature/misaligned-copy/f32", "feature/*/f32/*")),
    "last share of the threads dropped": Fault(("feature/threads-map", "feature/threads-rows"), loop(lambda n: n.mark == "parallel", lambda n: n.replace(hi=n.hi - 1)), threads=True, opt=2, may=("feature/threads-*",)),
    # processes
    "crash": Fault(("feature/rank-0/i64",), text=replaced(r"(ct_k_rank_0_i64_k\w*\([^{]*\{)", r"\1 __builtin_trap();")),
    "hang": Fault(("feature/rank-0/u64",), text=replaced(r"(ct_k_rank_0_u64_k\w*\([^{]*\{)", r"\1 for (volatile int x = 0;; x++) {}")),
    "C that does not compile": Fault(("feature/rank-0/u8",), text=replaced(r"\bct_k_rank_0_u8\(", "int (")),
}
