"""Families of specs whose reads slide: convolutions, pooling, stencils."""
from __future__ import annotations

from spec_forms import Tensor
from written_specs import Family, Form, Head


class Convolution(Family):
    """In one to three dimensions, with constant or symbolic windows, padding, strides, dilation, groups, batch; in any loop order."""

    def body(self) -> list[Form]:
        rank = self.pick((1, 1, 1, 2, 2, 3))
        self.mark(f"convolution {rank}-D")
        groups = self.dim(3) if self.chance(0.2) else ""
        batch = self.dim(3) if self.chance(0.4) else ""
        filters, channels = self.dim(17), self.dim(8 if rank == 1 else 3)
        axes = [self.axis() for _ in range(rank)]
        if self.chance(0.3):
            self.mark("a window used twice")
            axes = [(x, axes[0][1], *rest) for x, _, *rest in axes] if rank > 1 else axes
        dtype = self.pick(("f32", "f32", "f32", "f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64", "c64"))
        result = self.pick(("i32", "i64")) if dtype in ("i8", "u8") and self.chance(0.7) else "f32" if dtype == "f16" and self.chance(0.3) else dtype
        names = [self.fresh(s) for s in "bgfc"]
        b, g, f, c = names
        out = [self.fresh(s) for s in ("x", "y", "z")[:rank]]
        win = [self.fresh(s) for s in ("u", "v", "w")[:rank]]
        lead = [(b, batch)] * bool(batch) + [(g, groups)] * bool(groups)
        extents = [self.input_extent(*axis) for axis in axes]
        data = self.tensor(dtype, [*[d for _, d in lead], channels, *extents])
        weights = self.tensor(dtype, [*([groups] if groups else []), filters, channels, *[r for _, r, *_ in axes]])
        if self.chance(0.2):
            self.inputs.reverse()
        role = self.pick(("inout", "inout", "out"))
        target = self.tensor(result, [*[d for _, d in lead], filters, *[o for o, *_ in axes]], role)
        places, tests, bound = [], [], []
        for (_, _, stride, dilation, pad, padded), x, u, extent in zip(axes, out, win, extents, strict=True):
            e = self.place(x, u, *([self.given(n) for n in (stride, dilation, pad)] if padded and self.chance(0.1) else (stride, dilation, pad)))
            if padded and self.chance(0.25):
                h = self.fresh("h")
                bound.append((h, e))
                e = h
            places.append(e)
            tests += self.inside(e, extent) if padded else []
        if self.chance(0.3):
            self.rng.shuffle(tests)
        read: Form = ("aref", data.name, *[n for n, _ in lead], c, *places)
        weight: Form = ("aref", weights.name, *([g] if groups else []), f, c, *win)
        if result != dtype:
            read, weight = self.cast(result, read), self.cast(result, weight)
        product: Form = ("*", read, weight) if self.chance(0.6) else ("*", weight, read)
        if tests and self.chance(0.15):
            self.mark("padding by a value")
            product = ("where", ("and", *tests), product, "0") if self.chance(0.5) else ("*", ("if", ("and", *tests), read, "0"), weight)
            tests = []
        spatial: list[Head] = [*lead, (f, filters), *[(x, a[0]) for x, a in zip(out, axes, strict=True)]]
        sums: list[Head] = [(c, channels), *[(u, a[1]) for u, a in zip(win, axes, strict=True)]]
        place = self.at(target, *[n for n, _ in lead], f, *out)
        return self.nest(spatial, sums, place, product, tests, bound, role)

    def axis(self) -> tuple[str, str, int, int, int, bool]:
        """Output and window extents, stride, dilation, padding, and whether places are tested."""
        out = self.dim(17)
        window = self.size(7) if self.chance(0.55) else str(self.pick((1, 2, 3, 3, 5)))
        self.mark("symbolic window" if window in self.sizes else "constant window")
        if window not in self.sizes:
            self.cost *= int(window)
        stride, dilation = self.pick((1, 1, 1, 2, 3)), self.pick((1, 1, 1, 2, 3))
        padded = self.chance(0.75)
        pad = self.pick((0, 1, 1, 2, 3)) if padded else 0
        for what, value in (("stride", stride), ("dilation", dilation)):
            if value > 1:
                self.mark(f"convolution {what}")
        self.mark("padded" if padded else "unpadded")
        return out, window, stride, dilation, pad, padded

    def input_extent(self, out: str, window: str, stride: int, dilation: int, pad: int, padded: bool) -> str:
        if padded:
            if self.chance(0.3) or self.extent(out) == 0:
                name = self.fresh("H")
                self.sizes[name] = self.pick((1, 2, 3, 5, 7, 8, 16, 17))
                return name
            name = self.fresh("W")
            self.sizes[name] = max(1, stride * self.extent(out) + dilation * (self.extent(window) - 1) - 2 * pad + self.pick((-2, -1, 0, 0, 1)))
            return name
        self.mark("extent written as a sum")
        return f"(+ {self.product(stride, out)} {self.product(dilation, window)})"

    def product(self, n: int, dim: str) -> str:
        return dim if n == 1 and self.chance(0.7) else f"(* {n} {dim})"

    def given(self, value: int) -> str:
        """An argument of this value."""
        self.mark("stride and padding as arguments")
        name = self.fresh("by")
        self.scalars[name] = value
        self.inputs.append(Tensor(name, "i64", (), ()))
        return name

    def place(self, x: str, u: str, stride: int | str, dilation: int | str, pad: int | str) -> Form:
        """stride · x + dilation · u - pad in some spelling."""
        a, b = self.times(x, stride), self.times(u, dilation)
        if pad == 0 and self.chance(0.8):
            return self.added(a, b)
        kind = self.rng.randrange(4)
        if kind == 0:
            return ("+", ("-", a, str(pad)), b)
        if kind == 1:
            return ("+", a, ("-", b, str(pad)))
        return ("-", self.added(a, b), str(pad)) if kind == 2 else ("+", a, b, str(-pad) if isinstance(pad, int) else ("-", pad))

    def nest(self, spatial: list[Head], sums: list[Head], place: Form, product: Form, tests: list[Form], bound: list[tuple[str, Form]], role: str) -> list[Form]:
        """The sum in place or in a local, started inside the loops or before them."""
        local = self.chance(0.35)
        target: Form = self.fresh("acc") if local else place
        step = self.accumulated(target, self.pick(("+", "+", "+", "+", "-")), product)
        inner = self.under(tests, [step])
        if bound:
            self.mark("let around a condition")
            inner = [("let*", tuple(bound), *inner)] if self.chance(0.5) else [*[("set", n, e) for n, e in bound], *inner]
        sums = self.shuffled(sums)
        if local:
            self.mark("sum in a local")
            start: Form = place if role == "inout" and self.chance(0.3) else self.zero(place)
            last = ("setf", place, target) if role == "out" or self.chance(0.7) else ("incf", place, target)
            return self.wrapped(self.shuffled(spatial), [("set", target, start), *self.wrapped(sums, inner), last])
        if role == "inout" and self.chance(0.6):
            heads = [*spatial, *sums]
            if self.chance(0.4):
                self.rng.shuffle(heads)
                self.mark("mixed loop order")
            return self.wrapped([self.reversed_maybe(h) if self.chance(0.2) else h for h in heads], inner)
        zero = ("setf", place, "0")
        if self.chance(0.5):
            return self.wrapped(self.shuffled(spatial), [zero, *self.wrapped(sums, inner)])
        self.mark("start in a nest of its own")
        heads = [*spatial, *sums]
        if self.chance(0.4):
            self.rng.shuffle(heads)
        return [*self.wrapped(self.shuffled(spatial), [zero]), *self.wrapped(heads, inner)]

    def zero(self, place: Form) -> Form:
        name = place[1] if isinstance(place, tuple) else place
        target = next(t for t in self.outputs if t.name == name)
        return self.cast(target.dtype, "0")


class Pooling(Family):
    """The greatest, least or sum of windows, dilated and strided, of arrays whose extents are sums."""

    def body(self) -> list[Form]:
        rank = self.pick((1, 2, 2, 2, 3))
        batch = self.dim(5) if self.chance(0.5) else ""
        fn = self.pick(("max", "max", "min", "+"))
        self.mark(f"pooling {fn}")
        dtype = self.number()
        result = self.pick((dtype, dtype, "i32" if dtype in ("i8", "u8", "i16") else dtype))
        heads: list[Head] = []
        sums: list[Head] = []
        dims, places, outs = [], [], []
        for _ in range(rank):
            out, window = self.dim(17), self.pick((1, 2, 3, 3, 4, 5)) if self.chance(0.7) else self.size(5)
            stride, dilation, slack = self.pick((1, 1, 2, 3)), self.pick((1, 1, 2, 3)), self.pick((0, 0, 0, 1))
            x, u = self.fresh("x"), self.fresh("u")
            sums.append((u, str(window)))
            heads.append((x, out))
            outs.append(out)
            self.cost *= window if isinstance(window, int) else 1
            self.mark("extent written as a sum")
            last = f"(* {dilation} {window})" if self.chance(0.7) or isinstance(window, str) else str(dilation * window)
            first = f"(* {stride} {out})" if stride > 1 or self.chance(0.5) else out
            dims.append(f"(+ {first} {last})" + "" if not slack else f"(+ {first} {last} {slack})")
            places.append(self.added(self.times(x, stride), self.times(u, dilation)))
            if self.extent(out) > 0 and dilation > 1:
                self.mark("dilated window")
        lead: list[Head] = [(self.fresh("b"), batch)] if batch else []
        data = self.tensor(dtype, [*[d for _, d in lead], *dims])
        role = self.pick(("inout", "out", "out"))
        target = self.tensor(result, [*[d for _, d in lead], *outs], role)
        read: Form = ("aref", data.name, *[n for n, _ in lead], *places)
        if result != dtype:
            read = self.cast(result, read)
        place = self.at(target, *[n for n, _ in lead], *[n for n, _ in heads])
        start = {"max": ("-", "inf"), "min": "inf", "+": "0"}[fn] if result[0] in "fb" and result != "bool" else self.pick(("0", "100"))
        if role == "inout" and self.chance(0.6):
            return self.wrapped(self.shuffled([*lead, *heads, *sums]), [self.accumulated(place, fn, read)])
        if self.chance(0.5):
            acc = self.fresh("m")
            return self.wrapped(self.shuffled([*lead, *heads]), [("set", acc, self.cast(result, start)), *self.wrapped(self.shuffled(sums), [self.accumulated(acc, fn, read)]),
                                                                 ("setf", place, acc)])
        if fn == "max" and self.chance(0.3):
            step: Form = ("when", (">", read, place), ("setf", place, read))
        else:
            step = self.accumulated(place, fn, read)
        return self.wrapped(self.shuffled([*lead, *heads]), [("setf", place, start), *self.wrapped(self.shuffled(sums), [step])])


class Stencil(Family):
    """Neighbours of every element, in one to three dimensions, at the edges by loops or by conditions; in place too, and several times."""

    def body(self) -> list[Form]:
        rank = self.pick((1, 2, 2, 3))
        in_place = self.chance(0.35)
        self.mark("stencil in place" if in_place else "stencil")
        dtype = self.number()
        dims = [self.dim(33 if rank < 3 else 8) for _ in range(rank)]
        if in_place:
            target = source = self.tensor(dtype, dims, "inout")
        else:
            source = self.tensor(dtype, dims)
            target = self.tensor(dtype, dims, "inout")
        reach = self.pick((1, 1, 2))
        names = [self.fresh(s) for s in ("i", "j", "k")[:rank]]
        values = []
        for _ in range(self.pick((2, 3, 4, 5))):
            offset = [self.rng.randrange(-reach, reach + 1) if self.chance(0.6) else 0 for _ in range(rank)]
            values.append(("aref", source.name, *[self.shifted(n, o) for n, o in zip(names, offset, strict=True)]))
        total = self.combined(values, dtype)
        at = ("aref", target.name, *names)
        by_loops = self.chance(0.5)
        heads: list[Head]
        if by_loops:
            heads = [(n, ("from", str(reach), ("-", d, str(reach)))) for n, d in zip(names, dims, strict=True)]
            if self.chance(0.25):
                self.mark("negative step")
                heads = [(n, ("from", ("-", d, str(reach + 1)), str(reach - 1), "-1")) if self.chance(0.5) else h for (n, h_), d, h in
                         zip(heads, dims, heads, strict=True)]
            inner = [("setf", at, total)] if self.chance(0.6) else [self.accumulated(at, "+", total)]
        else:
            heads = list(zip(names, dims, strict=True))
            tests: list[Form] = []
            for n, d in zip(names, dims, strict=True):
                tests += self.pick(([(">=", n, str(reach)), ("<", n, ("-", d, str(reach)))], [("<=", str(reach), n), ("<", ("+", n, str(reach)), d)],
                                    [("<", str(reach - 1), n), (">", ("-", d, str(reach)), n)]))
            if self.chance(0.3):
                inner = [("setf", at, ("where", ("and", *tests), total, self.pick(("0", at))))]
            else:
                inner = self.under(tests, [("setf", at, total)])
        made = self.wrapped(self.shuffled(heads), inner)
        if self.chance(0.2):
            self.mark("sweeps")
            made = [("dotimes", (self.fresh("t"), self.pick(("2", "3"))), *made)]
        return made

    def shifted(self, name: str, by: int) -> Form:
        if by == 0:
            return name
        return ("+", name, str(by)) if by > 0 or self.chance(0.2) else ("-", name, str(-by))

    def combined(self, values: list[Form], dtype: str) -> Form:
        if dtype[0] in "iu":
            return self.pick((("+", *values), ("max", *values), ("-", values[0], values[1]), ("logxor", values[0], values[-1])))
        return self.pick((("*", "0.25", ("+", *values)), ("+", *values), ("max", *values), ("-", ("*", "2", values[0]), values[1]), ("fma", values[0], "0.5", values[1])))
