"""Families of specs that take a row at a time: softmax, norms, the place of the greatest, sums of everything."""
from __future__ import annotations

from written_specs import Family, Form, Head


class Softmax(Family):
    """In one pass or several, masked by an array, a triangle or a window, with -inf for what is left out."""

    def body(self) -> list[Form]:
        dtype = self.pick(("f32", "f32", "f32", "f64", "f16", "bf16"))
        batch: list[str] = [self.dim(5)] if self.chance(0.3) else []
        m, n = self.dim(8), self.dim(33)
        i, j = self.fresh("i"), self.fresh("j")
        lead: list[Head] = [(self.fresh("b"), d) for d in batch]
        outer = [b for b, _ in lead]
        x = self.tensor(dtype, [*batch, m, n])
        value: Form = ("aref", x.name, *outer, i, j)
        masked = self.pick(("", "array", "causal", "window"))
        if masked:
            self.mark(f"softmax masked by {masked}")
            if masked == "array":
                mask = self.tensor("bool", [m, n])
                test: Form = ("aref", mask.name, i, j)
            else:
                test = ("<=", j, i) if masked == "causal" else ("and", ("<=", ("-", i, "2"), j), ("<=", j, ("+", i, "2")))
            value = ("if", test, value, ("-", "inf"))
        low = self.cast(dtype, ("-", "inf"))
        top, s = self.fresh("top"), self.fresh("s")
        kind = self.pick(("online", "passes", "logsumexp", "stored", "online setf"))
        self.mark(f"softmax {kind}")
        if kind in ("online", "logsumexp", "online setf"):
            new = self.fresh("new")
            word = "setf" if kind == "online setf" else "set"
            step = ("let", ((new, ("max", top, value)),), (word, s, ("+", ("*", s, ("exp", ("-", top, new))), ("exp", ("-", value, new)))), (word, top, new))
            first = [("set", top, low), ("set", s, self.cast(dtype, "0")), ("dotimes", (j, n), step)]
            if kind == "logsumexp":
                y = self.tensor(dtype, [*batch, m], "out")
                return self.wrapped([*lead, (i, m)], [*first, ("setf", ("aref", y.name, *outer, i), ("+", top, ("log", s)))])
            y = self.tensor(dtype, [*batch, m, n], "out")
            return self.wrapped([*lead, (i, m)], [*first, ("dotimes", (j, n), ("setf", ("aref", y.name, *outer, i, j), ("/", ("exp", ("-", value, top)), s)))])
        y = self.tensor(dtype, [*batch, m, n], "out")
        at = ("aref", y.name, *outer, i, j)
        scan = ("dotimes", (j, n), self.accumulated(top, "max", value))
        if kind == "stored":
            return self.wrapped([*lead, (i, m)], [
                ("dotimes", (j, n), ("setf", at, value)), ("set", top, low), ("dotimes", (j, n), self.accumulated(top, "max", at)), ("set", s, self.cast(dtype, "0")),
                ("dotimes", (j, n), ("setf", at, ("exp", ("-", at, top))), self.accumulated(s, "+", at)), ("dotimes", (j, n), ("divcf", at, s))])
        e = self.fresh("e")
        return self.wrapped([*lead, (i, m)], [
            ("set", top, low), scan, ("set", s, self.cast(dtype, "0")),
            ("dotimes", (j, n), ("let", ((e, ("exp", ("-", value, top))),), ("setf", at, e), self.accumulated(s, "+", e))),
            ("dotimes", (j, n), self.pick((("divcf", at, s), ("setf", at, ("/", at, s)), ("mulcf", at, ("/", "1", s)))))])


class Extreme(Family):
    """argmax and argmin: the first or last of the greatest or least, from a start or from the first element, along any axis,
    of all elements or some; a NaN is left out, or is greater than all numbers (NumPy's rule)."""

    def body(self) -> list[Form]:
        dtype = self.number()
        rank = self.pick((1, 1, 2, 2, 3))
        dims = [self.dim(33) for _ in range(rank)]
        along = self.rng.randrange(rank)
        names = [self.fresh(s) for s in ("i", "j", "k")[:rank]]
        n, length = names[along], dims[along]
        first = self.chance(0.3)
        where = f"{length} > 0" if first and not length.isdigit() else ""
        if first and self.extent(length) == 0:
            self.sizes[length] = 1
        x = self.tensor(dtype, dims, where=where)
        result = self.pick(("i64", "i32", "u8", "f32"))
        rest = [d for a, d in enumerate(dims) if a != along]
        outer: list[Head] = [(names[a], dims[a]) for a in range(rank) if a != along]
        y = self.tensor(result, rest, "out")
        self.mark("argmax" if (greatest := self.chance(0.5)) else "argmin")
        test = self.pick((">", ">", ">=")) if greatest else self.pick(("<", "<", "<="))
        best, at = self.fresh("best"), self.fresh("at")
        read: Form = ("aref", x.name, *names)
        place = self.at(y, *[v for v, _ in outer])
        starts: Form = ("aref", x.name, *["0" if a == along else v for a, v in enumerate(names)]) if first else \
            self.cast(dtype, (("-", "inf") if greatest else "inf") if dtype in ("f32", "f64", "f16", "bf16") else self.pick(("0", "100")))
        head: Head = (n, ("from", "1", length)) if first and self.chance(0.7) else (n, length)
        v = self.fresh("v")
        numpy_rule = dtype in ("f32", "f64", "f16", "bf16") and self.chance(0.3)
        if numpy_rule:
            self.mark("extreme by NumPy's rule of NaN")
            opposite = "<=" if greatest else ">="
            rule = self.pick(("not or", "or"))
        some = self.tensor(dtype, [length]) if self.chance(0.2) else None

        def taken(x: Form) -> Form:
            test_of_x: Form = (test, x, best)
            if numpy_rule:
                test_of_x = ("not", ("or", ("isnan", best), (opposite, x, best))) if rule == "not or" else \
                    ("and", ("not", ("isnan", best)), ("or", ("isnan", x), (test[0], x, best)))
            return ("and", ("<", ("aref", some.name, n), "1"), test_of_x) if some is not None else test_of_x
        word = self.pick(("set", "setf"))
        update = [(word, best, v), (word, at, n)]
        if self.chance(0.2):
            update.reverse()
        if self.chance(0.5):
            step: list[Form] = [("let", ((v, read),), ("when", taken(v), *update))]
        else:
            step = [("when", taken(read), *[(w, p, read if e == v else e) for w, p, e in update])]
        zero: Form = "0" if self.chance(0.6) else self.cast("i64", "0")
        last = ("setf", place, self.cast(result, at))
        extra: list[Form] = []
        if self.chance(0.3):
            z = self.tensor(dtype, rest, "out")
            extra = [("setf", self.at(z, *[v for v, _ in outer]), best)]
        return self.wrapped(self.shuffled(outer), [("set", best, starts), ("set", at, zero), *self.wrapped([head], step), last, *extra])


class Norm(Family):
    """Means, variances and norms of rows or columns, by one pass or two, and what is made of them."""

    def body(self) -> list[Form]:
        dtype = self.pick(("f32", "f32", "f64", "f16", "bf16"))
        m, n = self.dim(17), self.dim(33)
        i, j, s, q = (self.fresh(x) for x in "ijsq")
        rows = self.chance(0.6)
        x = self.tensor(dtype, [m, n] if rows else [n, m])
        g = self.tensor(dtype, [n])
        eps = self.tensor(dtype, [])
        y = self.tensor(dtype, [m, n] if rows else [n, m], "out")
        at = ("aref", y.name, *((i, j) if rows else (j, i)))
        read = ("aref", x.name, *((i, j) if rows else (j, i)))
        zero = self.cast(dtype, "0")
        kind = self.pick(("layer", "rms", "one pass", "max", "l1"))
        self.mark(f"norm {kind}")
        self.mark("rows" if rows else "columns")
        count = self.cast(dtype, n)
        if kind == "layer":
            steps: list[Form] = [("set", s, zero), ("dotimes", (j, n), ("incf", s, read)), ("set", "mean", ("/", s, count)), ("set", q, zero),
                                 ("dotimes", (j, n), ("let", (("d", ("-", read, "mean")),), ("incf", q, ("*", "d", "d")))),
                                 ("dotimes", (j, n), ("setf", at, ("*", ("aref", g.name, j), ("/", ("-", read, "mean"), ("sqrt", ("+", ("/", q, count), ("abs", eps.name)))))))]
        elif kind == "rms":
            steps = [("set", q, zero), ("dotimes", (j, n), ("incf", q, ("*", read, read))),
                     ("set", s, ("rsqrt", ("+", ("/", q, count), ("abs", eps.name)))), ("dotimes", (j, n), ("setf", at, ("*", read, s, ("aref", g.name, j))))]
        elif kind == "one pass":
            steps = [("set", s, zero), ("set", q, zero), ("dotimes", (j, n), ("incf", s, read), ("incf", q, ("*", read, read))),
                     ("dotimes", (j, n), ("setf", at, ("+", ("*", read, s), q, eps.name)))]
        elif kind == "max":
            steps = [("set", s, zero), ("dotimes", (j, n), ("maxcf", s, ("abs", read))), ("dotimes", (j, n), ("setf", at, ("/", read, ("+", s, ("abs", eps.name)))))]
        else:
            steps = [("set", s, zero), ("dotimes", (j, n), self.accumulated(s, "+", ("abs", read))), ("dotimes", (j, n), ("setf", at, ("/", read, s)))]
        return [("dotimes", (i, m), *steps)]


class Total(Family):
    """Reductions of everything to rank 0, in any loop order, under conditions on indices and on data."""

    def body(self) -> list[Form]:
        dtype = self.number()
        rank = self.pick((1, 2, 2, 3, 4, 5, 6))
        dims = [self.dim(33) for _ in range(rank)]
        names = [self.fresh(s) for s in "ijklmn"[:rank]]
        x = self.tensor(dtype, dims)
        role = self.pick(("inout", "out"))
        y = self.tensor(dtype, [], role)
        fn = self.pick(("+", "+", "max", "min", "*", "-"))
        self.mark(f"total {fn}")
        read: Form = ("aref", x.name, *names)
        value = self.pick((read, read, ("*", read, read), ("abs", read), self.cast(dtype, self.pick(names))))
        tests: list[Form] = []
        if self.chance(0.35):
            tests.append(self.data_test(read, dtype))
        if self.chance(0.3):
            tests.append((self.pick(("<", "/=", ">=", "=")), self.pick(names), self.pick(("1", "2", *dims, ("-", dims[0], "2")))))
        heads = [self.reversed_maybe(h) for h in zip(names, dims, strict=True)]
        heads = self.shuffled(heads)
        start: list[Form] = [] if role == "inout" else [("setf", y.name, self.pick(("0", "1")))]
        if self.chance(0.4):
            acc = self.fresh("acc")
            inner = self.under(tests, [self.accumulated(acc, fn, value)])
            return [*start, ("set", acc, self.cast(dtype, "1" if fn == "*" else "0")), *self.wrapped(heads, inner), ("setf", y.name, (self.pick(("+", "max")), y.name, acc))]
        return [*start, *self.wrapped(heads, self.under(tests, [self.accumulated(y.name, fn, value)]))]
