"""What every family of written specs shares: names, sizes, tensors, loops in any order, and the spellings of conditions and sums."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from spec_forms import ALL_WORDS, EXTENTS, FLOATS, Form, RandomSpec, Tensor, extent_of

STEMS = ("A", "x", "In", "w_x", "q-", "register", "T", "zz", "k1_", "Data")
ITERATIONS = 6000                      # of a whole body, so that the interpreter keeps up
Head = tuple[str, Any]                 # a loop: its variable, and its bound or (from, to[, step])


class Family:
    """Draws one spec of a family. Subclasses are the families: `body()` declares what it needs and gives the statements."""

    def __init__(self, seed: int):
        self.rng = random.Random(f"{type(self).__name__} {seed}")
        self.seed = seed
        self.seen: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}
        self.scalars: dict[str, int] = {}
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.callees: list[str] = []
        self.taken: set[str] = set()
        self.permuted = True                                 # may axes be in another order in memory?
        self.cost = 1                                        # iterations of the largest nest, as a formula of the sizes has it

    # -- choices --------------------------------------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, items: Any) -> Any:
        return items[self.rng.randrange(len(items))]

    def mark(self, feature: str) -> None:
        self.seen[feature] += 1

    def fresh(self, stem: str = "") -> str:
        stem = stem or self.pick(STEMS)
        n = 0
        while (name := f"{stem}{n}") and name.lower().replace("-", "_") in self.taken:
            n += 1
        self.taken.add(name.lower().replace("-", "_"))
        return name

    # -- declarations ---------------------------------------------------------------------------------------------------------------------

    def body(self) -> list[Form]:
        raise NotImplementedError

    def spec(self) -> RandomSpec:
        body = self.body()
        for name in self.sizes:                              # a size must be an axis of something
            if not any(name == d for t in (*self.inputs, *self.outputs) for d in t.dims):
                self.inputs.insert(0, Tensor(self.fresh("zzn"), "i8", (name,), (0,)))
        strided = () if self.callees else tuple(t.name for t in {t.name: t for t in (*self.inputs, *self.outputs)}.values()
                        if len(t.dims) > 1 and t.dtype not in ("i4", "u4") and self.chance(0.07))
        self.facts(strided)
        name = f"{type(self).__name__}{self.seed}"
        return RandomSpec(name, tuple(self.inputs), tuple(self.outputs), tuple(body), tuple(self.sizes.items()), self.seed, strided,
                          tuple(self.seen), tuple(self.callees), tuple(self.scalars.items()))

    def facts(self, strided: Sequence[str]) -> None:
        self.mark(f"form {type(self).__name__}")
        for t in (*self.inputs, *self.outputs):
            self.mark(f"rank {len(t.dims)}")
            self.mark(t.dtype)
            if t.order != tuple(range(len(t.dims))):
                self.mark("permuted order")
        for v in self.sizes.values():
            self.mark(f"extent {v}")
        if strided:
            self.mark("strided")

    def size(self, most: int = 33, least: int = 0) -> str:
        """A new size, at most so large that the nest keeps within its iterations."""
        room = max(1, ITERATIONS // self.cost)
        values = [e for e in EXTENTS if least <= e <= min(most, room)] or [max(least, 1)]
        value = self.pick(values)
        if value == 0 and self.chance(0.85):
            value = self.pick([v for v in values if v] or [1])
        name = self.fresh(self.pick(("N", "M", "H", "K", "w", "Len", "O", "C")))
        self.sizes[name] = value
        self.cost *= max(1, value)
        return name

    def dim(self, most: int = 33, least: int = 0) -> str:
        """A new size, one that is there already, or a number."""
        fitting = [n for n, v in self.sizes.items() if least <= v <= most and self.cost * max(1, v) <= ITERATIONS]
        if fitting and self.chance(0.25):
            name = str(self.pick(fitting))
            self.cost *= max(1, self.sizes[name])
            return name
        if self.chance(0.2):
            room = max(1, ITERATIONS // self.cost)
            value = self.pick([e for e in EXTENTS if max(1, least) <= e <= min(most, room)] or [1])
            self.cost *= value
            return str(value)
        return self.size(most, least)

    def extent(self, dim: str) -> int:
        return extent_of(dim, self.sizes)

    def tensor(self, dtype: str, dims: Sequence[str], role: str = "in", where: str = "", below: str = "") -> Tensor:
        """A declared tensor. `role`: in, out, or inout."""
        order = list(range(len(dims)))
        if len(dims) > 1 and self.permuted and self.chance(0.3):
            self.rng.shuffle(order)
        made = Tensor(self.fresh(), dtype, tuple(dims), tuple(order), below, where)
        if role != "out":
            self.inputs.append(made)
        if role != "in":
            self.outputs.append(made)
        self.mark({"in": "input", "out": "pure output", "inout": "in place"}[role])
        return made

    def floating(self) -> str:
        return str(self.pick(("f32", "f32", "f32", "f32", "f64", "f16", "bf16")))

    def number(self) -> str:
        return str(self.pick(("f32", "f32", "f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")))

    # -- forms ----------------------------------------------------------------------------------------------------------------------------

    @staticmethod
    def at(t: Tensor, *index: Form) -> Form:
        return ("aref", t.name, *index) if t.dims else t.name

    def wrapped(self, heads: Sequence[Head], body: Sequence[Form]) -> list[Form]:
        made = list(body)
        for name, bound in reversed(heads):
            whole = not (isinstance(bound, tuple) and bound[0] == "from")
            made = [("dotimes", (name, bound), *made) if whole else ("loop", (name, *bound[1:]), *made)]
        return made

    def shuffled(self, heads: Sequence[Head]) -> list[Head]:
        """Loops that may stand in any order, in some order."""
        mixed = list(heads)
        if self.chance(0.4):
            self.rng.shuffle(mixed)
            self.mark("mixed loop order")
        return mixed

    def reversed_maybe(self, head: Head) -> Head:
        """A loop counted down, or from a start, that runs the same iterations."""
        name, bound = head
        if isinstance(bound, tuple) and bound[0] == "from":
            return head
        kind = self.pick(("up",) * 5 + ("down", "loop", "by 1"))
        if kind == "up":
            return head
        self.mark({"down": "negative step", "loop": "loop from 0", "by 1": "loop from 0"}[kind])
        return name, {"down": ("from", ("-", bound, "1"), "-1", "-1"), "loop": ("from", "0", bound), "by 1": ("from", "0", bound, "1")}[kind]

    def added(self, a: Form, b: Form) -> Form:
        return ("+", a, b) if self.chance(0.5) else ("+", b, a)

    def times(self, a: Form, n: int | str) -> Form:
        if n in (1, "1") and self.chance(0.8):
            return a
        return ("*", str(n), a) if self.chance(0.5) else ("*", a, str(n))

    def inside(self, e: Form, extent: Form) -> list[Form]:
        """0 ≤ e < extent, as people spell it: one or two tests."""
        self.mark("condition on an index")
        kind = self.rng.randrange(7)
        low: Form = self.pick((("<=", "0", e), (">=", e, "0"), ("not", ("<", e, "0")), (">", e, "-1"), ("<", "-1", e)))
        high: Form = self.pick((("<", e, extent), (">", extent, e), ("<=", e, ("-", extent, "1")), ("not", (">=", e, extent)), ("<", ("-", e, extent), "0")))
        if kind == 0:
            return [("and", ("<=", "0", e), ("<", e, extent))]
        if kind == 1:
            return [("<=", "0", e, ("-", extent, "1"))]
        if kind == 2:
            return [("not", ("or", ("<", e, "0"), (">=", e, extent)))]
        return [low, high] if self.chance(0.7) else [high, low]

    def under(self, tests: Sequence[Form], body: Sequence[Form]) -> list[Form]:
        """Statements under all of these tests: joined, nested, or by other words."""
        if not tests:
            return list(body)
        kind = self.pick(("and", "and", "nested", "nested", "mixed", "if", "unless", "cond"))
        self.mark(f"spelled {kind}")
        one: Form = ("and", *tests) if len(tests) > 1 else tests[0]
        if kind == "and":
            return [("when", one, *body)]
        if kind == "unless":
            return [("unless", ("not", one), *body)]
        if kind == "if" and len(body) == 1:
            return [("if", one, body[0])]
        if kind == "cond":
            return [("cond", (one, ("progn", *body) if len(body) > 1 else body[0]))]
        if kind == "mixed" and len(tests) > 2:
            cut = self.rng.randrange(1, len(tests))
            return [("when", ("and", *tests[:cut]) if cut > 1 else tests[0], *self.under(tests[cut:], body))]
        made = list(body)
        for test in reversed(tests):
            made = [("when", test, *made)]
        return made

    def accumulated(self, place: Form, fn: str, value: Form) -> Form:
        """place = place fn value, by an update or written out."""
        update = {"+": "incf", "-": "decf", "*": "mulcf", "max": "maxcf", "min": "mincf"}.get(fn)
        if update and self.chance(0.65):
            return (update, place, value)
        self.mark("accumulation written out")
        word = "setf" if isinstance(place, tuple) or self.chance(0.3) else "set"
        return (word, place, (fn, place, value) if fn == "-" or self.chance(0.6) else (fn, value, place))

    def data_test(self, value: Form, dtype: str) -> Form:
        """A condition on what was loaded."""
        self.mark("condition on data")
        if dtype == "bool":
            return value
        if dtype in FLOATS and self.chance(0.2):
            return ("not", ("isnan", value))
        return (self.pick((">", "<", ">=", "<=", "/=")), value, self.pick(("0", "1", "2")))

    @staticmethod
    def cast(dtype: str, value: Form) -> Form:
        return ("cast", ALL_WORDS[dtype], value)
