"""Accumulations in all their spellings: updates, written out, by comparison, a first element before the loop or under a condition."""
from __future__ import annotations

from spec_forms import FLOATS
from written_specs import Family, Form, Head

TESTS = {"max": (">", ">="), "min": ("<", "<=")}
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=", "/=": "/="}


class Spelled(Family):
    """One or two accumulations along an axis, of a place or of a local, over as many elements as a size, a number, a local or an array says."""

    def body(self) -> list[Form]:
        dtype = "bool" if self.chance(0.1) else self.number()
        rank = self.pick((1, 2, 2, 2, 3))
        dims = [self.dim(17) for _ in range(rank - 1)]
        length = self.dim(33, 1)
        names = [self.fresh(s) for s in ("i", "j")[:rank - 1]]
        p = self.fresh("p")
        where = "" if length.isdigit() else f"{length} > 0"      # there is a first element
        self.along = self.rng.randrange(rank)
        self.arrays = [self.tensor(dtype, [*dims[:self.along], length, *dims[self.along:]], where=where) for _ in range(self.pick((1, 1, 2)))]
        outer: list[Head] = list(zip(names, dims, strict=True))
        before, self.lo, self.hi = self.range(names, outer, length)
        count = self.pick((1, 1, 1, 2))
        results = [self.tensor(dtype, dims, self.pick(("out", "out", "out", "inout"))) for _ in range(count)]
        self.pure = {y.name: not any(y is t for t in self.inputs) for y in results}
        together = count == 2 and self.chance(0.5)
        accumulations = [self.accumulation(dtype, y.name if not names else ("aref", y.name, *names), names, p) for y in results]
        loops: list[Form] = []
        if together:
            loops = [*[s for start, _, _ in accumulations for s in start], self.loop(p, [s for _, step, _ in accumulations for s in step], accumulations[0][2])]
            if accumulations[0][2] != accumulations[1][2]:
                together = False
        if not together:
            loops = [s for start, step, first in accumulations for s in (*start, self.loop(p, step, first))]
        tests = [self.data_test(self.read(0, names, "0"), dtype)] if self.chance(0.1) and not any(self.pure.values()) else []
        ends = [("setf", y.name if not names else ("aref", y.name, *names), local) for y, local in zip(results, self.locals_of(accumulations), strict=True) if local]
        return self.wrapped(self.shuffled(outer) if not before else outer, [*before, *self.under(tests, [*loops, *ends])])

    def range(self, names: list[str], outer: list[Head], length: str) -> tuple[list[Form], Form, Form]:
        """What stands before the loop, the first of its iterations, and the end."""
        kind = self.pick(("whole",) * 6 + ("local", "local", "array", "triangle", "from"))
        self.mark(f"length {kind}")
        if kind in ("local", "triangle") and names:
            local, i = self.fresh("n"), self.pick(names)
            end: Form = ("min", length, i if self.chance(0.5) else ("+", i, "1"))
            return ([("set", local, end)], "0", local) if kind == "local" else ([], "0", end)
        if kind == "array" and names:
            lengths = self.tensor("i32", [outer[0][1]])
            local = self.fresh("n")
            end = ("clip", ("cast", "int64", ("aref", lengths.name, names[0])), "0", length)
            if self.chance(0.4):
                return [], "0", end
            return [("set", local, end)], "0", local
        if kind == "from" and names:
            return [], ("min", names[0], length), length
        return [], "0", length

    def read(self, k: int, names: list[str], p: Form) -> Form:
        k %= len(self.arrays)
        return ("aref", self.arrays[k].name, *names[:self.along], p, *names[self.along:])

    def value(self, names: list[str], p: Form, kind: str) -> Form:
        a, b = self.read(0, names, p), self.read(1, names, p)
        return {"plain": a, "product": ("*", a, b), "twice": ("*", a, a), "difference": ("-", a, b), "negated": ("-", a), "more": ("+", a, b),
                "both": ("and", a, b), "none": ("not", a)}[kind]

    def loop(self, p: str, step: list[Form], first: bool) -> Form:
        """The accumulation's loop; from the second iteration where the first stands before it."""
        if first:
            return ("loop", (p, "1" if self.lo == "0" else ("+", self.lo, "1"), self.hi), *step)
        if self.lo == "0" and self.chance(0.8):
            return ("dotimes", (p, self.hi), *step)
        return ("loop", (p, self.lo, self.hi), *step)

    def accumulation(self, dtype: str, at: Form, names: list[str], p: str) -> tuple[list[Form], list[Form], bool]:
        """Statements before the loop and in it; whether the loop begins with the second iteration."""
        fn = self.pick(("+", "+", "+", "*", "max", "min", "-"))
        kind = self.pick(("plain", "product", "twice", "difference", "negated", "more"))
        if dtype == "bool":
            fn, kind = self.pick(("or", "and", "xor")), self.pick(("plain", "both", "none"))
        start = self.pick(("identity", "identity", "peeled", "first if", "first if", "number", "none"))
        local = start not in ("first if", "none") and self.chance(0.6)
        place: Form = self.fresh("acc") if local else at
        word = "set" if local and self.chance(0.8) else "setf"
        value = self.value(names, p, kind)
        update = self.update(dtype, place, word, fn, value)
        self.mark(f"begins with {start}")
        if start == "first if":
            set_: Form = (word, place, value)
            if fn == "-":
                update = ("incf", place, value)
            begins = self.pick((("=", p, self.lo), ("=", self.lo, p), ("<=", p, self.lo), ("<", p, ("+", self.lo, "1"))))
            both = self.pick((("if", begins, set_, update), ("if", ("not", begins), update, set_), ("cond", (begins, set_), ("t", update)),
                              ("if", ("/=", p, self.lo), update, set_), ("if", (">", p, self.lo), update, set_)))
            return self.filled(at), [both], False
        if start == "none":
            return self.filled(at), [update], False
        if start == "peeled":
            lo: Form = self.lo if self.lo == "0" else ("min", self.lo, "0")
            return [("set" if local else "setf", place, self.value(names, lo, kind))], [update], lo == self.lo
        if dtype == "bool":
            return [("set" if local else "setf", place, "t" if fn == "and" else self.pick(("nil", "nil", "t")))], [update], False
        number: Form = "1" if fn == "*" else {"max": ("-", "inf"), "min": "inf"}.get(fn, "0") if dtype in FLOATS else {"max": "0", "min": "100"}.get(fn, "0")
        if start == "number":
            number = self.pick(("2", "0", "5"))
        return [("set" if local else "setf", place, self.cast(dtype, number) if local else number)], [update], False

    def filled(self, at: Form) -> list[Form]:
        """An output that nothing may set holds 0 before."""
        return [("setf", at, "nil" if self.outputs[0].dtype == "bool" else "0")] if self.pure[at if isinstance(at, str) else at[1]] else []

    def update(self, dtype: str, place: Form, word: str, fn: str, value: Form) -> Form:
        """place = place fn value, by an update, written out, or by a comparison."""
        if fn in TESTS and self.chance(0.5):
            self.mark("extreme by comparison")
            test = self.pick(TESTS[fn])
            cond: Form = (test, value, place) if self.chance(0.5) else (MIRRORED[test], place, value)
            if self.chance(0.15):
                cond = ("not", ({">": "<=", ">=": "<", "<": ">=", "<=": ">"}[cond[0]], *cond[1:]))
            kind = self.pick(("when", "if", "value", "value swapped"))
            if kind == "value":
                return (word, place, ("if", cond, value, place))
            if kind == "value swapped":
                return (word, place, ("if", ("not", cond), place, value))
            return (kind, cond, (word, place, value))
        if fn == "+" and isinstance(value, tuple) and value[0] == "+" and self.chance(0.5):
            a, b = value[1:]                      # one sum of three operands, the place anywhere in it
            return (word, place, self.pick((("+", ("+", a, place), b), ("+", a, ("+", b, place)), ("+", a, b, place))))
        if fn == "-" and self.chance(0.3):
            return (word, place, ("-", ("-", value), ("-", place)))
        if fn == "+" and self.chance(0.15):
            return (word, place, ("-", place, ("-", value)))
        if self.chance(0.1):
            return (word, place, ("if", self.data_test(value, dtype), (fn, place, value), place))
        return self.accumulated(place, fn, value)

    @staticmethod
    def locals_of(accumulations: list[tuple[list[Form], list[Form], bool]]) -> list[str]:
        """The local of each, or nothing where it accumulates in its place."""
        return [start[0][1] if start and isinstance(start[0][1], str) and start[0][1].startswith("acc") else "" for start, _, _ in accumulations]
