"""The static inline helper functions of a C file, each printed once, in the order of first use.

Some operators of C differ from caten's (division by zero, shifts past the width, NaN in a maximum, a float that does
not fit an integer). A helper implements caten's semantics exactly, and the C compiler inlines it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..core.dtypes import DTYPES, whole
from ..core.monoids import identity
from ..core.scalars import COMPARISONS
from ..errors import error
from ..mathematics.elementary import elementary_table, remainders
from ..mathematics.elementary.arithmetic import Arithmetic
from . import masked_access as masks
from .c_literals import literal
from .code import UNARY, Code, Infix, Libm, Prefix, Spelling, call, infix, prefix
from .conversion_steps import conversion_steps, gnu_conversion
from .helper_bodies import BUILTINS, GNU_BUILTINS, LOGICAL, PART, SCALAR_ROWS, SCALE_BUILTINS, VECTOR_ROWS


class _Types(dict[str, str]):
    """The C spellings of types. A missing type raises E616: the runtime cannot compute a function that needs it."""

    def __missing__(self, dtype: str) -> str:
        raise error("E616", f"this runtime cannot compute a function, which goes through {dtype}",
                    hint=f"its table of types lacks {dtype}: add that, or the function to its table of operators")


class Helpers:
    """The helper functions and headers that a C file uses. `types`, `ops` and `vectors` are the runtime's tables;
    `define` writes the function of an operator that they lack (render.definitions). `fused`: does the machine have a
    fused multiply-add? `fast`: may vector functions have larger errors? `vector_bytes`: the width of a register."""

    outside = ""                # the address-space qualifier of pointers to the caller's memory

    def __init__(self, types: Mapping[str, str], ops: Mapping[str, Spelling],
                 vectors: Mapping[tuple[str, str, int], str],
                 define: Callable[[Helpers, str, str, int, str], str], fused: bool = False, fast: bool = False,
                 vector_bytes: int = 64):
        self.types, self.ops, self.vectors, self._define = _Types(types), ops, vectors, define
        self.fused, self.fast, self.vector_bytes = fused, fast, vector_bytes
        self.texts: dict[str, str] = {}
        self.headers: set[str] = {"stdint.h"}
        self._pending: list[str] = []

    def text(self) -> str:
        """The text of all helpers; multi-line helpers are set off by empty lines."""
        out = ""
        before = ""
        for text in self.texts.values():
            out += ("\n" if before.count("\n") > 1 or (before and text.count("\n") > 1) else "") + text
            before = text
        return out

    def define(self, name: str, make: Callable[[], str]) -> str:
        """Add the helper `name` with the text of `make()`, once, after the helpers that it uses; return `name`."""
        if name not in self.texts and name not in self._pending:
            self._pending.append(name)
            text = make()
            self._pending.remove(name)
            self.texts[name] = text
        return name

    def function(self, name: str, result: str, args: str, body: str, storage: str = "static inline ") -> str:
        short = f"{storage}{result} {name}({args}) {{ {body} }}\n"
        if "\n" not in body and len(short) <= 160:
            return short
        lines = "".join([f"    {line}\n" for line in body.split("\n")])
        return f"{storage}{result} {name}({args})\n{{\n{lines}}}\n"

    def shared_byte(self) -> str:
        """An atomic load of the byte of `p` with the 4-bit element `e`, whose other half another thread may write."""
        return "__atomic_load_n(p + (e >> 1), __ATOMIC_RELAXED)"

    def set_shared(self) -> str:
        """Statements that set the 4-bit element `e` of `p` to `v`, atomically with respect to the other half of its
        byte."""
        return ("const int s = e & 1 ? 4 : 0;\np += e >> 1;\n"
                "__atomic_fetch_and(p, (uint8_t)~(15 << s), __ATOMIC_RELAXED);\n"
                "__atomic_fetch_or(p, (uint8_t)((v & 15) << s), __ATOMIC_RELAXED);")

    @property
    def widest_float(self) -> str:
        return "f64" if "f64" in self.types else "f32"

    # -- types ---------------------------------------------------------------------------------------------------------

    def type(self, dtype: str, lanes: int = 1) -> str:
        """The C type of a value."""
        if DTYPES[dtype].kind == "complex":
            part = self.types[PART[dtype]]
            return self.define(f"ct_{dtype}", lambda: f"typedef struct {{ {part} re, im; }} ct_{dtype};\n")
        if lanes == 1:
            return self.types[dtype]
        base = "u8" if dtype == "bool" else dtype
        size = DTYPES[base].bytes * lanes
        return self.define(f"ct_{base}x{lanes}",
                           lambda: f"typedef {self.types[base]} ct_{base}x{lanes} "
                                   f"__attribute__((vector_size({size})));\n")

    def loose_type(self, dtype: str, lanes: int) -> str:
        """The type of a vector in memory: aligned to its element, and allowed to alias it."""
        base = "u8" if dtype == "bool" else dtype
        name, size = f"ct_{base}x{lanes}_at", DTYPES[base].bytes
        attributes = f"vector_size({size * lanes}), aligned({size}), may_alias"
        return self.define(name, lambda: f"typedef {self.types[base]} {name} __attribute__(({attributes}));\n")

    def mask_type(self, bits: int, lanes: int) -> str:
        """A vector of signed integers: −1 in the lanes where a condition holds, else 0."""
        return self.type(f"i{bits}", lanes)

    # -- operators -----------------------------------------------------------------------------------------------------

    def operator(self, fn: str, dtype: str) -> str:
        """The helper of an operator on scalars of one type."""
        row = DTYPES[dtype]
        arity = 3 if fn == "fma" else 1 if fn in ("abs", "isnan", "isinf", "real", "imag", "conj", "neg") else 2
        part = PART.get(dtype, dtype)
        gives = "bool" if fn in ("isnan", "isinf", "eq", "ne") else part if fn in ("abs", "real", "imag") else \
            whole(dtype) if fn == "complex" else dtype
        result = self.type(gives)

        def make() -> str:
            body = SCALAR_ROWS[fn, row.kind]
            if "F(" in body or "INFINITY" in body:
                self.headers.add("math.h")
            for word, spelled in (("BITS", str(row.bits)), ("(T)", f"({self.type(dtype)})"),
                                  ("T ", f"{self.type(dtype)} "),
                                  ("(U)", f"({self.types['u' + str(row.bits)]})" if "(U)" in body else ""),
                                  ("(W)", f"({self.type(whole(dtype))})" if "(W)" in body else ""),
                                  ("P ", f"{self.types[PART.get(dtype, 'f32')]} ")):
                body = body.replace(word, spelled)
            for math in ("fmod", "floor", "trunc", "copysign", "fabs", "fmax", "fmin", "fma", "hypot"):
                if math + "F" in body:
                    body = body.replace(math + "F", self.libm(math, PART.get(dtype, dtype)))
            return self.function(f"ct_{fn}_{dtype}", result,
                                 ", ".join([f"{self.type(dtype)} {v}" for v in "abc"[:arity]]), body)
        return self.define(f"ct_{fn}_{dtype}", make)

    def libm(self, name: str, dtype: str) -> str:
        """A function of <math.h> for float32 or float64."""
        self.headers.add("math.h")
        return name + "f" * (dtype == "f32")

    def lanewise(self, scalar: str, name: str, dtype: str, result: str, lanes: int, arity: int,
                 storage: str = "static inline ") -> str:
        """A vector function that applies a scalar one to every lane; C compilers use a vector instruction for it if
        there is one."""
        def make() -> str:
            vector, out = self.type(dtype, lanes), self.type(result, lanes)
            arguments = "abc"[:arity]
            calls = [f"{scalar}({', '.join([f'{v}[{k}]' for v in arguments])})" for k in range(lanes)]
            body = _listed(out, calls)
            if (builtin := BUILTINS.get(scalar)) is not None:
                where, gnu = GNU_BUILTINS.get((scalar, lanes), ("", ""))
                other = f"#elif defined({where}) && !defined(__clang__)\nreturn {gnu};\n" if where else ""
                body = (f"#if __has_builtin({builtin})\nreturn {builtin}({', '.join(arguments)});\n{other}#else\n"
                        f"{body}\n#endif")
            return self.function(name, out, ", ".join([f"{vector} {v}" for v in arguments]), body, storage)
        return self.define(name, make)

    def vector_operator(self, fn: str, dtype: str, lanes: int, arity: int) -> str:
        """The helper of an operator on vectors."""
        row, name = DTYPES[dtype], f"ct_{fn}_{dtype}x{lanes}"
        if (ready := self.vectors.get((fn, dtype, lanes))) is not None:
            vector = self.type(dtype, lanes)
            return self.define(ready, lambda: f"extern {vector} {ready}({', '.join([vector] * arity)});\n")
        if fn in ("shl", "shr"):
            return self.shift(fn, dtype, lanes)
        form = VECTOR_ROWS.get((fn, row.kind))
        if form is not None:
            def make() -> str:
                vector = self.type(dtype, lanes)
                select = self.select(dtype, lanes) if "SELECT" in form else ""
                body = "return " + form.replace("SELECT", select) + ";"
                return self.function(name, vector, ", ".join([f"{vector} {v}" for v in "abc"[:arity]]), body)
            return self.define(name, make)
        if elementary_table.has_form(fn, self.arithmetic(dtype)):
            limit = elementary_table.limit(fn, self.arithmetic(dtype))
            return self.defined(fn, dtype, lanes) if limit is None else self.limited(fn, dtype, lanes, limit)
        if fn in remainders.FORMS and row.kind == "float" and self.fused:
            return self.remainder(fn, dtype, lanes)
        scalar = self.libm(fn, dtype) if fn == "fma" else self.scalar_function(fn, dtype)
        return self.lanewise(scalar, name, dtype, dtype, lanes, arity)

    def partial(self, name: str, dtype: str, lanes: int) -> str | None:
        """The helper of a form in elementary_table.PARTIAL on vectors; None where there is none, or the runtime has a
        function of its own for the operator."""
        fn, _ = elementary_table.PARTIAL[name]
        if (fn, dtype, lanes) in self.vectors or not elementary_table.has_form(name, self.arithmetic(dtype)):
            return None
        return self.defined(name, dtype, lanes)

    def converted(self, value: Code, of: str, to: str, lanes: int) -> Code:
        """A vector as a type of another size, by value; to a narrower integer it wraps. Each conversion doubles the
        bytes of an element or halves them: gcc takes a vector apart for more, and clang makes one conversion of
        several."""
        steps, at_once = conversion_steps(of, to), gnu_conversion(of, to, lanes)
        if len(steps) < 2 and at_once is None:
            return self._converted(value, steps, lanes)
        name = f"ct_{to}_of_{of}x{lanes}"

        def make() -> str:
            vector, body = self.type(to, lanes), f"return {self._converted(Code('a'), steps, lanes).text};"
            if at_once is not None:
                instruction = Code(f"({self.type(at_once.to, lanes)}){at_once.call}")
                rest = self._converted(instruction, conversion_steps(at_once.to, to), lanes)
                body = (f"#if defined({at_once.where}) && !defined(__clang__)\nreturn {rest.text};\n#else\n{body}\n"
                        "#endif")
            return self.function(name, vector, f"{self.type(of, lanes)} a", body)
        return call(self.define(name, make), value)

    def _converted(self, value: Code, steps: Iterable[str], lanes: int) -> Code:
        for step in steps:
            value = Code(f"__builtin_convertvector({value.text}, {self.type(step, lanes)})")
        return value

    def is_wide(self, dtype: str, lanes: int) -> bool:
        """Is a vector wider than a register? gcc takes comparisons and shuffles of such a vector apart."""
        return lanes > 2 and DTYPES[dtype].bytes * lanes > self.vector_bytes

    def compared(self, fn: str, dtype: str, left: Code, right: Code, lanes: int) -> Code:
        """A comparison of vectors, as a mask."""
        spelling, bits = self.ops[fn], DTYPES[dtype].bits
        assert isinstance(spelling, Infix)
        if not self.is_wide(dtype, lanes):
            return infix(spelling.symbol, spelling.level, left, right)
        name, symbol = f"ct_{fn}_{dtype}x{lanes}", spelling.symbol
        part, count = self.vector_bytes * 8 // bits, lanes * bits // (8 * self.vector_bytes)

        def make() -> str:
            vector, mask = self.type(dtype, lanes), self.mask_type(bits, lanes)
            lines = ["#ifdef __clang__", f"return ({mask})(a {symbol} b);", "#else",
                     f"union {{ {vector} whole; {self.type(dtype, part)} parts[{count}]; }} x = {{a}}, y = {{b}};",
                     f"union {{ {mask} whole; {self.mask_type(bits, part)} parts[{count}]; }} m;",
                     *[f"m.parts[{k}] = x.parts[{k}] {symbol} y.parts[{k}];" for k in range(count)],
                     "return m.whole;", "#endif"]
            return self.function(name, mask, f"{vector} a, {vector} b", "\n".join(lines))
        return call(self.define(name, make), left, right)

    def picked(self, value: str, dtype: str, lanes: int, picks: Sequence[int]) -> str:
        """Some lanes of a vector, in another order. Of several registers, gcc picks from two at a time."""
        base, count = "u8" if dtype == "bool" else dtype, len(picks)
        whole = f"__builtin_shufflevector({{0}}, {{0}}, {', '.join(map(str, picks))})"
        if not self.is_wide(base, lanes) or self.is_wide(base, count) or count < 2 or lanes % count:
            return whole.format(value)
        step = picks[1] - picks[0]
        if list(picks) != [picks[0] + k * step for k in range(count)]:
            return whole.format(value)
        name = f"ct_every_{step}_from_{picks[0]}_{base}x{lanes}".replace("-", "back_")

        def make() -> str:
            vector, part = self.type(base, lanes), self.type(base, count)
            lines = [f"union {{ {vector} whole; {part} parts[{lanes // count}]; }} x = {{v}};",
                     f"{part} r = x.parts[0];"]
            for n in range(1, lanes // count):
                if n > 1 and not any(n * count <= p < (n + 1) * count for p in picks):
                    continue
                begin = 0 if n == 1 else n * count                 # of what is not in r yet
                order = [k if p < begin else (p - begin if n == 1 else count + p - begin) for k, p in enumerate(picks)]
                lines.append(f"r = __builtin_shufflevector(r, x.parts[{n}], "
                             f"{', '.join([str(p if p < 2 * count else 0) for p in order])});")
            plain = f"return {whole.format('v')};"
            return self.function(name, part, f"{vector} v", "\n".join(["#ifdef __clang__", plain, "#else", *lines,
                                                                       "return r;", "#endif"]))
        return f"{self.define(name, make)}({value})"

    def divided(self, fn: str, dtype: str, lanes: int) -> str:
        """`floordiv` or `mod` of a vector by one of positive numbers: C's division rounds to 0, and ⌊a / b⌋ is
        ~(~a / b) where a is negative."""
        name, row = f"ct_{fn}_positive_{dtype}x{lanes}", DTYPES[dtype]

        def make() -> str:
            vector = self.type(dtype, lanes)
            down, low = "(((a ^ s) / b) ^ s)", f"const {vector} s = a >> {self.splat(dtype, lanes)}({row.bits - 1});\n"
            if row.kind == "uint":
                down, low = "(a / b)", ""
            result = down[1:-1] if fn == "floordiv" else f"a - {down} * b"
            return self.function(name, vector, f"{vector} a, {vector} b", f"{low}return {result};")
        return self.define(name, make)

    def shift(self, fn: str, dtype: str, lanes: int) -> str:
        """A shift by another number of bits in each lane; narrow types in 32 bits, where all machines have one."""
        row, name = DTYPES[dtype], f"ct_{fn}_{dtype}x{lanes}"

        def make() -> str:
            vector = self.type(dtype, lanes)
            if row.bits < 32:
                word = "i32" if row.kind == "int" else "u32"
                words, inner = self.type(word, lanes), self.shift(fn, word, lanes)
                a, b = [f"__builtin_convertvector({v}, {words})" for v in "ab"]
                one, kind = self.scalar_function(fn, dtype), self.type(dtype)
                body = ("#ifdef __clang__\n"
                        f"return __builtin_convertvector({inner}({a}, {b}), {vector});\n"
                        "#else\n"                       # gcc takes wide vectors apart, and makes vectors of loops
                        f"union {{ {vector} whole; {kind} lanes[{lanes}]; }} x = {{a}}, y = {{b}};\n"
                        f"for (int k = 0; k < {lanes}; k++) x.lanes[k] = {one}(x.lanes[k], y.lanes[k]);\n"
                        "return x.whole;\n#endif")
            else:
                last, end = row.bits - 1, "u" * (row.kind == "uint") + "ll" * (row.bits == 64)
                high = f"{(1 << row.bits) - row.bits}{end}" if row.kind == "uint" else f"-{row.bits}{end}"
                moved = f"a {'<<' if fn == 'shl' else '>>'} (b & {last})"
                beyond = f"a >> {last}" if fn == "shr" and row.kind == "int" else "a ^ a"
                body = f"return {self.select(dtype, lanes)}((b & {high}) == 0, {moved}, {beyond});"
            return self.function(name, vector, f"{vector} a, {vector} b", body)
        return self.define(name, make)

    def arithmetic(self, dtype: str) -> Arithmetic:
        """The arithmetic for elementary functions on vectors."""
        return Arithmetic(dtype, self.fused, self.fast)

    def scaled(self, dtype: str, lanes: int) -> str:
        """`scaled(value, n, biased)`: value · 2^n, where `biased` holds n + 2 · bias in its low bits."""
        name = f"ct_scaled_{dtype}x{lanes}"

        def make() -> str:
            vector, a = self.type(dtype, lanes), self.arithmetic(dtype)
            words, (where, builtin) = self.type(a.integer, lanes), SCALE_BUILTINS[dtype, lanes]
            body = (f"#ifdef {where}\n(void)biased;\nreturn {builtin};\n#else\n(void)n;\n"
                    f"const {words} half = biased >> 1;\n"
                    f"return value * ({vector})(half << {a.mantissa}) * ({vector})((biased - half) << {a.mantissa});\n"
                    f"#endif")
            return self.function(name, vector, f"{vector} value, {vector} n, {words} biased", body)
        return self.define(name, make)

    def limited(self, fn: str, dtype: str, lanes: int, most: float) -> str:
        """A vector function by its expansion; lane by lane if an argument exceeds the valid range of the expansion."""
        name = f"ct_{fn}_{dtype}x{lanes}"

        def make() -> str:
            vector = self.type(dtype, lanes)
            near = self.define(f"{name}_near", lambda: self._define(self, fn, dtype, lanes, f"{name}_near"))
            far = self.lanewise(self.scalar_function(fn, dtype), f"{name}_far", dtype, dtype, lanes, 1,
                                "__attribute__((noinline, cold)) static ")
            limit = literal(most, dtype).text
            beyond = f"(x > {limit}) | (x < -{limit})"
            return self.function(name, vector, f"{vector} x",
                                 f"if ({self.fold('or', f'i{DTYPES[dtype].bits}', lanes)}({beyond})) return "
                                 f"{far}(x);\nreturn {near}(x);")
        return self.define(name, make)

    def remainder(self, fn: str, dtype: str, lanes: int) -> str:
        """A remainder or its quotient of vectors by its form; lane by lane if a quotient is large or no number, or a
        divisor is infinite."""
        name = f"ct_{fn}_{dtype}x{lanes}"

        def make() -> str:
            self.headers.add("math.h")
            vector = self.type(dtype, lanes)
            near = self.define(f"{name}_near", lambda: self._define(self, fn, dtype, lanes, f"{name}_near"))
            far = self.lanewise(self.scalar_function(fn, dtype), f"{name}_far", dtype, dtype, lanes, 2,
                                "__attribute__((noinline, cold)) static ")
            most, infinity = literal(remainders.LIMITS[dtype], dtype).text, literal(float("inf"), dtype).text
            inside = f"(q <= {most}) & (q >= -{most}) & (y < {infinity}) & (y > -{infinity})"
            any_of = self.fold("or", f"i{DTYPES[dtype].bits}", lanes)
            return self.function(name, vector, f"{vector} x, {vector} y",
                                 f"const {vector} q = x / y;\nif ({any_of}(~({inside}))) return {far}(x, y);\n"
                                 f"return {near}(x, y);")
        return self.define(name, make)

    def scalar_function(self, fn: str, dtype: str) -> str:
        """The name of the C function of an operator on scalars."""
        match self.ops.get(fn):
            case None:
                return self.defined(fn, dtype, 1)
            case Libm(name=name):
                return self.libm(name, dtype)
            case str(name):
                return name
        return self.operator(fn, dtype)

    def select(self, dtype: str, lanes: int) -> str:
        """`select(mask, x, y)`: x in the lanes where the mask is set, y elsewhere."""
        base = "u8" if dtype == "bool" else dtype
        name = f"ct_select_{base}x{lanes}"

        def make() -> str:
            mask, vector = self.mask_type(DTYPES[base].bits, lanes), self.type(base, lanes)
            return self.function(name, vector, f"{mask} m, {vector} x, {vector} y",
                                 f"return ({vector})((m & ({mask})x) | (~m & ({mask})y));")
        return self.define(name, make)

    def splat(self, dtype: str, lanes: int) -> str:
        def make() -> str:
            vector = self.type(dtype, lanes)
            return self.function(f"ct_splat_{dtype}x{lanes}", vector, f"{self.type(dtype)} x",
                                 f"return ({vector}){{{', '.join(['x'] * lanes)}}};")
        return self.define(f"ct_splat_{dtype}x{lanes}", make)

    def below(self, bits: int, lanes: int, rest: bool) -> str:
        """The mask of the lanes with begin + lane < end. `rest`: for the tail of a loop, one comparison; otherwise, for
        the edges of a padded array, branches first test for all or no lanes, the usual cases."""
        name = f"ct_{'below' if rest else 'until'}_i{bits}x{lanes}"

        def make() -> str:
            mask, element = self.mask_type(bits, lanes), self.types[f"i{bits}"]
            if rest:
                body = (f"const {element} n = begin >= end ? 0 : end - begin < {lanes} ? ({element})(end - begin) : "
                        f"{lanes};\n")
            else:
                body = (f"if (begin >= end) return ({mask}){{0}};\nif (end - begin >= {lanes}) return ~({mask}){{0}};\n"
                        f"const {element} n = ({element})(end - begin);\n")
            numbers, limit = [Code(f"({mask}){{{', '.join(map(str, each))}}}")
                              for each in (range(lanes), ["n"] * lanes)]
            body += f"return {self.compared('lt', f'i{bits}', numbers, limit, lanes).text};"
            return self.function(name, mask, "int64_t begin, int64_t end", body)
        return self.define(name, make)

    def fold(self, fn: str, dtype: str, lanes: int) -> str:
        """The reduction of all lanes by an operator: combine the lower half with the upper half until one lane
        remains."""
        name = f"ct_fold_{fn}_{dtype}x{lanes}"

        def make() -> str:
            body, half = "", lanes // 2
            while half:
                upper = ", ".join([str((lane + half) % lanes) for lane in range(lanes)])
                other = Code(f"__builtin_shufflevector(v, v, {upper})")
                body += f"v = {self.combine(fn, dtype, lanes, Code('v'), other).text};\n"
                half //= 2
            body += "return v[0];"
            return self.function(name, self.type(dtype), f"{self.type(dtype, lanes)} v", body)
        return self.define(name, make)

    def prefix(self, fn: str, dtype: str, lanes: int) -> str:
        """The prefix of all lanes by an operator: combine each lane with that 1, 2, 4 … before it, in log₂ steps."""
        name = f"ct_prefix_{fn}_{dtype}x{lanes}"

        def make() -> str:
            vector, start = self.type(dtype, lanes), literal(identity(fn, dtype).value, dtype).text
            if "INFINITY" in start:
                self.headers.add("math.h")
            body, apart = f"{vector} start = {{{', '.join([start] * lanes)}}};\n", 1
            if lanes * DTYPES[dtype].bits in (128, 256, 512):
                # Where clang sees zeros, it shuffles by expanding under a mask, which takes AMD four times as long.
                body += '#if defined(__AVX512F__) && defined(__clang__)\n__asm__("" : "+v"(start));\n#endif\n'
            while apart < lanes:
                before = ", ".join([str(lane - apart if lane >= apart else lanes + lane) for lane in range(lanes)])
                other = Code(f"__builtin_shufflevector(v, start, {before})")
                body += f"v = {self.combine(fn, dtype, lanes, other, Code('v')).text};\n"
                apart *= 2
            return self.function(name, vector, f"{vector} v", body + "return v;")
        return self.define(name, make)

    def combine(self, fn: str, dtype: str, lanes: int, left: Code, right: Code) -> Code:
        """The C text of a binary operator on two values; the result has their type."""
        return self.apply(fn, dtype, lanes, (left, right))

    def apply(self, fn: str, dtype: str, lanes: int, args: tuple[Code, ...]) -> Code:
        """The C text of an operator on values of one element type; not for comparisons of vectors, which give masks."""
        kind, spelling = DTYPES[dtype].kind, self.ops.get(fn)
        if spelling is None:
            # it may hold for some arguments only
            formed = lanes > 1 and elementary_table.has_form(fn, self.arithmetic(dtype))
            return call(self.vector_operator(fn, dtype, lanes, len(args)) if formed else self.defined(fn, dtype, lanes),
                        *args)
        if kind == "bool" and lanes == 1 and fn in LOGICAL:
            spelling = LOGICAL[fn]
        if kind == "complex" and not isinstance(spelling, str):
            return call(self.operator(fn, dtype), *args)
        if isinstance(spelling, (Infix, Prefix)):
            # any order of additions and subtractions gives the same bits
            exact = fn == "add" and kind in ("int", "uint")
            done = infix(spelling.symbol, spelling.level, *args,
                         associative=exact) if isinstance(spelling, Infix) else prefix(spelling.symbol, *args)
            promoted = lanes == 1 and kind in ("int", "uint") and DTYPES[dtype].bits < 32 and fn not in COMPARISONS
            return Code(f"({self.types[dtype]}){done.at(UNARY)}", UNARY) if promoted else done
        if lanes > 1:
            return call(self.vector_operator(fn, dtype, lanes, len(args)), *args)
        if isinstance(spelling, Libm):
            return call(self.libm(spelling.name, dtype), *args)
        return call(spelling if isinstance(spelling, str) else self.operator(fn, dtype), *args)

    def defined(self, fn: str, dtype: str, lanes: int) -> str:
        """The function for an operator that the runtime's table lacks."""
        name = f"ct_{fn}_{dtype}" + (f"x{lanes}" if lanes > 1 else "")
        return self.define(name, lambda: self._define(self, fn, dtype, lanes, name))

    # -- conversions ---------------------------------------------------------------------------------------------------

    def saturate(self, to: str, of: str) -> str:
        """Float to integer: NaN becomes 0, a value out of range the nearest limit. By a minimum and a maximum where
        the limits are floats of this type, else the usual case is one branch, which is always taken. Not so with gcc
        (at least up to 12), where values that become 0 bypass the conversion: it folds float → integer → float to
        `trunc`, which turns -0.5 into -0.0."""
        name, row = f"ct_{to}_of_{of}", DTYPES[to]

        def make() -> str:
            suffix, signed, integer = "f" * (of == "f32"), row.kind == "int", self.types[to]
            limit = f"{2.0 ** (row.bits - signed):.1f}" + suffix
            least, greatest = literal(row.least, to).text, literal(row.greatest, to).text
            above = f"-{limit}" if signed else "-1"
            fast = (f"if (__builtin_expect(a > {above} && a < {limit}, 1)) return ({integer})a;\n"
                    f"return a != a ? 0 : a < 0 ? {least} : {greatest};")
            if row.bits < DTYPES[of].bits:
                low, high = f"{float(row.least)}{suffix}", f"{float(row.greatest)}{suffix}"
                number = "a = a == a ? a : 0;\n" * signed
                wide = "" if row.bits == 32 else f"({self.types['i32']})"
                fast = (f"{number}a = a > {low} ? a : {low};\na = a < {high} ? a : {high};\n"
                        f"return ({integer}){wide}a;")
            is_zero = "!(a <= -1 || a >= 1)" if signed else "!(a >= 1)"
            below = f"if (a <= -{limit}) return {least};\n" if signed else ""
            return self.function(name, integer, f"{self.types[of]} a", f"""#ifdef __clang__
{fast}
#else
if ({is_zero}) return 0;
{below}if (a >= {limit}) return {greatest};
return ({integer})a;
#endif""")
        return self.define(name, make)

    def bits(self, to: str, of: str) -> str:
        """Reinterpret the bits as another type."""
        name = f"ct_{to}_bits_of_{of}"
        body = f"union {{ {self.type(of)} from; {self.type(to)} to; }} u = {{a}};\nreturn u.to;"
        return self.define(name, lambda: self.function(name, self.type(to), f"{self.type(of)} a", body))

    # -- vectors in memory ---------------------------------------------------------------------------------------------

    def memory(self, action: str, dtype: str, lanes: int) -> str:
        """`load store`, with a stride `gather scatter`, and their masked forms `load_if …` for vectors of a type."""
        base = "u8" if dtype == "bool" else dtype
        name = f"ct_{action}_{base}x{lanes}"

        def make() -> str:
            vector, element = self.type(base, lanes), self.types[base]
            loads, masked = action.startswith(("load", "gather")), action.endswith("_if")
            strided = action.startswith(("gather", "scatter"))
            pointer = f"const {element} *p" if loads else f"{element} *p"
            mask = f", {self.mask_type(DTYPES[base].bits, lanes)} m" if masked else ""
            value = "" if loads else f", {vector} v"
            step = " * stride" if strided else ""
            ways = ""
            if not strided and not masked:
                loose = self.loose_type(base, lanes)
                body = f"return *(const {loose} *)p;" if loads else f"*({loose} *)p = v;"
            elif loads:
                body = _listed(vector, [(f"m[{k}] ? p[{k}{step}] : 0" if masked else f"p[{k}{step}]")
                                        for k in range(lanes)])
            else:
                body = "\n".join([("" if not masked else f"if (m[{k}]) ") + f"p[{k}{step}] = v[{k}];"
                                  for k in range(lanes)])
            if masked and not strided:
                for n, (where, one) in enumerate(masks.forms(loads, base, vector, element,
                                                             self.mask_type(DTYPES[base].bits, lanes), lanes)):
                    ways += f"#{'elif' if n else 'if'} {where}\n{one}\n"
                body = f"{ways}#else\n{body}\n#endif"
            return self.function(name, vector if loads else "void",
                                 f"{pointer}{', int64_t stride' if strided else ''}{mask}{value}", body, storage)
        storage = "static inline "
        if action in ("load_if", "store_if") and masks.has_first_bytes(base, lanes):
            self.define("ct_first_bytes", lambda: masks.FIRST_BYTES)
            storage = "CT_SOME " if action == "load_if" else storage
        return self.define(name, make)

    def every_second(self, name: str, dtype: str, lanes: int, masked: bool = False) -> str:
        """`real imag`: the first or the second elements of pairs of neighbours; `masked`: 0 outside of a mask."""
        whole = f"ct_{name}_of_pairs{'_if' * masked}_{dtype}x{lanes}"

        def make() -> str:
            vector, wide = self.type(dtype, lanes), self.loose_type(dtype, 2 * lanes)
            order, pointer = _every_second(name, lanes), f"const {self.types[dtype]} *p"
            if not masked:
                return self.function(whole, vector, pointer, f"const {wide} both = *(const {wide} *)p;\n"
                                                             f"return __builtin_shufflevector(both, both, {order});")
            load, (low, high) = self.memory("load_if", dtype, lanes), self._halves_of_pairs(lanes)
            return self.function(whole, vector, f"{pointer}, {self.mask_type(DTYPES[dtype].bits, lanes)} m",
                                 f"const {vector} low = {load}(p, __builtin_shufflevector(m, m, {low}));\n"
                                 f"const {vector} high = {load}(p + {lanes}, __builtin_shufflevector(m, m, {high}));\n"
                                 f"return __builtin_shufflevector(low, high, {order});")
        return self.define(whole, make)

    def every_second_apart(self, name: str, dtype: str, lanes: int) -> str:
        """`real imag` of pairs at a stride, in pairs. Each pair is one load, also where both parts are read."""
        whole = f"ct_{name}_of_pairs_apart_{dtype}x{lanes}"

        def make() -> str:
            vector, wide = self.type(dtype, lanes), self.loose_type(dtype, 2 * lanes)
            pairs = _initializer(wide, [f"p[{2 * k} * stride{part}]" for k in range(lanes) for part in ("", " + 1")])
            return self.function(whole, vector, f"const {self.types[dtype]} *p, int64_t stride",
                                 f"const {wide} both = {pairs};\n"
                                 f"return __builtin_shufflevector(both, both, {_every_second(name, lanes)});")
        return self.define(whole, make)

    def interleaved(self, action: str, dtype: str, lanes: int) -> str:
        """`interleave`, with a stride `interleave_apart`, and their masked forms: the store of two vectors as pairs of
        neighbours."""
        name = f"ct_{action}_{dtype}x{lanes}"

        def make() -> str:
            vector, element, masked = self.type(dtype, lanes), self.types[dtype], action.endswith("_if")
            mask = f", {self.mask_type(DTYPES[dtype].bits, lanes)} m" if masked else ""
            apart = "apart" in action
            body = "\n".join([f"{f'if (m[{k}]) ' if masked else ''}{{ p[{at}] = a[{k}]; p[{at} + 1] = b[{k}]; }}"
                              for k in range(lanes) for at in [f"2 * {k} * stride" if apart else str(2 * k)]])
            order = [k + part * lanes for k in range(lanes) for part in (0, 1)]
            if not apart and not masked:
                body = (f"*({self.loose_type(dtype, 2 * lanes)} *)p = "
                        f"__builtin_shufflevector(a, b, {', '.join(map(str, order))});")
            if not apart and masked:
                store, parts = self.memory("store_if", dtype, lanes), (order[:lanes], order[lanes:])
                halves = zip(self._halves_of_pairs(lanes), parts, strict=True)
                body = "\n".join([f"{store}(p{f' + {n * lanes}' * n}, __builtin_shufflevector(m, m, {half}), "
                                  f"__builtin_shufflevector(a, b, {', '.join(map(str, picks))}));"
                                  for n, (half, picks) in enumerate(halves)])
            return self.function(name, "void", f"{element} *p{mask}{', int64_t stride' if apart else ''}, {vector} a, "
                                               f"{vector} b", body)
        return self.define(name, make)

    @staticmethod
    def _halves_of_pairs(lanes: int) -> tuple[str, str]:
        """The lanes of a mask for pairs of neighbours: of the first half of the pairs, and of the second one."""
        low, high = [", ".join([str((n * lanes + k) // 2) for k in range(lanes)]) for n in (0, 1)]
        return low, high


def _every_second(name: str, lanes: int) -> str:
    """The lanes of the real or of the imaginary parts, in a vector of pairs."""
    return ", ".join([str(2 * k + (name == "imag")) for k in range(lanes)])


def _listed(vector: str, items: list[str]) -> str:
    """`return (vector){…};` with four items to a line."""
    return f"return {_initializer(vector, items)};"


def _initializer(vector: str, items: list[str]) -> str:
    """`(vector){…}` with four items to a line."""
    rows = [", ".join(items[k:k + 4]) for k in range(0, len(items), 4)]
    inside = rows[0] if len(rows) == 1 else "\n" + "".join([f"    {row},\n" for row in rows])
    return f"({vector}){{{inside}}}"
