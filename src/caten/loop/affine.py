"""Affine forms: an integer expression as Σ coefficient · monomial + constant, and the one canonical way to print it.

A monomial is a product of atoms. An atom is a variable or any node that is not a sum or product (a load, a floordiv, a
min). Nodes are interned, so equal atoms are one object. A monomial is a tuple of atoms, sorted by their text.
"""
from __future__ import annotations

from collections.abc import Iterator

from ..core.dtypes import DTYPES, is_float, is_integer
from ..core.expr import Cast, Const, Expr, Op, Var
from ..core.node import Node, kept
from ..core.scalars import EXCHANGED, OPERATORS
from ..core.text import flat, form_of

Monomial = tuple[Expr, ...]

LONG = 400                     # nodes of a text that atoms are sorted by
MAX_TERMS = 48                 # a product that would expand to more terms stays an atom


@kept
def text_of(node: Node) -> str:
    """The text of a node on one line."""
    return node.name if isinstance(node, Var) else flat(form_of(node))


def key_of(node: Node) -> str:
    """What atoms are sorted by: the text, or for long ones, whose text may be far longer than the node is large, a
    digest behind all texts."""
    return text_of(node) if node.written_out <= LONG else "~" + node.digest


class Linear:
    """Σ terms[m] · m + constant with integer coefficients of any size, none of them 0. Immutable by convention."""

    __slots__ = ("_degree", "_hash", "constant", "terms")

    def __init__(self, terms: dict[Monomial, int], constant: int = 0):
        self.terms = terms
        self.constant = constant
        self._hash: int | None = None
        self._degree = -1

    def __add__(self, other: Linear) -> Linear:
        return self.plus(other, 1)

    def __sub__(self, other: Linear) -> Linear:
        return self.plus(other, -1)

    def plus(self, other: Linear, times: int) -> Linear:
        """self + times · other."""
        terms = dict(self.terms)
        for m, c in other.terms.items():
            total = terms.get(m, 0) + times * c
            if total:
                terms[m] = total
            else:
                terms.pop(m, None)
        return Linear(terms, self.constant + times * other.constant)

    def scaled(self, factor: int) -> Linear:
        return Linear({m: c * factor for m, c in self.terms.items()} if factor else {}, self.constant * factor)

    def shifted(self, amount: int) -> Linear:
        return Linear(self.terms, self.constant + amount)

    def times(self, other: Linear) -> Linear:
        """The product, multiplied out."""
        if not other.terms:
            return self.scaled(other.constant)
        if not self.terms:
            return other.scaled(self.constant)
        terms: dict[Monomial, int] = {}
        for m, c in (*self.terms.items(), ((), self.constant)):
            for n, d in (*other.terms.items(), ((), other.constant)):
                if c and d:
                    key = product(m, n)
                    terms[key] = terms.get(key, 0) + c * d
        constant = terms.pop((), 0)
        return Linear({m: c for m, c in terms.items() if c}, constant)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def degree(self) -> int:
        if self._degree < 0:
            self._degree = max([len(m) for m in self.terms], default=0)
        return self._degree

    def atoms(self) -> Iterator[Expr]:
        """All atoms in order, with repetitions."""
        for m in self.terms:
            yield from m

    def coefficient(self, atom: Expr) -> Linear:
        """The form c where self = c · atom + rest. `atom` occurs at most once in each monomial."""
        terms: dict[Monomial, int] = {}
        constant = 0
        for m, c in self.terms.items():
            if atom in m:
                rest = without(m, atom)
                if rest:
                    terms[rest] = terms.get(rest, 0) + c
                else:
                    constant += c
        return Linear(terms, constant)

    def replace(self, atom: Expr, value: Linear) -> Linear:
        """Substitute `value` for `atom`."""
        out = Linear({m: c for m, c in self.terms.items() if atom not in m}, self.constant)
        for m, c in self.terms.items():
            if atom in m:
                part = Linear({}, c)
                for factor in m:
                    part = part.times(value if factor is atom else Linear({(factor,): 1}))
                out = out + part
        return out

    def quotient(self, by: Linear) -> Linear | None:
        """The form q with self = by · q, or None."""
        found, rest = self.divided(by, exactly=True)
        return None if rest.terms or rest.constant else found

    def divided(self, by: Linear, exactly: bool = False) -> tuple[Linear, Linear]:
        """The forms q and r with self = by · q + r: polynomial division by the leading (greatest) monomial. If r is not
        0 and it is to be divided `exactly`, r is a part of the remainder."""
        lead, rest, found, left_over = _leading(by), self, Linear({}), Linear({})
        factor = _coefficient(by, lead)
        while factor and (rest.terms or rest.constant):
            top = _leading(rest)
            left, times = _taken(top, lead), _coefficient(rest, top)
            if left is None or times % factor or len(found.terms) > MAX_TERMS:
                if exactly:
                    return found, rest
                term = Linear({top: times}) if top else Linear({}, times)
                left_over, rest = left_over + term, rest - term
                continue
            step = Linear({left: times // factor}) if left else Linear({}, times // factor)
            found, rest = found + step, rest - by.times(step)
        return found, left_over + rest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.constant, frozenset(self.terms.items())))
        return self._hash

    def __repr__(self) -> str:
        return text_of(expression(self))


def product(m: Monomial, n: Monomial) -> Monomial:
    """m · n"""
    return m + n if not m or not n else tuple(sorted(m + n, key=key_of))


def without(m: Monomial, atom: Expr) -> Monomial:
    """The monomial without one factor `atom`."""
    at = m.index(atom)
    return m[:at] + m[at + 1:]


def _leading(form: Linear) -> Monomial:
    """The leading monomial of a form, in an order that products preserve."""
    return max(form.terms, key=lambda m: (len(m), [key_of(a) for a in m]), default=())


def _coefficient(form: Linear, m: Monomial) -> int:
    return form.terms.get(m, 0) if m else form.constant


def _taken(m: Monomial, factors: Monomial) -> Monomial | None:
    """The monomial without these factors; None if it lacks one."""
    for atom in factors:
        if atom not in m:
            return None
        m = without(m, atom)
    return m


def constant(value: int) -> Linear:
    """The form of a number."""
    return Linear({}, value)


def of_atom(atom: Expr) -> Linear:
    """The form 1 · atom."""
    return Linear({(atom,): 1})


@kept
def linear(expr: Expr) -> Linear:
    """The affine form of an integer expression by the ring laws and n · (x // n) + x mod n = x, so it is also right for
    integers that wrap."""
    match expr:
        case Const(value=int() as value) if not isinstance(value, bool):
            return constant(value)
        case Op(fn="add", args=(a, b)):
            return _rejoined(linear(a) + linear(b))
        case Op(fn="sub", args=(a, b)):
            return linear(a) - linear(b)
        case Op(fn="neg", args=(a,)):
            return linear(a).scaled(-1)
        case Op(fn="mul", args=(a, b)) if (1 + len(linear(a).terms)) * (1 + len(linear(b).terms)) <= MAX_TERMS:
            return linear(a).times(linear(b))
        case Op(fn="floordiv", args=(a, Const(value=1))):
            return linear(a)
        case Op(fn="min" | "max", args=(a, b)) if is_integer(expr.dtype) and canonical(a) is canonical(b):
            return linear(a)
        case _:
            return of_atom(_inside(expr))


def _rejoined(form: Linear) -> Linear:
    """The form with x for n · (x // n) + x mod n, where n is a constant."""
    for m, k in form.terms.items():
        match m:
            case (Op("mod", (x, Const(value=n)) as args),) if form.terms.get((Op("floordiv", args),)) == k * n:
                rest = Linear({other: c for other, c in form.terms.items()
                               if other not in (m, (Op("floordiv", args),))}, form.constant)
                return _rejoined(rest.plus(linear(x), k))
    return form


def _inside(expr: Expr) -> Expr:
    """An atom whose integer operands are in canonical form, and what an integer is made of from floats in order."""
    inner: Expr = expr.map(lambda child: canonical(child) if isinstance(child, Expr) else child)
    if isinstance(inner, Cast) and is_integer(inner.type) and _is_float(inner.arg):
        return inner.replace(arg=_in_order(inner.arg))
    if isinstance(inner, Op) and inner.fn in ("min", "max") and is_integer(inner.dtype):
        a, b = sorted(inner.args, key=key_of)
        return a if a is b else Op(inner.fn, (a, b))
    return inner


@kept
def _in_order(expr: Expr) -> Expr:
    """The same floats whichever way round they are written: the operands of sums and products sorted, and comparisons
    < or <=. A condition and the index that it is about may come from passes of which one has ordered them."""
    made: Expr = expr.map(lambda child: _in_order(child) if isinstance(child, Expr) else child)
    if not isinstance(made, Op) or not _is_float(made.args[0]):
        return made
    if made.fn in ("gt", "ge"):
        return Op(EXCHANGED[made.fn], made.args[::-1])
    return made.replace(args=tuple(sorted(made.args, key=key_of))) if OPERATORS[made.fn].commutative else made


def _is_float(expr: Expr) -> bool:
    """Is it a real float? What has no type yet is none."""
    return expr.dtype in DTYPES and is_float(expr.dtype)


def _rank(term: tuple[Monomial, int]) -> tuple[int, int, str]:
    m, c = term
    return (-abs(c) if len(m) == 1 else -(1 << 62), -len(m), " ".join([key_of(a) for a in m]))


def _typed(atom: Expr, dtype: str) -> Expr:
    """The atom converted to the type. Forms may look through casts that keep the value."""
    return atom if atom.dtype in (dtype, "", "?") else Cast(dtype, atom)


def expression(form: Linear, dtype: str = "i64") -> Expr:
    """The form as an expression in canonical order: largest strides first, the constant last, minus before
    negatives."""
    row = DTYPES[dtype]
    span = 1 << row.bits

    def wrapped(value: int) -> int:
        return (value - row.least) % span + row.least if row.kind == "int" else value

    if row.kind == "uint":
        # modulo 2^n: take the residue of smaller magnitude, so that x - y stays x - y
        form = Linear({m: s for m, c in form.terms.items() if (s := (c + span // 2) % span - span // 2)},
                      form.constant % span)
    else:
        form = Linear({m: w for m, c in form.terms.items() if (w := wrapped(c))}, wrapped(form.constant))
    terms = sorted(form.terms.items(), key=_rank)
    terms.sort(key=lambda t: t[1] < 0)
    total: Expr | None = None
    if terms and terms[0][1] < 0 and form.constant > 0:
        total, form = Const(form.constant, dtype), Linear(form.terms, 0)
    for m, c in terms:
        value = _typed(m[0], dtype)
        for factor in m[1:]:
            value = Op("mul", (value, _typed(factor, dtype)))
        magnitude = c if total is None or c == row.least else abs(c)
        if magnitude == -1 and total is None and row.kind == "uint":
            value = Op("neg", (value,))
        elif magnitude != 1:
            value = Op("mul", (Const(magnitude % span if row.kind == "uint" else magnitude, dtype), value))
        total = value if total is None else Op("add" if c > 0 or c == row.least else "sub", (total, value))
    if total is None:
        return Const(form.constant, dtype)
    if form.constant:
        low = form.constant < 0 and form.constant != row.least
        total = Op("sub" if low else "add", (total, Const(-form.constant if low else form.constant, dtype)))
    return total


@kept
def canonical(expr: Expr) -> Expr:
    """The canonical form of an expression: every integer sum and product in it is collected and ordered. Exact for
    integers that wrap. Other arithmetic stays as it is."""
    collects = (isinstance(expr, Op) and expr.fn in ("add", "sub", "mul", "neg") and is_integer(expr.dtype)
                and expr.lanes == 1)
    return expression(linear(expr), expr.dtype) if collects else _inside(expr)
