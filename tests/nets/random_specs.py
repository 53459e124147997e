"""Random specs: operators that no person would write, of every type, rank and kind of statement, as TOML with Lisp bodies."""
from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

Form = Any                             # a symbol or number as text, or a tuple of forms

EXTENTS = (0, 1, 2, 3, 5, 7, 8, 16, 17, 33)
LITERALS = (1, 2, 3, 5, 7, 8, 16, 17, 33)
ITERATIONS = 2500                      # of one nest, so that the interpreter keeps up
WORDS = {"f32": "float", "f64": "double", "bool": "bool", **{f"{k}{b}": f"{w}{b}" for k, w in (("i", "int"), ("u", "uint")) for b in (8, 16, 32, 64)}}
FLOATS, INTS = ("f32", "f64"), tuple(d for d in WORDS if d[0] in "iu")
EXACT = ("+", "-", "*", "/", "max", "min", "fmax", "fmin", "abs", "sqrt", "floor", "ceil", "trunc", "round", "sign", "relu", "clip", "fma")
INEXACT = ("exp", "log", "sin", "cos", "tanh", "erf", "sigmoid", "expm1", "log1p", "rsqrt", "atan", "cbrt", "exp2", "log2", "pow", "hypot", "floordiv", "mod",
           "truncdiv", "truncmod", "sinh", "asinh")
INTEGRAL = ("+", "-", "*", "floordiv", "mod", "truncdiv", "truncmod", "max", "min", "fmax", "fmin", "logand", "logior", "logxor", "shl", "shr", "abs", "lognot",
            "clip", "fma", "relu")
ARITY = {"abs": 1, "lognot": 1, "clip": 3, "fma": 3, "pow": 2, "hypot": 2, "sign": 1, "relu": 1, "floordiv": 2, "mod": 2, "truncdiv": 2, "truncmod": 2}
UPDATES = ("incf", "decf", "mulcf", "maxcf", "mincf")


@dataclass(frozen=True)
class Tensor:
    """`dims`: a size's name or a number each; `below`: its elements are indices into an axis of this dim."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    order: tuple[int, ...]
    below: str = ""

    def declared(self) -> str:
        order = f"<{' '.join(map(str, self.order))}>" if self.order != tuple(range(len(self.dims))) else ""
        return f"{self.name}{{{WORDS[self.dtype]}}}[{' '.join(self.dims)}]{order}"


@dataclass(frozen=True)
class RandomSpec:
    """A spec with the sizes and the seed of the data that it is run with. `strided`: arrays that pass strides; `tame`: every function of floats in it
    is correctly rounded."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    body: tuple[Form, ...]
    sizes: tuple[tuple[str, int], ...]
    seed: int
    strided: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def tame(self) -> bool:
        return not set(symbols(self.body)) & set(INEXACT)

    def text(self) -> str:
        """The spec as a file, with how to run it in comments."""
        known = {t.name for t in self.inputs}
        outputs = [f'"{t.name if t.name in known else t.declared()}"' for t in self.outputs]
        body = "\n".join(shown(f) for f in self.body)
        about = f"# sizes {dict(self.sizes)}, data seed {self.seed}, strided {' '.join(self.strided) or 'none'}\n"
        return (about + f'[composite]\nname = "{self.name}"\ninputs = [{", ".join(repr(t.declared()) for t in self.inputs)}]\n'.replace("'", '"')
                + f'outputs = [{", ".join(outputs)}]\n\n[implementation]\ncode = """\n{body}\n"""\n')


def symbols(form: Form) -> list[str]:
    """Every symbol in a form."""
    return [form] if isinstance(form, str) else [s for part in form for s in symbols(part)]


def shown(form: Form, indent: int = 0) -> str:
    """A form as text, statements of a block on lines of their own."""
    if isinstance(form, str):
        return form
    flat = "(" + " ".join(shown(f) for f in form) + ")"
    if len(flat) + indent < 100 or form[0] not in ("dotimes", "loop", "when", "unless", "if", "progn"):
        return flat
    pad = "\n" + " " * (indent + 2)
    return f"({form[0]} {shown(form[1])}" + "".join(pad + shown(f, indent + 2) for f in form[2:]) + ")"


@dataclass(frozen=True)
class Loop:
    """A loop variable in scope: 0 ≤ name < dim - slack."""

    name: str
    dim: str
    slack: int = 0


class Maker:
    """Draws one spec."""

    def __init__(self, seed: int):
        self.rng = random.Random(f"spec {seed}")
        self.seed = seed
        self.seen: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.readable: list[Tensor] = []
        self.locals: list[tuple[str, str]] = []
        self.loops: list[Loop] = []
        self.count = 0
        self.inexact = self.chance(0.4)
        self.quiet = self.chance(0.5)                        # no reads of what is being written

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, items: Any) -> Any:
        return items[self.rng.randrange(len(items))]

    def mark(self, feature: str) -> None:
        self.seen[feature] += 1

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def extent(self, dim: str) -> int:
        return int(dim) if dim.isdigit() else self.sizes[dim]

    # -- declarations ---------------------------------------------------------------------------------------------------------------------

    def spec(self) -> RandomSpec:
        for name in ("N", "M", "K", "L")[: self.rng.choice((0, 1, 2, 2, 3, 4))]:
            self.sizes[name] = self.pick(EXTENTS)
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
        kind = "up" if whole else self.pick(("up",) * 6 + ("down", "by 2", "window", "triangle"))
        if kind == "triangle" and not self.loops:
            kind = "down"
        self.mark({"up": "dotimes", "down": "falling loop", "by 2": "strided loop", "window": "window", "triangle": "triangular loop"}[kind])
        slack = self.rng.randrange(1, 4) if kind == "window" else 0
        head: Form = {
            "up": ("dotimes", (name, dim)), "down": ("loop", (name, ("-", dim, "1"), "-1", "-1")), "by 2": ("loop", (name, str(self.rng.randrange(2)), dim, "2")),
            "window": ("dotimes", (name, ("-", dim, str(slack)))),
            "triangle": ("dotimes", (name, ("min", ("+", self.loops[-1].name if self.loops else "0", "1"), dim))),
        }[kind]
        self.loops.append(Loop(name, dim, slack))
        return head, name

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

    # -- values ---------------------------------------------------------------------------------------------------------------------------

    def index(self, dim: str) -> Form | None:
        """A place on an axis, proven inside where that is easy; None where nothing fits."""
        fitting = [x for x in self.loops if x.dim == dim]
        if fitting and self.chance(0.9):
            x = self.pick(fitting)
            kind = self.pick(("plain",) * 6 + ("back", "mod", "half", "shift", "other"))
            self.mark(f"index {kind}")
            if kind == "shift" and x.slack:
                return ("+", x.name, str(self.rng.randrange(1, x.slack + 1)))
            return {"back": ("-", ("-", dim, "1"), x.name), "mod": ("mod", ("+", ("*", "3", x.name), "2"), dim), "half": ("floordiv", x.name, "2"),
                    "other": ("min", self.pick(self.loops).name, ("-", dim, "1"))}.get(kind, x.name)
        if dim.isdigit() and self.chance(0.5):
            return str(self.rng.randrange(int(dim)))
        if self.loops and self.chance(0.3):
            return ("mod", self.pick(self.loops).name, dim)
        return None

    def load(self, dtype: str) -> Form | None:
        choices = [t for t in self.readable if t.dtype == dtype and not (self.quiet and t in self.outputs)]
        self.rng.shuffle(choices)
        for t in choices:
            index = [self.gathered(d) or self.index(d) for d in t.dims]
            if None not in index:
                return ("aref", t.name, *index) if index else t.name
        return None

    def gathered(self, dim: str) -> Form | None:
        """A loaded index."""
        if not self.chance(0.15):
            return None
        fitting = [t for t in self.inputs if t.dtype in INTS and len(t.dims) == 1 and (t.below == dim or self.chance(0.2)) and t not in self.outputs]
        if not fitting:
            return None
        t = self.pick(fitting)
        at = self.index(t.dims[0])
        if at is None:
            return None
        self.mark("gather")
        loaded: Form = ("aref", t.name, at)
        return loaded if t.below == dim else ("mod", ("cast", "int", loaded), dim)

    def value(self, dtype: str, depth: int = 3) -> Form:
        if dtype == "bool":
            return self.condition(depth)
        if depth == 0 or self.chance(0.15):
            return self.leaf(dtype)
        kind = self.pick(("op",) * 8 + ("where", "if", "cond", "cast", "let", "bitcast"))
        if kind == "op":
            return self.operation(dtype, depth)
        self.mark(f"{kind} value")
        if kind in ("where", "if"):
            return (kind, self.condition(depth - 1), self.value(dtype, depth - 1), self.value(dtype, depth - 1))
        if kind == "cond":
            return ("cond", (self.condition(1), self.value(dtype, depth - 1)), (self.condition(1), self.value(dtype, 1)), ("t", self.value(dtype, 1)))
        if kind == "let":
            name = self.fresh("y")
            bound = self.value(dtype, depth - 1)
            self.locals.append((name, dtype))
            body = self.value(dtype, depth - 1)
            self.locals.remove((name, dtype))
            return ("let", ((name, ("cast", WORDS[dtype], bound)),), body)
        if kind == "bitcast" and dtype in ("f32", "i32", "u32", "f64", "i64", "u64"):
            other = self.pick([d for d in ("f32", "i32", "u32", "f64", "i64", "u64") if d[1:] == dtype[1:] and d != dtype])
            return ("bitcast", WORDS[dtype], ("cast", WORDS[other], self.value(other, depth - 1)))
        other = self.pick(tuple(WORDS))
        self.mark("cast to float" if dtype in FLOATS else "saturating cast" if other in FLOATS else "cast")
        return ("cast", WORDS[dtype], self.value(other, depth - 1))

    def operation(self, dtype: str, depth: int) -> Form:
        if dtype in FLOATS:
            fn = self.pick(("+", "-", "*")) if self.chance(0.4) else self.pick(INEXACT) if self.inexact and self.chance(0.5) else self.pick(EXACT)
            arity = ARITY.get(fn, 2 if fn in EXACT[:8] else 1)
        else:
            fn = self.pick(INTEGRAL)
            arity = ARITY.get(fn, 2)
        args = [self.value(dtype, depth - 1) for _ in range(arity)]
        if fn in ("sqrt", "log", "rsqrt", "log2") and self.chance(0.6):
            args[0] = ("abs", args[0])
        if fn in ("shl", "shr") and self.chance(0.7):
            args[1] = ("cast", WORDS[dtype], str(self.rng.randrange(0, 70)))
        return (fn, *args)

    def leaf(self, dtype: str) -> Form:
        named = [n for n, d in self.locals if d == dtype]
        if named and self.chance(0.4):
            return self.pick(named)
        found = self.load(dtype) if self.chance(0.85) else None
        if found is not None:
            return found
        if self.loops and self.chance(0.3):
            return ("cast", WORDS[dtype], self.pick(self.loops).name)
        others = [t.dtype for t in self.readable if t.dtype != dtype]
        if others and self.chance(0.4) and (found := self.load(self.pick(others))) is not None:
            return ("cast", WORDS[dtype], found)
        if dtype == "bool":
            return self.pick(("t", "nil"))
        literal = self.pick(("0.5", "1.25", "3.0", "1e-3", "0.1", "100.0")) if dtype in FLOATS else self.pick(("0", "1", "2", "3", "7", "100"))
        return ("cast", WORDS[dtype], ("-", literal) if self.chance(0.2) and dtype[0] != "u" else literal)

    def condition(self, depth: int) -> Form:
        if depth == 0 or self.chance(0.1):
            found = self.load("bool")
            if found is not None:
                return found
        kind = self.pick(("compare",) * 5 + ("and", "or", "not", "xor", "isnan", "index"))
        if kind == "index" and self.loops:
            return (self.pick(("<", ">", "<=", ">=", "=", "/=")), self.pick(self.loops).name, self.pick((*self.sizes, "1", "2", "4")))
        if kind in ("and", "or", "xor") and depth > 0:
            self.mark(f"({kind} …)")
            return (kind, self.condition(depth - 1), self.condition(depth - 1))
        if kind == "not" and depth > 0:
            return ("not", self.condition(depth - 1))
        if kind == "isnan" and depth > 0:
            return (self.pick(("isnan", "isinf")), self.value(self.pick(FLOATS), depth - 1))
        dtype = self.pick([t.dtype for t in self.readable if t.dtype != "bool"] or ["i32"])
        return (self.pick(("<", ">", "<=", ">=", "=", "/=")), self.value(dtype, max(0, depth - 1)), self.value(dtype, max(0, depth - 1)))


def writes(body: list[Form], name: str) -> bool:
    """Does a statement store into this tensor?"""
    return any(isinstance(f, tuple) and ((f and f[0] in ("setf", *UPDATES) and name in symbols(f[1])[:2]) or writes(list(f), name)) for f in body)


def random_spec(seed: int) -> RandomSpec:
    """The spec of a seed."""
    return Maker(seed).spec()


# -- shrinking ------------------------------------------------------------------------------------------------------------------------------

BLOCKS = {"dotimes": 2, "loop": 2, "when": 2, "unless": 2, "progn": 1}


def smaller(spec: RandomSpec) -> Any:
    """Simpler specs, the boldest changes first. Not all of them are valid."""
    for n in range(len(spec.body)):
        if len(spec.body) > 1:
            body = spec.body[:n] + spec.body[n + 1:]
            outputs = tuple(t for t in spec.outputs if writes(list(body), t.name))
            yield replace(spec, body=body, outputs=outputs or spec.outputs)
    for name, value in spec.sizes:
        for less in [e for e in EXTENTS if e < value]:
            yield replace(spec, sizes=tuple((k, less if k == name else v) for k, v in spec.sizes))
    if spec.strided:
        yield replace(spec, strided=())
    for n, form in enumerate(spec.body):
        for simpler in simpler_forms(form):
            yield replace(spec, body=(*spec.body[:n], simpler, *spec.body[n + 1:]))
    used = set(symbols(spec.body))
    kept = tuple(t for t in spec.inputs if t.name in used)
    if len(kept) < len(spec.inputs):
        yield replace(spec, inputs=kept)
    outputs = tuple(t for t in spec.outputs if t.name in used)
    if outputs and len(outputs) < len(spec.outputs):
        yield replace(spec, outputs=outputs)


def simpler_forms(form: Form) -> Any:
    """The form with one part removed, or replaced by a part of itself."""
    if isinstance(form, str):
        return
    head = form[0] if form and isinstance(form[0], str) else ""
    start = BLOCKS.get(head)
    if start is not None and len(form) > start + 1:
        for n in range(start, len(form)):
            yield (*form[:n], *form[n + 1:])
    if head in ("when", "unless") and len(form) == 3:
        yield form[2]
    if head == "if":
        yield form[2]
        yield from ([form[3]] if len(form) > 3 else [])
    if head and head not in ("dotimes", "loop", "setf", "set", "array", "let", "aref", "cond", "cast", "bitcast", *UPDATES, *BLOCKS):
        yield from form[1:]
    for n, part in enumerate(form):
        for simpler in simpler_forms(part):
            yield (*form[:n], simpler, *form[n + 1:])


def shrink(spec: RandomSpec, fails: Any, tries: int = 150) -> RandomSpec:
    """The simplest spec found that still fails."""
    changed = True
    while changed and tries > 0:
        changed = False
        for candidate in smaller(spec):
            tries -= 1
            if tries <= 0:
                break
            if fails(candidate):
                spec, changed = candidate, True
                break
    return spec
