"""What operators are in C where its own differ from them: the bodies of helpers, as tables."""
from __future__ import annotations

from .code import AND, EQUALITY, OR, Infix, Prefix, Spelling

# (operator, kinds) -> the body of its scalar helper. T: the type, U: the unsigned type of its width, P: the real type
# of a complex one, W: the complex type of a real one, BITS: its width, F: the `f` of float32 functions. Arguments are
# a, b, c.
BODIES: dict[tuple[str, str], str] = {
    ("floordiv", "int"): "return b == 0 ? 0 : b == -1 ? (T)-a : (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));",
    ("floordiv", "uint"): "return b == 0 ? 0 : (T)(a / b);",
    ("floordiv",
     "float"): "T r = fmodF(a, b), q;\nif (b == 0) return a / b;\nq = (a - r) / b;\n"
               "if (r != 0 && (b < 0) != (r < 0)) q -= 1;\n"
                           "if (q == 0) return copysignF((T)0, a / b);\nr = floorF(q);\n"
                           "return q - r > (T)0.5 ? r + 1 : r;",
    ("mod", "int"): "if (b == 0 || b == -1) return 0;\nT r = (T)(a % b);\n"
                    "return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);",
    ("mod", "uint"): "return b == 0 ? 0 : (T)(a % b);",
    ("mod", "float"): "T r = fmodF(a, b);\nif (b == 0) return r;\nif (r == 0) return copysignF((T)0, b);\n"
                      "return (b < 0) != (r < 0) ? r + b : r;",
    ("truncdiv", "int"): "if (b == 0) return 0;\nreturn (T)(b == -1 ? -a : a / b);",
    ("truncdiv", "uint"): "return b == 0 ? 0 : (T)(a / b);",
    ("truncdiv", "float"): "return truncF(a / b);",
    ("truncmod", "int"): "return b == 0 || b == -1 ? 0 : (T)(a % b);",
    ("truncmod", "uint"): "return b == 0 ? 0 : (T)(a % b);",
    ("truncmod", "float"): "return fmodF(a, b);",
    ("max", "int uint"): "return a > b ? a : b;",
    ("max", "float"): "return a > b || a != a ? a : b;",
    ("min", "int uint"): "return a < b ? a : b;",
    ("min", "float"): "return a < b || a != a ? a : b;",
    ("fmax", "int uint"): "return a > b ? a : b;",
    ("fmax", "float"): "return fmaxF(a, b);",
    ("fmin", "int uint"): "return a < b ? a : b;",
    ("fmin", "float"): "return fminF(a, b);",
    ("fma", "int uint"): "return (T)(a * b + c);",
    ("fma", "float"): "return fmaF(a, b, c);",
    ("shl", "int uint"): "return (uint64_t)b >= BITS ? 0 : (T)((U)a << b);",
    ("shr", "uint"): "return (uint64_t)b >= BITS ? 0 : (T)(a >> b);",
    ("shr", "int"): "return (T)((uint64_t)b >= BITS ? -(a < 0) : a >> b);",
    ("abs", "int"): "return (T)(a < 0 ? -a : a);",
    ("abs", "uint"): "return a;",
    ("abs", "float"): "return fabsF(a);",
    ("abs", "complex"): "return hypotF(a.re, a.im);",
    ("isnan", "float"): "return a != a;",
    ("isnan", "complex"): "return a.re != a.re || a.im != a.im;",
    ("isinf", "float"): "return fabsF(a) == INFINITY;",
    ("isinf", "complex"): "return fabsF(a.re) == INFINITY || fabsF(a.im) == INFINITY;",
    ("real", "int uint float"): "return a;", ("real", "complex"): "return a.re;",
    ("imag", "int uint float"): "(void)a;\nreturn 0;", ("imag", "complex"): "return a.im;",
    ("conj", "int uint float"): "return a;", ("conj", "complex"): "return (T){a.re, -a.im};",
    ("complex", "float"): "return (W){a, b};",
    ("neg", "complex"): "return (T){-a.re, -a.im};",
    ("add", "complex"): "return (T){a.re + b.re, a.im + b.im};",
    ("sub", "complex"): "return (T){a.re - b.re, a.im - b.im};",
    ("mul", "complex"): "return (T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};",
    # Smith's algorithm: no overflow in between
    ("div", "complex"): "if (fabsF(b.re) >= fabsF(b.im)) {\n    if (b.re == 0 && b.im == 0) return (T){a.re / "
                        "fabsF(b.re), a.im / fabsF(b.re)};\n"
                        "    P r = b.im / b.re, d = 1 / (b.re + b.im * r);\n"
                        "    return (T){(a.re + a.im * r) * d, (a.im - a.re * r) * d};\n}\n"
                        "P r = b.re / b.im, d = 1 / (b.im + b.re * r);\nreturn (T){(a.re * r + a.im) * d, (a.im * r - "
                        "a.re) * d};",
    ("eq", "complex"): "return a.re == b.re && a.im == b.im;",
    ("ne", "complex"): "return a.re != b.re || a.im != b.im;",
}
SCALAR_ROWS = {(op, kind): body for (op, kinds), body in BODIES.items() for kind in kinds.split()}
PART = {"c64": "f32", "c128": "f64"}
# Vector forms that need no scalar detour: (operator, kinds) -> expression over a, b, c; SELECT(mask, x, y) chooses by
# lane.
VECTORS: dict[tuple[str, str], str] = {
    ("max", "int uint"): "SELECT(a > b, a, b)", ("max", "float"): "SELECT(a != a, a, SELECT(a > b, a, b))",
    ("min", "int uint"): "SELECT(a < b, a, b)", ("min", "float"): "SELECT(a != a, a, SELECT(a < b, a, b))",
    ("fmax", "int uint"): "SELECT(a > b, a, b)", ("fmin", "int uint"): "SELECT(a < b, a, b)",
    ("fma", "int uint"): "a * b + c", ("abs", "uint"): "a", ("abs", "int"): "SELECT(a < 0, -a, a)",
}
# What clang is much quicker to compile than the same lane by lane: a C function -> the builtin that is it on whole
# vectors.
BUILTINS = {"fma": "__builtin_elementwise_fma", "fmaf": "__builtin_elementwise_fma"}
# And what gcc spells for one machine only: (a C function, lanes) -> where it is there, and the call. Lane by lane it
# takes scalar instructions.
GNU_BUILTINS: dict[tuple[str, int], tuple[str, str]] = {
    ("fmaf", 16): ("__AVX512F__", "__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)"),
    ("fma", 8): ("__AVX512F__", "__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)"),
    ("fmaf", 8): ("__FMA__", "__builtin_ia32_vfmaddps256(a, b, c)"),
                                                        ("fma", 4): ("__FMA__", "__builtin_ia32_vfmaddpd256(a, b, c)"),
    ("fmaf", 4): ("__FMA__", "__builtin_ia32_vfmaddps(a, b, c)"),
                                                        ("fma", 2): ("__FMA__", "__builtin_ia32_vfmaddpd(a, b, c)"),
}
# (type, lanes) -> value · 2^n in one instruction, n a whole number as a float, and where it is there; the same for gcc
# and clang.
SCALE_BUILTINS: dict[tuple[str, int], tuple[str, str]] = {
    ("f32", 16): ("__AVX512F__", "__builtin_ia32_scalefps512_mask(value, n, value, -1, 4)"),
    ("f64", 8): ("__AVX512F__", "__builtin_ia32_scalefpd512_mask(value, n, value, -1, 4)"),
}
VECTOR_ROWS = {(op, kind): text for (op, kinds), text in VECTORS.items() for kind in kinds.split()}
LOGICAL: dict[str, Spelling] = {"and": Infix("&&", AND), "or": Infix("||", OR), "xor": Infix("!=", EQUALITY),
                                "not": Prefix("!")}
