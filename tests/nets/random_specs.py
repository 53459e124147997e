"""Random specs: operators that no person would write, of every type, rank and kind of statement, as TOML with Lisp bodies."""
from __future__ import annotations

from dataclasses import replace

from random_values import Loop, Values
from spec_forms import (
    EXACT,
    EXTENTS,
    FLOATS,
    INEXACT,
    INTEGRAL,
    INTS,
    ITERATIONS,
    LITERALS,
    UPDATES,
    WORDS,
    Form,
    RandomSpec,
    Tensor,
    symbols,
    writes,
)


class Maker(Values):
    """Draws one spec."""

    # -- declarations ---------------------------------------------------------------------------------------------------------------------

    def spec(self) -> RandomSpec:
        for name in ("N", "M", "K", "L")[: self.rng.choice((0, 1, 2, 2, 3, 4))]:
            self.sizes[name] = self.pick(EXTENTS) if self.chance(0.2) else self.pick(LITERALS)           # most have an element
        main = self.pick((*FLOATS, *FLOATS, *FLOATS, *INTS, "bool"))
        pool = [main, main, self.pick(tuple(WORDS)), self.pick(("f32", "i32", "i64"))]
        for _ in range(self.rng.randrange(1, 4)):
            self.inputs.append(self.tensor("A", self.pick(pool)))
        if self.chance(0.3):
            name = self.fresh("I")
            self.inputs.append(Tensor(name, self.pick(("i32", "i64", "u8", "i16")), (self.dim(),), (0,), self.dim()))
        targets = [self.tensor("C", self.pick((main, main, *pool)), scalar=self.chance(0.08)) for _ in range(self.rng.choice((1, 1, 2)))]
        for t in targets:
            if self.chance(0.4):
                self.mark("in place")
                self.inputs.append(t)
            elif not t.dims:
                self.mark("rank-0 output")
        self.outputs = targets
        self.readable = list(self.inputs)
        used = {d for t in (*self.inputs, *self.outputs) for d in t.dims}
        self.sizes = {n: v for n, v in self.sizes.items() if n in used}
        for n, t in enumerate(self.inputs):
            if t.below and not t.below.isdigit() and t.below not in self.sizes:
                self.inputs[n] = replace(t, below="1")
        self.readable = list(self.inputs)
        body: list[Form] = []
        for target in self.outputs:
            if target not in self.inputs:
                body += self.initial(target)
                self.readable.append(target)
                self.leave(0)
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            body += self.statement()
        written = self.outputs[:]
        for t in self.outputs:
            if t in self.inputs and not writes(body, t.name):
                body += self.map(t)
                self.leave(0)
        strided = tuple(t.name for t in {t.name: t for t in (*self.inputs, *written)}.values() if len(t.dims) > 1 and self.chance(0.1))
        for t in (*self.inputs, *self.outputs):
            self.mark(f"rank {len(t.dims)}")
            self.mark(t.dtype)
            if t.order != tuple(range(len(t.dims))):
                self.mark("permuted order")
        for v in self.sizes.values():
            self.mark(f"extent {v}")
        if strided:
            self.mark("strided")
        for fn in symbols(body):
            if fn in EXACT or fn in INEXACT or fn in INTEGRAL:
                self.mark(f"({fn} …)")
        return RandomSpec(f"S{self.seed}", tuple(self.inputs), tuple(self.outputs), tuple(body), tuple(self.sizes.items()), self.seed, strided,
                          tuple(self.seen))

    def dim(self) -> str:
        return self.pick((*self.sizes, *self.sizes, str(self.pick(LITERALS)))) if self.sizes and self.chance(0.85) else str(self.pick(LITERALS))

    def tensor(self, stem: str, dtype: str, scalar: bool = False) -> Tensor:
        rank = 0 if scalar else self.rng.choice((0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 6))
        while True:
            dims = tuple(self.dim() for _ in range(rank))
            total = 1
            for d in dims:
                total *= max(1, self.extent(d))
            if total <= ITERATIONS:
                break
            rank = max(1, rank - self.chance(0.2))
        order = list(range(rank))
        if rank > 1 and self.chance(0.3):
            self.rng.shuffle(order)
        return Tensor(self.fresh(stem), dtype, dims, tuple(order))

    # -- statements -----------------------------------------------------------------------------------------------------------------------

    def initial(self, target: Tensor) -> list[Form]:
        """Sets all of a tensor that holds nothing yet: by a map, or by a reduction into it."""
        if self.chance(0.4):
            return self.reduction(target)
        return self.map(target, whole=True)

    def statement(self) -> list[Form]:
        before = len(self.locals)
        target = self.pick(self.outputs)
        made: list[Form] = self.pick((self.map, self.map, self.update, self.reduction, self.scan, self.scatter, self.scratch, self.guarded))(target)
        self.leave(before)
        return made

    def leave(self, locals_before: int) -> None:
        """The end of a top-level statement: its loops and locals are out of scope."""
        self.loops = []
        del self.locals[locals_before:]

    def loop(self, dim: str, whole: bool = False) -> tuple[Form, str]:
        """The head of a loop over an axis; its variable is in scope from now on."""
        name = self.fresh("i")
        kind = "up" if whole else self.pick(("up",) * 6 + ("down", "by 2", "window", "triangle", "ragged", "ragged"))
        counts = [(t, outer.name) for t in self.inputs if t.dtype in INTS and t not in self.outputs and len(t.dims) == 1
                  for outer in self.loops if outer.dim == t.dims[0]]
        if (kind == "triangle" and not self.loops) or (kind == "ragged" and not counts):
            kind = "down"
        self.mark({"up": "dotimes", "down": "falling loop", "by 2": "strided loop", "window": "window", "triangle": "triangular loop",
                   "ragged": "range read from an array"}[kind])
        slack = self.rng.randrange(1, 4) if kind == "window" else 0
        head: Form = {
            "up": ("dotimes", (name, dim)), "down": ("loop", (name, ("-", dim, "1"), "-1", "-1")), "by 2": ("loop", (name, str(self.rng.randrange(2)), dim, "2")),
            "window": ("dotimes", (name, ("-", dim, str(slack)))),
            "triangle": ("dotimes", (name, ("min", ("+", self.loops[-1].name if self.loops else "0", "1"), dim))),
            "ragged": ("dotimes", (name, self.clamped(counts, dim))) if kind == "ragged" else (),
        }[kind]
        self.loops.append(Loop(name, dim, slack))
        return head, name

    def clamped(self, counts: list[tuple[Tensor, str]], dim: str) -> Form:
        """An element of an integer array between 0 and an extent, in one of its spellings."""
        t, name = self.pick(counts)
        count: Form = ("cast", "int", ("aref", t.name, name))
        return self.pick((("min", dim, ("max", "0", count)), ("max", "0", ("min", count, dim)), ("min", ("max", count, "0"), dim)))

    def nest(self, target: Tensor, whole: bool = False) -> tuple[list[Form], tuple[Form, ...]]:
        """Loops over the axes of a tensor in some order: their heads, and the index."""
        axes = list(range(len(target.dims)))
        if self.chance(0.3):
            self.rng.shuffle(axes)
        heads, index = [], {}
        for axis in axes:
            head, name = self.loop(target.dims[axis], whole)
            heads.append(head)
            index[axis] = name
            if not whole and self.loops[-1].slack and self.chance(0.5):
                index[axis] = ("+", name, str(self.loops[-1].slack))
            elif self.chance(0.1):
                index[axis] = ("-", ("-", target.dims[axis], "1"), name)
        return heads, tuple(index[a] for a in range(len(target.dims)))

    @staticmethod
    def wrapped(heads: list[Form], body: list[Form]) -> list[Form]:
        for head in reversed(heads):
            body = [(*head, *body)]
        return body

    @staticmethod
    def place(target: Tensor, index: tuple[Form, ...]) -> Form:
        return ("aref", target.name, *index) if index else target.name

    def map(self, target: Tensor, whole: bool = False) -> list[Form]:
        heads, index = self.nest(target, whole)
        inner: list[Form] = []
        if self.chance(0.2):
            inner += self.local(self.pick((*FLOATS, "i32", "i64")))
        store = ("setf", self.place(target, index), self.value(target.dtype))
        if not whole and self.chance(0.25):
            inner.append(self.choice(store, ("setf", self.place(target, index), self.value(target.dtype, 2))))
        else:
            inner.append(store)
        return self.wrapped(heads, inner)

    def choice(self, store: Form, other: Form) -> Form:
        kind = self.pick(("when", "unless", "if", "cond"))
        self.mark(f"{kind} statement")
        test = self.condition(2)
        if kind == "cond":
            return ("cond", (test, store), (self.condition(1), other), ("t", store)) if self.chance(0.5) else ("cond", (test, store), ("t", other))
        return (kind, test, store, other) if kind == "if" else (kind, test, store)

    def local(self, dtype: str) -> list[Form]:
        name = self.fresh("x")
        self.mark("set")
        first = ("set", name, ("cast", WORDS[dtype], self.value(dtype, 2)))
        self.locals.append((name, dtype))
        return [first]

    def update(self, target: Tensor) -> list[Form]:
        """In place, element by element or several times each."""
        self.mark("update in place")
        heads, index = self.nest(target)
        place = self.place(target, index)
        if target.dtype == "bool":
            return self.wrapped(heads, [("setf", place, ("xor", place, self.condition(2)))])
        return self.wrapped(heads, [(self.pick(UPDATES), place, self.value(target.dtype))])

    def reduction(self, target: Tensor) -> list[Form]:
        heads, index = self.nest(target, whole=True)
        place = self.place(target, index)
        dims = [d for t in self.inputs for d in t.dims] or [self.dim()]
        inner: list[Form] = []
        cost = 1
        for loop in self.loops:
            cost *= max(1, self.extent(loop.dim))
        for _ in range(self.rng.choice((1, 1, 2))):
            dim = self.pick(dims)
            if cost * max(1, self.extent(dim)) > ITERATIONS * 4:
                break
            cost *= max(1, self.extent(dim))
            inner.append(self.loop(dim)[0])
        local = self.chance(0.5)
        acc: Form = self.fresh("acc") if local else place
        kind = "bits" if target.dtype == "bool" or (target.dtype in INTS and self.chance(0.3)) else self.pick(("add", "add", "add", "mul", "max", "min", "best", "sub"))
        self.mark(f"reduction {kind}" + (" in a local" if local else " in place"))
        word = WORDS[target.dtype]
        value = self.value(target.dtype, 2)
        if kind == "bits":
            fn = self.pick(("and", "or", "xor") if target.dtype == "bool" else ("logand", "logior", "logxor"))
            self.mark(f"reduction {fn}")
            start: Form = self.pick(("t", "nil")) if target.dtype == "bool" else ("cast", word, self.pick(("0", "1", "-1")))
            step: Form = (("set" if local else "setf"), acc, (fn, acc, value))
        elif kind == "best":
            start, step = ("cast", word, "0"), ("when", (">", value, acc), (("set" if local else "setf"), acc, value))
        else:
            start = ("cast", word, {"add": "0", "sub": "0", "mul": "1", "max": "0", "min": "100"}[kind])
            if target.dtype in FLOATS and kind in ("max", "min") and self.chance(0.5):
                start = ("cast", word, "inf" if kind == "min" else ("-", "inf"))
            step = ({"add": "incf", "sub": "decf", "mul": "mulcf", "max": "maxcf", "min": "mincf"}[kind], acc, value)
        before = [("set", acc, start)] if local else [("setf", place, start)]
        after = [("setf", place, acc)] if local else []
        return self.wrapped(heads, [*before, *self.wrapped(inner, [step]), *after])

    def scan(self, target: Tensor) -> list[Form]:
        """Along one axis, each element from the one before."""
        if not target.dims or target.dtype == "bool":
            return self.update(target)
        self.mark("scan")
        along = self.rng.randrange(len(target.dims))
        heads, index = [], []
        for axis, dim in enumerate(target.dims):
            if axis == along:
                name = self.fresh("i")
                heads.append(("loop", (name, "1", dim)))
                self.loops.append(Loop(name, dim))
            else:
                head, name = self.loop(dim, whole=True)
                heads.append(head)
            index.append(name)
        before = ("aref", target.name, *[("-", n, "1") if a == along else n for a, n in enumerate(index)])
        fn = self.pick(("+", "+", "max", "min", "-"))
        return self.wrapped(heads, [("setf", ("aref", target.name, *index), (fn, before, self.value(target.dtype, 2)))])

    def scatter(self, target: Tensor) -> list[Form]:
        """Stores at places that are loaded or computed."""
        if len(target.dims) != 1 or target.dtype == "bool":
            return self.map(target)
        self.mark("scatter")
        sources = [t for t in self.inputs if t.dtype in INTS and len(t.dims) == 1 and t not in self.outputs]
        if not sources:
            return self.map(target)
        source = self.pick(sources)
        head, name = self.loop(source.dims[0])
        at = ("mod", ("cast", "int", ("aref", source.name, name)), target.dims[0])
        return self.wrapped([head], [(self.pick(("incf", "setf", "maxcf")), ("aref", target.name, at), self.value(target.dtype, 2))])

    def scratch(self, target: Tensor) -> list[Form]:
        """A local array, filled, and then used by a map."""
        self.mark("local array")
        dim = self.pick(target.dims) if target.dims else "3"
        local = Tensor(self.fresh("S"), self.pick((target.dtype, "f32", "i32")), (dim,), (0,))
        before = len(self.locals)
        made = [("array", local.name, WORDS[local.dtype], (dim,)), *self.map(local)]
        self.leave(before)
        self.readable.append(local)
        made += self.map(target)
        self.readable.remove(local)
        return made

    def guarded(self, target: Tensor) -> list[Form]:
        """A nest under a condition over the sizes or scalars."""
        self.mark("condition around a nest")
        if self.sizes and self.chance(0.6):
            test: Form = (self.pick(("<", ">=", "/=", "=")), self.pick(tuple(self.sizes)), str(self.pick(LITERALS)))
        else:
            test = self.condition(1)
        return [("when", test, *self.map(target))]


def random_spec(seed: int) -> RandomSpec:
    """The spec of a seed."""
    return Maker(seed).spec()
