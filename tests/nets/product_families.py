"""Families of specs that multiply, move and combine: products of any indices, gather, scatter, packed and complex types, calls, chains."""
from __future__ import annotations

from spec_forms import ALL_WORDS, INTS, Tensor, shown
from written_specs import Family, Form, Head


class Product(Family):
    """A sum of products over any sets of indices, in any loop order, under conditions, with what follows it."""

    def body(self) -> list[Form]:
        dtype = self.pick(("f32", "f32", "f32", "f64", "f16", "bf16", "i32", "i64", "i8", "u8", "c64", "c128"))
        result = self.pick(("i32", "i64")) if dtype in ("i8", "u8") and self.chance(0.7) else dtype
        count = self.pick((2, 3, 3, 3, 4, 5))
        names = [self.fresh(s) for s in "ijklm"[:count]]
        extents = dict(zip(names, [self.dim(33) for _ in names], strict=True))
        out = [n for n in names if self.chance(0.6)]
        if self.chance(0.3):
            self.rng.shuffle(out)
        operands: list[Form] = []
        for _ in range(self.pick((1, 2, 2, 2, 3))):
            own = [n for n in names if self.chance(0.6)] or [self.pick(names)]
            if self.chance(0.3):
                self.rng.shuffle(own)
            t = self.tensor(dtype, [extents[n] for n in own])
            read: Form = ("aref", t.name, *own)
            operands.append(read if result == dtype else self.cast(result, read))
        role = self.pick(("inout", "inout", "out"))
        y = self.tensor(result, [extents[n] for n in out], role)
        place = self.at(y, *out)
        value = ("*", *operands) if len(operands) > 1 else operands[0]
        if not any(n not in str(value) for n in names):
            self.mark("product of all indices")
        else:
            self.mark("sum of what it does not index")
        tests: list[Form] = []
        if self.chance(0.3):
            self.mark("condition on an index")
            a, b = self.pick(names), self.pick(names)
            tests.append(self.pick(((self.pick(("<", "<=", ">", "/=")), a, b), ("<", a, ("-", extents[a], "2")), (">=", a, "1"), ("=", ("mod", a, "2"), "0"))))
        if self.chance(0.15) and result[0] != "c":
            tests.append(self.data_test(operands[0], result))
        fn = "+" if dtype[0] == "c" else self.pick(("+", "+", "+", "max", "min", "-"))
        self.mark(f"product {fn}")
        sums: list[Head] = [(n, extents[n]) for n in names if n not in out]
        kept: list[Head] = [(n, extents[n]) for n in out]
        after: list[Form] = []
        if dtype[0] in "fb" and self.chance(0.25):
            self.mark("epilogue")
            after = [("setf", place, self.pick((("max", "0", place), ("*", place, "0.5"), ("relu", place), ("tanh", place), ("+", place, "1"))))]
        if self.chance(0.35):
            acc = self.fresh("acc")
            start: Form = place if role == "inout" and self.chance(0.4) else self.cast(result, "0")
            return self.wrapped(self.shuffled(kept), [("set", acc, start), *self.wrapped(self.shuffled(sums), self.under(tests, [self.accumulated(acc, fn, value)])),
                                                      ("setf", place, acc), *after])
        step = self.under(tests, [self.accumulated(place, fn, value)])
        if role == "out" or self.chance(0.3):
            zero = ("setf", place, "0")
            if self.chance(0.5):
                return self.wrapped(self.shuffled(kept), [zero, *self.wrapped(self.shuffled(sums), step), *after])
            return [*self.wrapped(self.shuffled(kept), [zero]), *self.wrapped(self.shuffled([*kept, *sums]), step), *(self.wrapped(kept, after) if after else [])]
        heads = [*kept, *sums]
        self.rng.shuffle(heads)
        return [*self.wrapped([self.reversed_maybe(h) for h in heads], step), *(self.wrapped(kept, after) if after else [])]


class Gather(Family):
    """Reads and writes at places that are loaded: embeddings, histograms, permutations, one-hot rows; checked, guarded or wrapped."""

    def body(self) -> list[Form]:
        dtype = self.number()
        if self.chance(0.15):
            return self.few_elements(dtype)
        n, m = self.dim(33), self.dim(17, least=1)
        index = self.tensor(self.pick(("i32", "i64", "u8", "i8", "i16")), [n], below=m)
        i, j = self.fresh("i"), self.fresh("j")
        loaded: Form = ("aref", index.name, i)
        how = self.pick(("plain", "plain", "mod", "guarded", "clip"))
        self.mark(f"loaded index {how}")
        at = {"mod": ("mod", self.cast("i64", loaded), m), "clip": ("clip", self.cast("i64", loaded), "0", ("-", m, "1"))}.get(how, loaded)
        if how == "plain" and self.chance(0.3):
            at = self.cast("i64", loaded)
        tests: list[Form] = [("<=", "0", loaded), ("<", self.cast("i64", loaded), m)] if how == "guarded" else []
        kind = self.pick(("rows", "elements", "histogram", "scatter", "one-hot", "twice"))
        self.mark({"rows": "gather", "elements": "gather", "twice": "gather"}.get(kind, "scatter"))
        if kind == "histogram":
            y = self.tensor(dtype, [m], "inout")
            return self.wrapped([(i, n)], self.under(tests, [(self.pick(("incf", "decf")), ("aref", y.name, at), "1")]))
        if kind == "one-hot":
            y = self.tensor(dtype, [n, m], "inout")
            if self.chance(0.5):
                return self.wrapped(self.shuffled([(i, n), (j, m)]), [("setf", ("aref", y.name, i, j), ("where", ("=", self.cast("i64", loaded), j), "1", "0"))])
            return self.wrapped([(i, n)], self.under(tests, [("setf", ("aref", y.name, i, at), "1")]))
        if kind == "elements":
            x, y = self.tensor(dtype, [m]), self.tensor(dtype, [n], "inout")
            return self.wrapped([(i, n)], self.under(tests, [(self.pick(("setf", "incf", "maxcf")), ("aref", y.name, i), ("aref", x.name, at))]))
        if kind == "twice":
            x, y = self.tensor(dtype, [m, m]), self.tensor(dtype, [n], "inout")
            return self.wrapped([(i, n)], self.under(tests, [("incf", ("aref", y.name, i), ("aref", x.name, at, at))]))
        d = self.dim(17)
        heads = self.shuffled([(i, n), (j, d)])
        if kind == "scatter":
            x, y = self.tensor(dtype, [n, d]), self.tensor(dtype, [m, d], "inout")
            return self.wrapped(heads, self.under(tests, [(self.pick(("incf", "setf", "maxcf")), ("aref", y.name, at, j), ("aref", x.name, i, j))]))
        x, y = self.tensor(dtype, [m, d]), self.tensor(dtype, [n, d], "inout")
        return self.wrapped(heads, self.under(tests, [(self.pick(("setf", "incf")), ("aref", y.name, i, j), ("aref", x.name, at, j))]))


    def few_elements(self, dtype: str) -> list[Form]:
        """A target that is small beside the iterations, which threads share in parts with copies of it."""
        self.mark("scatter to few elements")
        n, d, m = self.dim(33), self.dim(33), self.dim(3, least=1)
        index, x, y = self.tensor(self.pick(("i32", "i64", "u8")), [n, d], below=m), self.tensor(dtype, [n, d]), self.tensor(dtype, [m], "inout")
        i, j = self.fresh("i"), self.fresh("j")
        at: Form = ("mod", self.cast("i64", ("aref", index.name, i, j)), m)
        value: Form = ("aref", x.name, i, j) if self.chance(0.7) else "1"
        step: list[Form] = [(self.pick(("incf", "decf", "maxcf", "mincf")), ("aref", y.name, at), value)]
        return self.wrapped(self.shuffled([(i, n), (j, d)]), self.under([self.data_test(("aref", x.name, i, j), dtype)], step) if self.chance(0.2) else step)


class Packed(Family):
    """Elements of four bits, read with a scale and written by conversions."""

    def body(self) -> list[Form]:
        small = self.pick(("i4", "u4"))
        wide = self.pick(("f32", "f32", "i8", "i32", "f16"))
        m, n = self.dim(17), self.dim(33)
        i, j = self.fresh("i"), self.fresh("j")
        kind = self.pick(("product", "unpack", "pack", "copy", "max"))
        self.mark(f"packed {kind}")
        if kind == "pack":
            x, y = self.tensor(wide, [m, n]), self.tensor(small, [m, n], "out")
            return self.wrapped(self.shuffled([(i, m), (j, n)]), [("setf", ("aref", y.name, i, j), self.cast(small, ("aref", x.name, i, j)))])
        w = self.tensor(small, [m, n])
        read: Form = self.cast(wide, ("aref", w.name, i, j))
        if kind == "copy":
            y = self.tensor(small, [m, n], "out")
            return self.wrapped(self.shuffled([(i, m), (j, n)]), [("setf", ("aref", y.name, i, j), ("aref", w.name, i, j if self.chance(0.5) else ("-", n, "1", j)))])
        if kind == "unpack":
            y = self.tensor(wide, [m, n], "inout")
            return self.wrapped(self.shuffled([(i, m), (j, n)]), [(self.pick(("setf", "incf")), ("aref", y.name, i, j), read)])
        if kind == "max":
            y = self.tensor(wide, [n], "inout")
            return self.wrapped(self.shuffled([(i, m), (j, n)]), [("maxcf", ("aref", y.name, j), read)])
        x, s, y = self.tensor(wide, [n]), self.tensor(wide, [m]), self.tensor(wide, [m], "inout")
        return self.wrapped(self.shuffled([(i, m), (j, n)]), [("incf", ("aref", y.name, i), ("*", ("aref", s.name, i), ("*", read, ("aref", x.name, j))))])


class Complex(Family):
    """Complex numbers, element by element and in sums."""

    def body(self) -> list[Form]:
        dtype = self.pick(("c64", "c128"))
        part = {"c64": "f32", "c128": "f64"}[dtype]
        dims = [self.dim(17) for _ in range(self.pick((0, 1, 2, 3)))]
        names = [self.fresh("i") for _ in dims]
        a, b = self.tensor(dtype, dims), self.tensor(dtype, dims)
        x, y = self.at(a, *names), self.at(b, *names)
        kind = self.pick(("map", "map", "parts", "sum", "choice"))
        self.mark(f"complex {kind}")
        heads = self.shuffled(list(zip(names, dims, strict=True)))
        if kind == "parts":
            c = self.tensor(part, dims, "out")
            return self.wrapped(heads, [("setf", self.at(c, *names), self.pick((("real", ("*", x, y)), ("imag", x), ("abs", x), ("+", ("real", x), ("imag", y)))))])
        if kind == "sum":
            c = self.tensor(dtype, [], "inout")
            return self.wrapped(heads, [("incf", c.name, ("*", x, ("conj", y)) if self.chance(0.5) else x)])
        c = self.tensor(dtype, dims, "inout")
        value = self.pick((("+", x, y), ("*", x, y), ("-", x, ("*", "2", y)), ("conj", x), ("-", x), ("+", ("*", x, y), x)))
        if kind == "choice":
            value = ("where", self.pick((("=", x, y), ("/=", x, y), ("isnan", x), ("<", ("real", x), ("imag", y)))), value, y)
        return self.wrapped(heads, [(self.pick(("setf", "setf", "incf")), self.at(c, *names), value)])


class Chain(Family):
    """Maps and reductions one after the other, through local arrays and outputs, which may be fused; some in a composite that is called."""

    def body(self) -> list[Form]:
        dtype = self.pick(("f32", "f32", "f32", "f64", "f16", "i32", "i64", "u8"))
        dims = [self.dim(17) for _ in range(self.pick((1, 1, 2, 2, 3)))]
        self.dims, self.dtype = dims, dtype
        self.calls = self.chance(0.5)
        self.permuted = not self.calls                       # arguments of a call have the axis order of its parameters
        values = [self.tensor(dtype, dims) for _ in range(self.pick((1, 1, 2)))]
        made: list[Form] = []
        for n in range(last := self.pick((1, 2, 2, 3, 4))):
            if n < last - 1 and self.chance(0.6):
                self.mark("local array")
                t = Tensor(self.fresh("loc"), dtype, tuple(dims), tuple(range(len(dims))))
                made.append(("array", t.name, self.word(), tuple(dims)))
            else:
                t = self.tensor(dtype, dims, self.pick(("out", "out", "inout")))
            if self.calls and self.chance(0.6):
                made.append(self.call(values, t))
            else:
                made += self.step(values, t)
            values.append(t)
        if self.chance(0.3):
            y = self.tensor(dtype, dims[:1], "inout")
            names = [self.fresh("i") for _ in dims]
            made += self.wrapped(self.shuffled(list(zip(names, dims, strict=True))), [(self.pick(("incf", "maxcf")), ("aref", y.name, names[0]), ("aref", values[-1].name, *names))])
        if not self.outputs:
            raise AssertionError("a chain ends with an output")
        return made

    def word(self) -> str:
        return ALL_WORDS[self.dtype]

    def step(self, values: list[Tensor], target: Tensor) -> list[Form]:
        names = [self.fresh("i") for _ in self.dims]
        heads = self.shuffled(list(zip(names, self.dims, strict=True)))
        place = ("aref", target.name, *names)

        def read() -> Form:
            index = [("-", d, "1", n) if self.chance(0.1) else n for n, d in zip(names, self.dims, strict=True)]
            return ("aref", self.pick(values).name, *index)
        kind = self.pick(("map", "map", "map", "row sum", "two", "neighbour"))
        self.mark(f"chain {kind}")
        if kind == "row sum":
            p = self.fresh("p")
            inner = [("aref", self.pick(values).name, *names[:-1], p)]
            return self.wrapped(heads, [("setf", place, "0"), ("dotimes", (p, self.dims[-1]), self.accumulated(place, self.pick(("+", "max")), inner[0]))])
        if kind == "neighbour":
            return self.wrapped(heads, [("setf", place, ("where", (">", names[0], "0"), ("aref", self.pick(values).name, ("-", names[0], "1"), *names[1:]), read()))])
        value = self.mapped(read(), read())
        if kind == "two":
            return self.wrapped(heads, [("setf", place, value), *self.under([self.data_test(read(), self.dtype)], [("incf", place, read())])])
        return self.wrapped(heads, [("setf", place, value)])

    def mapped(self, a: Form, b: Form) -> Form:
        if self.dtype in INTS:
            return self.pick((("+", a, b), ("*", a, b), ("max", a, "3"), ("floordiv", a, "3"), ("logxor", a, b), ("shr", a, "1"), ("-", a, b)))
        return self.pick((("+", a, b), ("*", a, b), ("exp", a), ("max", "0", a), ("-", a, b), ("sigmoid", a), ("*", a, "0.5"), ("where", (">", a, b), a, ("*", b, "2"))))

    def call(self, values: list[Tensor], target: Tensor) -> Form:
        """A call of a composite with axes, names and loops of its own."""
        self.mark("call")
        name = f"Callee{self.seed}x{len(self.callees)}"
        sizes = [f"D{n}" for n in range(len(self.dims))]
        word = ALL_WORDS[self.dtype]
        loops = [(f"i{n}", s) for n, s in enumerate(sizes)]
        names = [n for n, _ in loops]
        x, y = ("aref", "x", *names), ("aref", "y", *names)
        body = self.wrapped(self.shuffled(loops), [("setf", y, self.mapped(x, x))])
        if self.chance(0.3):
            body += self.wrapped(loops, [("incf", y, x)])
        self.callees.append(f'[[composite]]\nname = "{name}"\ninputs = ["x{{{word}}}[{" ".join(sizes)}]"]\noutputs = ["y{{{word}}}[{" ".join(sizes)}]"]\n'
                            f'[composite.implementation]\ncode = """\n' + "\n".join(shown(f) for f in body) + '\n"""\n\n')
        return ("call", name, self.pick(values).name, target.name)


class Choice(Family):
    """Conditions of every kind around several statements: on data, indices, sizes and scalars; in maps, sums and counts."""

    def body(self) -> list[Form]:
        dtype = self.number()
        dims = [self.dim(33) for _ in range(self.pick((1, 2, 2, 3)))]
        names = [self.fresh("i") for _ in dims]
        a = self.tensor(dtype, dims)
        flags = self.tensor("bool", dims)
        limit = self.tensor(dtype, [])
        y = self.tensor(dtype, dims, "inout")
        count = self.tensor(self.pick(("i32", "i64")), dims[:1], "inout")
        read, place = ("aref", a.name, *names), ("aref", y.name, *names)
        tests: list[Form] = []
        for _ in range(self.pick((1, 1, 2, 3))):
            tests.append(self.pick((("aref", flags.name, *names), (">", read, limit.name), ("<", place, read), ("<", names[0], names[-1]), (">", names[-1], "1"),
                                    ("=", ("mod", names[0], "3"), "1"), ("not", ("aref", flags.name, *names)), ("or", ("aref", flags.name, *names), ("<", read, "2")),
                                    ("xor", ("aref", flags.name, *names), ("<", names[0], "2")), (">=", ("+", names[0], names[-1]), dims[0]))))
        self.mark("condition on data")
        kind = self.pick(("map", "count", "both", "if else", "cond"))
        self.mark(f"choice {kind}")
        heads = self.shuffled(list(zip(names, dims, strict=True)))
        one: Form = ("and", *tests) if len(tests) > 1 else tests[0]
        counted = ("incf", ("aref", count.name, names[0]), "1")
        if kind == "map":
            self.drop(count)
            return self.wrapped(heads, self.under(tests, [("setf", place, self.pick((read, limit.name, ("+", place, read))))]))
        if kind == "count":
            self.drop(y)
            tests = [t for t in tests if y.name not in str(t)] or [("aref", flags.name, *names)]
            return self.wrapped(heads, self.under(tests, [counted]))
        if kind == "both":
            return self.wrapped(heads, self.under(tests, [("setf", place, read), counted]))
        self.drop(count)
        if kind == "if else":
            return self.wrapped(heads, [("if", one, ("setf", place, read), ("incf", place, self.pick((read, "1"))))])
        return self.wrapped(heads, [("cond", (one, ("setf", place, read)), (("aref", flags.name, *names), ("maxcf", place, read)), ("t", ("setf", place, limit.name)))])

    def drop(self, t: Tensor) -> None:
        self.outputs = [o for o in self.outputs if o is not t]
        self.inputs = [o for o in self.inputs if o is not t]
