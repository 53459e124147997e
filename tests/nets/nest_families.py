"""Families of specs whose iterations depend on each other, or run over less than a box: in-place nests, scans, triangles."""
from __future__ import annotations

from spec_forms import writes
from written_specs import Family, Form, Head, Tensor


class InPlace(Family):
    """One to three nests in a row over the same two arrays, which read and write them at shifted and reversed places."""

    def body(self) -> list[Form]:
        dtype = self.pick(("i8", "i8", "i32", "i64", "u8", "f32", "f64", "f16", "i16"))
        rank = self.pick((1, 2, 2))
        size = self.size(17 if rank == 2 else 33)
        self.rank, self.dtype = rank, dtype
        self.cost = self.cost ** 2
        self.arrays = [self.tensor(dtype, [f"(+ {size} 8)"] * rank, "inout") for _ in range(self.pick((1, 2, 2)))]
        made: list[Form] = []
        for _ in range(self.pick((1, 2, 2, 3))):
            made += self.nest_of(size)
        if self.chance(0.15):
            made.append(("incf", ("aref", self.arrays[0].name, *["0"] * rank), "1"))
        self.outputs = [t for t in self.arrays if writes(made, t.name)]
        return made

    def nest_of(self, size: str) -> list[Form]:
        depth = self.pick((1, 2, 2)) if self.rank == 2 else self.pick((1, 1, 2))
        names = [self.fresh(s) for s in ("i", "j")[:depth]]
        heads: list[Head] = []
        for name in names:
            kind = self.pick(("whole",) * 4 + ("shorter", "from 1", "down", "by 2", "triangle"))
            bound: Form = {"whole": size, "shorter": ("-", size, "1"), "from 1": ("from", "1", size), "down": ("from", ("-", size, "1"), "-1", "-1"),
                           "by 2": ("from", "0", size, "2"), "triangle": ("+", names[0], "1") if name != names[0] else size}[kind]
            if kind in ("down", "by 2"):
                self.mark("negative step" if kind == "down" else "step 2")
            if kind == "triangle" and name != names[0]:
                self.mark("triangle")
            heads.append((name, bound))
        body = [s for _ in range(self.pick((1, 1, 1, 2, 3))) for s in self.store(names, size)]
        if depth == 2 and self.chance(0.2):
            self.mark("statements at two depths")
            return self.wrapped(heads[:1], [*self.store(names[:1], size), *self.wrapped(heads[1:], body), *(self.store(names[:1], size) if self.chance(0.5) else [])])
        return self.wrapped(heads, body)

    def index(self, names: list[str], size: str) -> Form:
        name = self.pick(names)
        kind = self.pick(("+",) * 6 + ("-", "constant", "plain"))
        if kind == "-":
            self.mark("reversed index")
            return ("-", ("+", size, str(self.rng.randrange(2, 6))), name)
        if kind == "constant":
            return str(self.rng.randrange(8))
        return name if kind == "plain" else ("+", name, str(self.rng.randrange(1, 8)))

    def element(self, names: list[str], size: str) -> Form:
        t = self.pick(self.arrays)
        index = [self.index(names, size) for _ in range(self.rank)]
        return ("aref", t.name, *index)

    def store(self, names: list[str], size: str) -> list[Form]:
        place, a, b = (self.element(names, size) for _ in range(3))
        value = self.pick((a, ("+", a, b), ("-", a, b), ("max", a, b), ("+", a, "1"), ("*", a, "2") if self.dtype[0] in "iu" else ("*", a, "0.5")))
        fn = self.pick(("incf", "incf", "decf", "mincf", "maxcf", "setf", "setf"))
        self.mark(f"in-place {fn}")
        done: list[Form] = [(fn, place, value)]
        if self.chance(0.25):
            test = self.data_test(self.element(names, size), self.dtype) if self.chance(0.6) else (self.pick(("<", ">=", "=", "/=")), names[-1], self.pick(("1", "2", names[0], ("-", size, "2"))))
            return self.under([test], done)
        return done


class Scan(Family):
    """Sums of what came before, along an axis, forwards or backwards, in place or not, by a local or from the element before."""

    def body(self) -> list[Form]:
        dtype = self.number()
        rank = self.pick((1, 1, 2, 2, 3))
        dims = [self.dim(33, least=0) for _ in range(rank)]
        along = self.rng.randrange(rank)
        names = [self.fresh(s) for s in ("i", "j", "k")[:rank]]
        n, length = names[along], dims[along]
        source = self.tensor(dtype, dims)
        separate = self.chance(0.6)
        target = self.tensor(dtype, dims, "inout") if separate else source
        if not separate:
            self.outputs.append(source)
        others: list[Head] = [(names[a], dims[a]) for a in range(rank) if a != along]
        fn = self.pick(("+", "+", "max", "min", "-"))
        back = self.chance(0.3)
        at = ("aref", target.name, *names)
        read = ("aref", source.name, *names)
        kind = self.pick(("local", "local", "neighbour", "exclusive", "linear"))
        self.mark(f"scan by {kind}")
        if back:
            self.mark("negative step")
        if kind == "neighbour":
            step = 1 if back else -1
            before = ("aref", target.name, *[("+" if back else "-", m, "1") if a == along else m for a, m in enumerate(names)])
            head: Head = (n, ("from", ("-", length, "2"), "-1", "-1")) if back else (n, ("from", "1", length))
            del step
            return self.wrapped(self.mixed([*others, head], along), [("setf", at, (fn, before, read if separate else at))])
        acc = self.fresh("s")
        start = self.cast(dtype, {"max": "0", "min": "100"}.get(fn, "0"))
        head = (n, ("from", ("-", length, "1"), "-1", "-1")) if back else (n, length)
        if kind == "exclusive" and separate:
            inner: list[Form] = [("setf", at, acc), self.accumulated(acc, fn, read)]
        elif kind == "linear" and dtype[0] in "fb":
            inner = [("set", acc, ("+", ("*", "0.5", acc), read)), ("setf", at, acc)]
        else:
            inner = [self.accumulated(acc, fn, read), ("setf", at, acc)]
        if self.chance(0.2):
            self.mark("scan under a condition")
            inner = [("when", self.data_test(read, dtype), inner[0]), *inner[1:]]
        return self.wrapped(self.shuffled(others), [("set", acc, start), *self.wrapped([head], inner)])

    def mixed(self, heads: list[Head], along: int) -> list[Head]:
        del along
        return self.shuffled(heads)


class Triangle(Family):
    """Loops whose bounds are other loops' variables: causal products, sums over half a matrix, forward substitution."""

    def body(self) -> list[Form]:
        kind = self.pick(("product", "rows", "solve", "copy", "symmetric"))
        self.mark(f"triangle {kind}")
        dtype = self.pick(("f32", "f32", "f64", "i32", "i64", "f16"))
        i, j, p = (self.fresh(s) for s in "ijp")
        n = self.size(17 if kind in ("product", "solve") else 33)
        self.cost = self.cost ** 2
        bound = self.pick((("dotimes", (j, ("+", i, "1"))), ("dotimes", (j, i)), ("loop", (j, i, n)), ("loop", (j, ("+", i, "1"), n)),
                           ("dotimes", (j, ("min", n, ("+", i, "2")))), ("loop", (j, ("max", "0", ("-", i, "2")), n)), ("loop", (j, i, "-1", "-1"))))
        by_test = self.pick((("<=", j, i), (">=", i, j), ("<", j, i), (">", j, i), ("<=", i, j), ("<=", ("+", j, "1"), i)))
        looped = self.chance(0.6)

        def inner(statements: list[Form]) -> list[Form]:
            return [(*bound, *statements)] if looped else [("dotimes", (j, n), *self.under([by_test], statements))]
        if kind == "copy":
            a, c = self.tensor(dtype, [n, n]), self.tensor(dtype, [n, n], "inout")
            return [("dotimes", (i, n), *inner([("setf", ("aref", c.name, i, j), ("aref", a.name, *self.pick(((i, j), (j, i)))))]))]
        if kind == "symmetric":
            a = self.tensor(dtype, [n, n], "inout")
            return [("dotimes", (i, n), *inner([("setf", ("aref", a.name, j, i), ("aref", a.name, i, j))]))]
        if kind == "rows":
            a, c = self.tensor(dtype, [n, n]), self.tensor(dtype, [n], "inout")
            return [("dotimes", (i, n), *inner([self.accumulated(("aref", c.name, i), self.pick(("+", "max", "min")), ("aref", a.name, i, j))]))]
        if kind == "solve":
            a, c = self.tensor(dtype, [n, n]), self.tensor(dtype, [n], "inout")
            return [("dotimes", (i, n), ("dotimes", (j, i), ("decf", ("aref", c.name, i), ("*", ("aref", a.name, i, j), ("aref", c.name, j)))))]
        m = self.dim(8)
        a, b = self.tensor(dtype, [n, n]), self.tensor(dtype, [n, m])
        c = self.tensor(dtype, [n, m], "inout")
        step = [self.accumulated(("aref", c.name, i, p), "+", ("*", ("aref", a.name, i, j), ("aref", b.name, j, p)))]
        if self.chance(0.5):
            return [("dotimes", (i, n), ("dotimes", (p, m), *inner(step)))]
        return [("dotimes", (i, n), *inner([("dotimes", (p, m), *step)]))]


class Reversal(Family):
    """Arrays turned round, shifted, rotated or swapped, in place or through a local."""

    def body(self) -> list[Form]:
        dtype = self.pick((self.number(), self.number(), "bool", "c64"))
        n = self.size(33)
        m = self.dim(8) if self.chance(0.5) else ""
        i, j, t = self.fresh("i"), self.fresh("j"), self.fresh("t")
        inner: list[Head] = [(j, m)] if m else []
        rest = [j] if m else []
        x = self.tensor(dtype, [n, *([m] if m else [])], "inout")

        def at(e: Form, of: Tensor = x) -> Form:
            return ("aref", of.name, e, *rest)
        back = ("-", n, "1", i) if self.chance(0.5) else ("-", ("-", n, "1"), i)
        kind = self.pick(("swap", "halves", "rotate", "shift", "mirror", "other"))
        self.mark(f"reversal {kind}")
        if kind == "swap":
            return self.wrapped([(i, ("floordiv", n, "2")), *inner], [("let", ((t, at(i)),), ("setf", at(i), at(back)), ("setf", at(back), t))])
        if kind == "halves":
            return self.wrapped([(i, n), *inner], [("setf", at(back), at(i))])
        if kind == "rotate":
            return self.wrapped([(i, n), *inner], [("setf", at(i), at(("mod", ("+", i, "1"), n)))])
        if kind == "shift":
            head: Head = (i, ("from", "1", n)) if self.chance(0.5) else (i, ("from", ("-", n, "1"), "0", "-1"))
            return self.wrapped([head, *inner], [("setf", at(i), at(("-", i, "1")))])
        y = self.tensor(dtype, [n, *([m] if m else [])], "out")
        if kind == "mirror":
            return self.wrapped(self.shuffled([(i, n), *inner]), [("setf", at(i, y), at(back))]) + (
                self.wrapped([(i, n), *inner], [("setf", at(i), at(back, y))]))
        return self.wrapped([(i, n), *inner], [("setf", at(back, y), at(i)), ("setf", at(i), at(back))])
