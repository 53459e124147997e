"""Parser of tensor declarations: `A{float}[M K]<0 1>(where K = (* 2 M))` declares a name, an element type, a shape, a
memory order and conditions.

    tensor ::= NAME "{" TYPE ["grad"] "}" "[" dimension… "]" ["<" axis… ">"] ["(" ["where"] conditions ")"]

Commas are optional. A dimension is a number, a size, or arithmetic over sizes. `[]` is a scalar tensor. The order lists
the axes from slowest to fastest; the default is row-major.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..core.dtypes import LATER, SPELLINGS, is_integer
from ..core.expr import Cast, Const, Expr, Op, Var, index
from ..errors import CatenError, Diagnostic, Place, did_you_mean, error
from ..frozen import frozen
from ..options import Instance
from .composite import Declared, declaration, fold
from .generic_signature import INFERRED, Bindings, Tensor, bound, tensors
from .size_conditions import Arithmetic, Token, parse_conditions, stray, tokens
from .spec_files import shown

NOTHING_GENERIC = Bindings({}, (), {})
MAX_RANK = 32
MAX_TENSORS = 1000
MAX_ARGUMENTS = 1024           # tensors and sizes: Python's ctypes passes no more to a C function
MAX_SIZES = 1000
MAX_CONDITIONS = 256           # that a person wrote
MAX_SIZE = 1 << 40
MAX_NAME = 64                  # characters: names become parts of symbols and file names
CONSTANTS = ("inf", "nan", "true", "false", "nil", "pi")


@frozen
class Written:
    """A declaration in a spec, with the source positions of its characters."""

    text: str
    where: Callable[[int], Place]

    dots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)       # shapes with `...`, by tensor

    @property
    def place(self) -> Place:
        return self.where(len(self.text) - len(self.text.lstrip()))

    def without_dots(self) -> Written:
        """The same without `...`, the shape that follows from the body: it is noted, and blank in the text."""
        if INFERRED not in self.text:
            return self
        found = {t.name: t.shape for t in tensors([self.text]) if t.shape == (INFERRED,)}
        text = self.text.replace("{...}", "{f32}")
        return Written(text.replace(INFERRED, "   ") if found else text, self.where, found)

    def with_any_axes(self) -> Written:
        """The same with `~` instead of `...`, any shape of an input. The text has the same length."""
        return Written(re.sub(r"\[\s*\.\.\.", lambda m: m[0][:-3] + " ~ ", self.text), self.where)


@frozen
class Signature:
    """The declarations of one operator; see Composite for the fields."""

    tensors: tuple[Declared, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    conditions: tuple[Expr, ...]
    positions: tuple[tuple[Expr, Place], ...] = ()       # positions of the written conditions
    generic: tuple[Tensor, ...] = ()                     # its declarations, if some have no fixed type or rank
    inferred: tuple[str, ...] = ()                       # outputs whose shape is that of what the body returns
    any_axes: tuple[str, ...] = ()                       # the sizes of the axes that `~` stands for

    @property
    def names(self) -> tuple[str, ...]:
        """All declared names: tensors, then sizes."""
        return (*[t.name for t in self.tensors], *self.sizes)


@dataclass
class _Reader:
    """Collects the declarations of one operator, and every fault in them."""

    renames: bool = False # an output declared like an input is a new tensor
    exact: bool = False   # is the body in Python, which tells upper and lower case apart?
    bindings: Bindings = NOTHING_GENERIC
    numbers: Mapping[str, int] = field(default_factory=dict)      # attributes that are integers
    inferred: list[str] = field(default_factory=list)
    sizes: dict[str, tuple[str, Place]] = field(default_factory=dict)    # folded name -> spelling, position
    tensors: dict[str, Declared] = field(default_factory=dict)    # folded name -> declaration
    pending: list[tuple[Arithmetic, int]] = field(default_factory=list)    # where-clauses: cursor, start
    conditions: list[Expr] = field(default_factory=list)
    positions: dict[Expr, Place] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)

    def key(self, name: str) -> str:
        """The same for names that the body does not tell apart."""
        return name.replace("-", "_") if self.exact else fold(name)

    @property
    def alike(self) -> str:
        """What does not tell names apart, for a hint."""
        return "- and _ do not tell names apart" if self.exact else (
            "upper and lower case, - and _ do not tell names apart in Lisp")

    def sequence(self, written: Written, access: str) -> list[Declared]:
        """A sequence of declarations (usually one)."""
        found: list[Declared] = []
        try:
            cursor = Arithmetic(tokens(written.text, written.where), written.where, self.size)
            while cursor.token.kind != "end":
                found.append(self.tensor(cursor, access, written))
                cursor.accept(",")
        except CatenError as refusal:
            self.problems.extend(refusal.diagnostics)
        return found

    def tensor(self, cursor: Arithmetic, access: str, written: Written) -> Declared:
        start, place = cursor.token, cursor.place
        if start.kind != "name":
            raise error("E101", f"expected the name of a tensor, not {cursor.here()}", place,
                        hint="write A{float}[M N]")
        cursor.i += 1
        if len(self.tensors) >= MAX_TENSORS:
            raise error("E120", f"more than {MAX_TENSORS} tensors", place)
        name = identifier(start.text, place)
        dtype, grad = self.element_type(cursor, name)
        shape, block = self.shape(cursor, name)
        order = self.order(cursor, len(shape), block)
        opened = cursor.place
        if cursor.accept("("):
            cursor.accept("where")
            self.pending.append((cursor, cursor.i))
            skip_to_close(cursor, opened)
        if cursor.token.text in ("{", "[", "<", "("):
            raise error("E101", f"{cursor.here()} stands in the wrong place", cursor.place,
                        hint="the order is NAME{type}[shape]<order>(where …)")
        text = written.text[start.start:cursor.tokens[cursor.i - 1].end]
        if any(t.is_generic for t in tensors([text])):
            text = declaration(name, dtype, shape, order)
        if INFERRED in written.dots.get(name, ()):
            self.inferred.append(name)
        declared = Declared(name, dtype, shape, order, access, text, place, grad)
        other = self.tensors.get(self.key(name))
        if self.renames and other is not None and access == "out" and other.access == "in" and other.name == name:
            name, other = self.unused(f"{name}_out"), None
            declared = replace(declared, name=name, text=name + text[len(start.text):])
        if other is not None:
            again = access == "out" and other.access == "in" and other.name == name
            raise error("E107", f"'{name}' is declared twice"
                        + ("" if other.name == name else f": it is the same name as '{other.name}'"), place,
                        hint=f"'{name}' alone, without a type, is the input, changed in place; "
                             "a new tensor takes another name" if again else
                             self.alike,
                        notes=(("first declared here", other.place),))
        self.tensors[self.key(name)] = declared
        return declared

    def unused(self, wish: str) -> str:
        """A name that is not declared yet."""
        candidates = (wish, *[f"{wish}_{n}" for n in range(2, 2 * MAX_TENSORS)])
        return next(c for c in candidates if self.key(c) not in self.tensors and self.key(c) not in self.sizes)

    def element_type(self, cursor: Arithmetic, name: str) -> tuple[str, bool]:
        if not cursor.accept("{"):
            raise error("E102", f"the element type of '{name}' is missing", cursor.place,
                        hint=f"write {name}{{float}}[…]")
        words: list[tuple[Token, Place]] = []
        while cursor.token.text != "}" and cursor.token.kind != "end":
            words.append((cursor.token, cursor.place))
            cursor.i += 1
        cursor.expect("}", "after the element type")
        if not words:
            raise error("E102", f"the element type of '{name}' is missing",
                        cursor.where(cursor.tokens[cursor.i - 1].start), hint=f"write {name}{{float}}[…]")
        (word, place), more = words[0], words[1:]
        grad = bool(more) and more[0][0].text.lower() == "grad"
        if len(more) > grad:
            raise error("E101", f"{shown(more[grad][0].text)} after the element type: only 'grad' may follow it",
                        more[grad][1])
        known = self.bindings.types.get(word.text)
        return known or dtype_of(word.text, place), grad

    def shape(self, cursor: Arithmetic, name: str) -> tuple[tuple[Expr, ...], tuple[int, int] | None]:
        """The extents, and which of them `~` stands for: the first of them, and how many there are."""
        if not cursor.accept("["):
            raise error("E103", f"the shape of '{name}' is missing", cursor.place,
                        hint=f"write {name}{{…}}[M N], or {name}{{…}}[] for a scalar")
        dims: list[Expr] = []
        block: tuple[int, int] | None = None
        while not cursor.accept("]"):
            place = cursor.place
            if cursor.token.kind == "end":
                raise error("E101", "expected ']' to close the shape", place)
            if cursor.token.text == "~":
                if block is not None:
                    raise error("E111", f"'~' is there twice in the shape of '{name}'", place,
                                hint="name the axes of one of them")
                axes = self.bindings.block(name)
                block = len(dims), len(axes)
                dims += [index(axis) if isinstance(axis, int) else self.size(axis, place) for axis in axes]
                cursor.i += 1
                cursor.accept(",")
                continue
            if len(dims) == MAX_RANK:
                raise error("E120", f"'{name}' has more than {MAX_RANK} axes", place)
            dims.append(dimension(cursor.operand(), place))
            cursor.accept(",")
        self.conditions.extend(Op("ge", (d, index(0))) for d in dims if may_be_negative(d))
        return tuple(dims), block

    def order(self, cursor: Arithmetic, rank: int, block: tuple[int, int] | None) -> tuple[int, ...]:
        """The axes from slowest to fastest. With `~` in the shape, the numbers count the named axes."""
        place = cursor.place
        if not cursor.accept("<"):
            return tuple(range(rank))
        axes: list[int] = []
        while not cursor.accept(">"):
            token = cursor.token
            if token.text == "~":
                if block is None:
                    raise error("E111", "'~' in an order stands for the axes of '~' in the shape, and there is none",
                                cursor.place, hint="the order lists the numbers of the axes: <1 0>")
                axes += range(block[0], block[0] + block[1])
                cursor.i += 1
                cursor.accept(",")
                continue
            if token.kind != "number" or not re.fullmatch(r"\d{1,6}", token.text):
                raise error("E110", f"expected the number of an axis, not {cursor.here()}", cursor.place)
            cursor.i += 1
            number = int(token.text)
            axes.append(number if block is None or number < block[0] else number + block[1])
            cursor.accept(",")
        if sorted(axes) != list(range(rank)):
            wanted = f"each of 0…{rank - 1} once" if rank > 1 else "0 alone" if rank else "nothing"
            raise error("E110", f"the order <{' '.join(map(str, axes))}> must list {wanted}", place,
                        hint=f"the tensor has {rank} {'axis' if rank == 1 else 'axes'}; "
                             "from slowest to fastest, <0 1> is row major")
        return tuple(axes)

    def size(self, written: str, place: Place) -> Expr:
        """A size in a shape. Its first appearance declares it."""
        if re.search(r"-\d", written):
            raise error("E119", f"'{written}' would be one name, since - is a letter of names", place,
                        hint=f"write (- {written.replace('-', ' ', 1)}), or rename the size")
        if written in self.numbers:
            return index(self.numbers[written])
        name = identifier(written, place)
        known, first = self.sizes.setdefault(self.key(name), (name, place))
        if len(self.sizes) > MAX_SIZES:
            raise error("E120", f"more than {MAX_SIZES} sizes", place)
        if known != name:
            raise error("E107", f"the sizes '{known}' and '{name}' are the same name in a body", place,
                        hint="spell a size in one way", notes=(("first written here", first),))
        return Var(name, "i64")

    def value(self, written: str, place: Place) -> Expr:
        """A name in a condition: a size, or an integer scalar."""
        key = self.key(written)
        if written in self.numbers:
            return index(self.numbers[written])
        if key in self.sizes:
            return Var(self.sizes[key][0], "i64")
        tensor = self.tensors.get(key)
        if tensor is not None and tensor.scalar and is_integer(tensor.dtype):
            scalar = Var(tensor.name, tensor.dtype)
            return scalar if tensor.dtype == "i64" else Cast("i64", scalar)
        if tensor is not None:
            raise error("E116", f"'{written}' is a tensor: conditions are about sizes and integer scalars", place)
        known = [name for name, _ in self.sizes.values()]
        raise error("E116", f"'{shown(written)[1:-1]}' is not a size of this signature", place,
                    hint=did_you_mean(written, known)
                    or (f"the sizes are {', '.join(known)}" if known else "there are no sizes"))

    def output(self, written: Written, inputs: Sequence[Declared]) -> Declared | None:
        """The tensor that an entry of `outputs` names or declares."""
        stripped = written.text.strip()
        if not re.fullmatch(r"[A-Za-z0-9_-]+", stripped):
            found = self.sequence(written, "out")
            if len(found) == 1:
                return found[0]
            if not self.problems:
                self.problems.append(Diagnostic("E101", "expected the name of an input, or one declaration",
                                                written.place))
            return None
        match = (next((t for t in inputs if t.name == stripped), None)
                 or next((t for t in inputs if self.key(t.name) == self.key(stripped)), None))
        if match is None and len(inputs) == len(self.tensors):
            self.problems.append(Diagnostic("E113", f"'{stripped}' is not an input", written.place,
                                            did_you_mean(stripped, [t.name for t in inputs])
                                            or f"declare it in place: {stripped}{{float}}[…]"))
        return match

    def check_clashes(self) -> None:
        """A size and a tensor must not have the same name."""
        for key, (name, place) in self.sizes.items():
            if (tensor := self.tensors.get(key)) is not None:
                self.problems.append(Diagnostic("E107", f"the size '{name}' has the name of the tensor '{tensor.name}'",
                                                place, self.alike,
                                                (("the tensor is declared here", tensor.place),)))

    def check_conditions(self, requirements: Sequence[Written]) -> None:
        for cursor, start in self.pending:
            cursor.i, cursor.variable = start, self.value
            self.attempt(partial(cursor.conditions, until=")"), cursor.place)
        for written in requirements[:MAX_CONDITIONS + 1]:
            self.attempt(partial(parse_conditions, written.text, written.where, self.value), written.place)

    def attempt(self, conditions: Callable[[], list[Expr]], place: Place) -> None:
        try:
            found = conditions()
            self.conditions.extend(found)
            self.positions = dict.fromkeys(found, place) | self.positions
            if len(self.positions) > MAX_CONDITIONS:
                raise error("E120", f"more than {MAX_CONDITIONS} conditions", place)
        except CatenError as refusal:
            self.problems.extend(refusal.diagnostics)


def declare(inputs: Sequence[Written], outputs: Sequence[Written], requirements: Sequence[Written] = (),
            place: Place | None = None, renames: bool = False, instance: Instance | None = None,
            attributes: Sequence[tuple[str, Any]] = (), exact: bool = False) -> Signature:
    """The signature of these declarations. Raises CatenError with every fault (E101…E120). `place`: the position of the
    outputs. `renames`: an output C declared like an input is a new tensor, C_out. `instance`: of a generic one.
    `attributes`: those that are integers are numbers in shapes and conditions. `exact`: are `h` and `H` two names?"""
    generic = tensors([written.text for written in inputs])
    generic += tuple([t for t in tensors([written.text for written in outputs])
                      if t.name not in [other.name for other in generic]])
    inputs = [written.with_any_axes() for written in inputs]
    outputs = [written.without_dots() for written in outputs]
    if len(inputs) + len(outputs) > 2 * MAX_TENSORS:
        raise error("E120", f"more than {MAX_TENSORS} tensors",
                    inputs[MAX_TENSORS].place if len(inputs) > MAX_TENSORS else place)
    numbers = {name: value for name, value in attributes if type(value) is int}
    reader = _Reader(renames, exact, bound(generic, instance), numbers)
    given = [t for written in inputs for t in reader.sequence(written, "in")]
    complete = not reader.problems                  # else what follows would repeat the same faults
    results: list[Declared] = []
    for written in outputs:
        found = reader.output(written, given) if complete or "{" in written.text else None
        if found is not None and found in results:
            reader.problems.append(Diagnostic("E114", f"the output '{found.name}' is listed twice", written.place))
        elif found is not None:
            results.append(found)
    if not outputs:
        reader.problems.append(Diagnostic("E115", "there are no outputs: the operator would compute nothing", place))
    written_to = [t.name for t in results]
    reader.tensors = {key: replace(t, access="inout") if t.access == "in" and t.name in written_to else t
                      for key, t in reader.tensors.items()}
    reader.check_clashes()
    if complete:
        reader.check_conditions(requirements)
    if reader.problems:
        raise CatenError(*reader.problems)
    if len(reader.tensors) + len(reader.sizes) > MAX_ARGUMENTS:
        raise error("E120", f"more than {MAX_ARGUMENTS} tensors and sizes together", place)
    return Signature(tuple(reader.tensors.values()), tuple(t.name for t in given), tuple(written_to),
                     tuple(name for name, _ in reader.sizes.values()), tuple(dict.fromkeys(reader.conditions)),
                     tuple(reader.positions.items()), generic if any(t.is_generic for t in generic) else (),
                     tuple(reader.inferred), tuple([n for n in reader.bindings.sizes if reader.key(n) in reader.sizes]))


def identifier(written: str, place: Place) -> str:
    """A declared name as a C identifier."""
    name = written.replace("-", "_")
    if (foreign := next((c for c in written if ord(c) > 127), None)) is not None:
        raise stray(foreign, place)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or written.endswith("-"):
        raise error("E106", f"{shown(written)} is not a name", place,
                    hint="a name is ASCII letters, digits, _ and -, and starts with a letter")
    if len(name) > MAX_NAME:
        raise error("E106", f"this name is longer than {MAX_NAME} characters", place)
    if name.lower() in CONSTANTS:
        raise error("E106", f"'{written}' is the name of a constant", place, hint="choose another name")
    return name


def dtype_of(word: str, place: Place) -> str:
    """The element type of a word, in any case."""
    key = word.lower()
    if key in SPELLINGS:
        return SPELLINGS[key]
    if key in LATER:
        raise error("E105", LATER[key], place)
    if word == "~" or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", word):
        raise error("E104", f"{shown(word)} is not an element type", place,
                    hint="write a type such as float, int32 or bool")
    hint = did_you_mean(word, list(SPELLINGS)) if len(word) > 2 else None
    if hint is not None:
        raise error("E104", f"unknown element type {shown(word)}", place, hint=hint)
    raise error("E105", f"{shown(word)} is not an element type", place,
                hint="name a type, such as float, double, int32 or bool; a type variable is one capital letter: T")


def dimension(extent: Expr, place: Place) -> Expr:
    """An extent, checked."""
    if isinstance(extent, Const) and int(extent.value) < 0:
        raise error("E108", f"a dimension cannot be negative: {extent.value}", place)
    if isinstance(extent, Const) and int(extent.value) > MAX_SIZE:
        raise error("E109", f"a dimension goes up to 2^40: {extent.value} is larger", place)
    return extent


def may_be_negative(extent: Expr) -> bool:
    """True if the extent may be negative for nonnegative sizes. It is then checked at every call."""
    match extent:
        case Const(value=value):
            return int(value) < 0
        case Var():
            return False
        case Op(fn="add" | "mul" | "min" | "floordiv" | "mod", args=args):
            return any(may_be_negative(a) for a in args)
        case Op(fn="max", args=args):
            return all(may_be_negative(a) for a in args)
    return True


def skip_to_close(cursor: Arithmetic, opened: Place) -> None:
    """Skip past the `)` that matches the `(` at `opened`."""
    depth = 1
    while depth:
        token = cursor.token
        if token.kind == "end":
            raise error("E101", "expected ')' to close the conditions", opened)
        depth += (token.text == "(") - (token.text == ")")
        cursor.i += 1
