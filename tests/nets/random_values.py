"""Random expressions: loads, operators, conversions and conditions over what is in scope."""
from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from spec_forms import ARITY, EXACT, FLOATS, INEXACT, INTEGRAL, INTS, WORDS, Form, Tensor


@dataclass(frozen=True)
class Loop:
    """A loop variable in scope: 0 ≤ name < dim - slack."""

    name: str
    dim: str
    slack: int = 0


class Values:
    """Draws expressions. `sizes`, tensors, `locals` and `loops` are what they may mention; `seen` counts the features that were drawn."""

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
