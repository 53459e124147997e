"""Whole-array bodies in Lisp: `(setf Z (+ A B))`, `(set s (sum X :axis 0))`, `(return (relu Z))`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ...core.scalars import COMPARISONS, OPERATORS
from ...core.text import Atom, Form, Quoted, Sexp
from ...errors import did_you_mean
from ..composite import fold
from ..typing import Term
from ..vocabulary import CONSTANTS, FUNCTIONS, HABITS, UNBOUNDED, VARIADIC
from .argument_binding import call, described, unset
from .array_functions import LATER, NUMPY
from .array_scope import ArrayScope
from .builder import Builder
from .called_composites import CalledComposite, call_composite
from .elementwise_functions import apply, choose, converted, number_of, term_of, variadic
from .handles import Array, NeedsLoops, Operand, Unset
from .slice_assignment import assign

UPDATES = {"incf": "add", "decf": "sub", "mulcf": "mul", "divcf": "div", "maxcf": "max", "mincf": "min"}
ELEMENTS = frozenset((
    "dotimes", "loop", "when", "unless", "aref", "array"))              # statements over single elements


class LispArrays:
    """Evaluates the statements of one body."""

    def __init__(self, builder: Builder, forms: Sequence[Sexp], scope: ArrayScope) -> None:
        self.builder, self.forms, self.scope = builder, forms, scope
        self.names: list[dict[str, Any]] = [scope.values]               # innermost last

    def fail(self, form: Sexp, code: str, message: str, hint: str | None = None) -> NoReturn:
        self.builder.at(form.pos).fail(code, message, hint)

    def run(self) -> tuple[Any, ...] | None:
        """Evaluate the body: what it returns, or None. `end`: the offset of the `(return …)`."""
        self.end = 0
        if not self.forms:
            self.builder.fail("E230", "the body is empty", "write what the operator does: (setf Y (* 2 X))")
        for n, form in enumerate(self.forms):
            last = n == len(self.forms) - 1
            if isinstance(form, Atom) and last:
                self.end = form.pos
                return (self.eval(form),)
            if isinstance(form, Form) and form and same(form[0], "return"):
                self.end = form.pos
                if not last:
                    self.fail(form, "E229", "(return …) may only stand at the end of a body")
                parts = form[1:]
                if len(parts) == 1 and isinstance(parts[0], Form) and parts[0] and same(parts[0][0], "values"):
                    parts = parts[0][1:]
                return tuple([self.returned(part) for part in parts])
            self.statement(form)
        return None

    def returned(self, form: Sexp) -> Any:
        """A returned value. An output that is set holds it already."""
        return self.eval(form)

    # statements

    def statement(self, form: Sexp) -> None:
        if not isinstance(form, Form) or not form or not isinstance(form[0], Atom):
            self.fail(form, "E224", "expected a statement here", "a statement is (setf …), (set …), (return …), …")
        head = form[0].lower()
        if head in ELEMENTS or (head in ("setf", *UPDATES) and any(
                isinstance(part, Form) and part and same(part[0], "aref") for part in form[1:])):
            raise NeedsLoops(form)
        handler = STATEMENTS.get(head)
        if handler is not None:
            handler(self, form)
        elif head in FUNCTIONS or head in NUMPY or head in EXPRESSIONS:
            self.fail(form, "E224", f"the value of ({form[0]} …) is not used",
                      "store it, (setf place value), or name it, (set x value)")
        else:
            self.unknown(form)

    def setf(self, form: Form) -> None:
        """`(setf Z e …)`: all elements of an output or a local."""
        if len(form) < 3 or len(form) % 2 == 0:
            self.fail(form, "E222", f"({form[0]} …) takes pairs of a place and a value", f"write ({form[0]} Z value)")
        for target, value in zip(form[1::2], form[2::2], strict=True):
            self.put(target, self.operand(value), declares=form[0].lower() == "set", pos=value.pos)

    def put(self, target: Sexp, operand: Operand, declares: bool = False, pos: int | None = None) -> None:
        """Set an output, or give a local its value."""
        name, old = self.target(target, declares)
        if isinstance(old, Array | Unset) and name in self.scope.params:
            self.scope.check_change(self.builder.at(target.pos), name, old)
            self.scope.values[name] = assign(self.builder.at(target.pos if pos is None else pos), old, Ellipsis,
                                             operand)
        else:
            self.bind(name, operand)

    def update(self, form: Form) -> None:
        """`(incf Z e)` and its like."""
        fn = UPDATES[form[0].lower()]
        if len(form) not in ((2, 3) if fn in ("add", "sub") else (3,)):
            self.fail(form, "E222", f"({form[0]} …) takes a place and a value", f"write ({form[0]} Z value)")
        value: Operand | None = self.operand(form[2]) if len(form) == 3 else term_of(1, form.pos)
        name, old = self.target(form[1], declares=False)
        b = self.builder.at(form.pos)
        if isinstance(old, Unset):
            unset(self.builder.at(form[1].pos), old)
        before = term_of(old, form.pos)
        if before is None or value is None:
            self.fail(form[1], "E322", f"an array or a number is needed here, not {described(old)}")
        made = apply(b, fn, before, value)
        if isinstance(old, Array):
            self.scope.check_change(b, name, old)
            made = assign(b, Array(name, old.dtype, old.shape) if name in self.scope.params else old, Ellipsis, made)
        self.bind(name, made)

    def target(self, form: Sexp, declares: bool) -> tuple[str, Any]:
        """The name that is assigned, and what it stands for. E220 for an unknown one, unless it is declared."""
        if not isinstance(form, Atom):
            self.fail(form, "E223", "expected the name of an output or a local here", "(setf Z value)")
        found = self.find(form)
        if found is None and not declares:
            self.undefined(form)
        name, value = found or (str(form), None)
        if name in self.scope.sizes and not declares:
            self.fail(form, "E226", f"'{name}' is a size and cannot be assigned",
                      f"take a local instead: (set x {name})")
        return name, value

    def bind(self, name: str, value: Any) -> None:
        for names in reversed(self.names):
            if name in names:
                names[name] = value
                return
        self.names[-1][name] = value

    def progn(self, form: Form) -> None:
        for part in form[1:]:
            self.statement(part)

    def called(self, form: Form) -> None:
        """`(call Layer X W Y)`: the inputs of a composite, then its other outputs."""
        callee = self.composite(form)
        separate = [name for name in callee.outputs if name not in callee.inputs]
        usage = f"write (call {callee.name} {' '.join((*callee.inputs, *separate))})"
        if len(form) - 2 != len(callee.inputs) + len(separate):
            self.fail(form, "E234", f"{callee.name} takes {len(callee.inputs) + len(separate)} arguments, its inputs "
                      f"and then its other outputs, not {len(form) - 2}", usage)
        targets = dict(zip((*callee.inputs, *separate), form[2:], strict=True))
        made = self.call(form, callee, [targets[name] for name in callee.inputs])
        for name, value in zip(callee.outputs, made if isinstance(made, tuple) else (made,), strict=True):
            self.put(targets[name], value)

    def composite(self, form: Form) -> CalledComposite:
        """The composite that a `call` names."""
        if len(form) < 2 or not isinstance(form[1], Atom):
            self.fail(form, "E223", "expected the name of a composite here", "write (call Name X Y …)")
        found = self.scope.composites.function(form[1])
        if found is None:
            known = [*self.scope.composites.names(), *self.scope.composites.library_names()]
            self.fail(form[1], "E232", f"there is no composite '{form[1]}'", did_you_mean(form[1], known)
                      or f"include the file that defines it, or put {form[1]}.toml on the -I path")
        return found

    def call(self, form: Form, callee: CalledComposite, inputs: Sequence[Sexp]) -> Any:
        """The outputs of a composite."""
        return call_composite(self.builder.at(form.pos), callee, [self.eval(part) for part in inputs], {})

    # expressions

    def eval(self, form: Sexp) -> Any:
        """The value of a form."""
        value = self._eval(form)
        if isinstance(value, Term) and (known := number_of(value)) is not None:
            return known
        return value

    def operand(self, form: Sexp) -> Operand:
        """An array or a scalar."""
        value = self.eval(form)
        found = term_of(value, form.pos)
        if found is None:
            if isinstance(value, Unset):
                unset(self.builder.at(form.pos), value)
            self.fail(form, "E322", f"an array or a number is needed here, not {described(value)}")
        return found

    def _eval(self, form: Sexp) -> Any:
        if isinstance(form, Quoted):
            return str(form)
        if isinstance(form, Atom):
            return self.atom(form)
        if not form or not isinstance(form[0], Atom):
            self.fail(form, "E223", "expected (function operand …) here",
                      "remove the extra parentheses" if form else None)
        head, b = form[0].lower(), self.builder.at(form.pos)
        if head == "aref":
            raise NeedsLoops(form)
        if head == "call":
            callee = self.composite(form)
            return self.call(form, callee, form[2:])
        if head in EXPRESSIONS:
            return EXPRESSIONS[head](self, form)
        named = any(isinstance(part, Atom) and part.startswith(":") for part in form[1:])       # (max A :axis 0)
        if head in FUNCTIONS and not (named and head in NUMPY):
            return self.function(form, FUNCTIONS[head])
        if head in NUMPY:
            args, keywords = self.arguments(form)
            return call(b, NUMPY[head], args, keywords)
        self.unknown(form)

    def function(self, form: Form, fn: str) -> Operand:
        """A function of the operator table on any number of operands."""
        arity, given = OPERATORS[fn].arity, len(form) - 1
        many = fn in VARIADIC or fn in COMPARISONS
        if given != arity and not (many and given >= (2 if fn in COMPARISONS else 1)):
            self.fail(form, "E222", f"({form[0]} …) takes {'at least 1 part' if many else arity}, not {given}",
                      f"write ({form[0]} {' '.join('abc'[:arity])}{' …' if many else ''})")
        operands = tuple([self.operand(part) for part in form[1:]])
        b = self.builder.at(form.pos)
        return variadic(b, fn, operands) if many else apply(b, fn, *operands)

    def arguments(self, form: Form) -> tuple[list[Any], dict[str, Any]]:
        """Arguments by position, and by name: `:axis 1`."""
        args: list[Any] = []
        keywords: dict[str, Any] = {}
        parts = iter(form[1:])
        for part in parts:
            if isinstance(part, Atom) and part.startswith(":"):
                value = next(parts, None)
                if value is None:
                    self.fail(part, "E222", f"{part} has no value")
                keywords[part[1:].lower().replace("-", "_")] = self.static(value)
            else:
                args.append(self.static(part))
        return args, keywords

    def static(self, form: Sexp) -> Any:
        """An argument: a list without a function is one of its parts, `(reshape X (M N))`."""
        if isinstance(form, Form) and (not form or not isinstance(form[0], Atom) or not self.is_function(form[0])):
            return tuple([self.static(part) for part in form])
        return self.eval(form)

    def is_function(self, head: Atom) -> bool:
        return self.find(head) is None and (head.lower() in FUNCTIONS or head.lower() in EXPRESSIONS
                                            or head.lower() == "call" or head.lower() in NUMPY
                                            or read_digits(head) is None)

    def atom(self, form: Atom) -> Any:
        """A number, a name or a constant."""
        if (found := read_digits(form)) is not None:
            return found
        known = self.find(form)
        if known is not None:
            return known[1]
        if form.lower() in CONSTANTS:
            return CONSTANTS[form.lower()]
        self.undefined(form)

    def find(self, name: str) -> tuple[str, Any] | None:
        """The innermost binding of exactly this spelling, else one that is equal up to case and -/_."""
        for equal in (lambda x, y: x == y.replace("-", "_"), lambda x, y: fold(x) == fold(y)):
            for names in reversed(self.names):
                for each, value in names.items():
                    if equal(each, name):
                        return each, value
        return None

    def where(self, form: Form) -> Operand:
        if len(form) != 4:
            self.fail(form, "E222", f"({form[0]} condition a b) takes 3 parts, not {len(form) - 1}")
        return choose(self.builder.at(form.pos), *[self.operand(part) for part in form[1:]])

    def cond(self, form: Form) -> Operand:
        clauses = [part for part in form[1:] if isinstance(part, Form) and len(part) == 2]
        if len(clauses) != len(form) - 1 or not clauses or not (isinstance(clauses[-1][0], Atom)
                                                               and clauses[-1][0].lower() == "t"):
            self.fail(form, "E222", "as a value, a clause of (cond …) has a condition and one value",
                      "(cond (condition value) … (t value))")
        arms = [(self.operand(clause[0]), self.operand(clause[1]), clause.pos) for clause in clauses[:-1]]
        value = self.operand(clauses[-1][1])
        for test, chosen, pos in reversed(arms):
            value = choose(self.builder.at(pos), test, chosen, value)
        return value

    def cast(self, form: Form) -> Operand:
        if len(form) != 3 or not isinstance(form[1], Atom):
            self.fail(form, "E223", "the type comes first in (cast …)", "write (cast float …)")
        dtype = self.builder.typing.type_word(form[1], form[1].pos)
        return converted(self.builder.at(form.pos), dtype, self.operand(form[2]))

    def let(self, form: Form) -> Any:
        if len(form) != 3 or not isinstance(form[1], Form) or any(
                not isinstance(pair, Form) or len(pair) != 2 or not isinstance(pair[0], Atom) for pair in form[1]):
            self.fail(form, "E223", "expected a list of bindings and a value here", "write (let ((x e) …) value)")
        own: dict[str, Any] = {}
        self.names.append(own)
        try:
            for name, value in form[1]:
                own[str(name)] = self.eval(value)
            return self.eval(form[2])
        finally:
            self.names.pop()

    def listed(self, form: Form) -> tuple[Any, ...]:
        return tuple([self.static(part) for part in form[1:]])

    def undefined(self, atom: Atom) -> NoReturn:
        known = [name for names in self.names for name in names]
        self.fail(atom, "E220", f"there is no '{atom}' here",
                  did_you_mean(atom, known) or f"known here: {', '.join(known[:10])}")

    def unknown(self, form: Form) -> NoReturn:
        head = form[0].lower()
        if head in UNBOUNDED:
            self.fail(form, "E240", f"there is no '{form[0]}': every loop runs a number of times that is known when it "
                      "starts")
        of_library = self.scope.composites.of_library(head) is not None
        if head in LATER and not of_library:
            self.fail(form, "E327", f"({form[0]} …) is not supported yet in expressions over whole arrays",
                      "loops over elements can compute it")
        known = [*FUNCTIONS, *NUMPY, *EXPRESSIONS, *STATEMENTS]
        hint = f"write ({HABITS[head]} …)" if head in HABITS else did_you_mean(form[0], known)
        if of_library:
            hint = f"it is an operator of the library: (call {head} …)"
        self.fail(form, "E221", f"there is no function or statement '{form[0]}'", hint)


def same(form: Sexp, word: str) -> bool:
    """Is the form this word?"""
    return isinstance(form, Atom) and form.lower() == word


def read_digits(atom: Atom) -> int | float | None:
    """A number as written, or None."""
    text = atom.lower().replace("d", "e").replace("f", "e") if atom[:1].isdigit() or atom[:1] in "+-." else ""
    try:
        return int(text)
    except ValueError:
        try:
            return float(text) if any(c.isdigit() for c in text) else None
        except ValueError:
            return None


STATEMENTS: dict[str, Callable[[LispArrays, Form], None]] = {
    "setf": LispArrays.setf, "set": LispArrays.setf, "progn": LispArrays.progn, "call": LispArrays.called,
    **dict.fromkeys(UPDATES, LispArrays.update)}
EXPRESSIONS: dict[str, Callable[[LispArrays, Form], Any]] = {
    "where": LispArrays.where, "if": LispArrays.where, "cond": LispArrays.cond, "cast": LispArrays.cast,
    "let": LispArrays.let, "let*": LispArrays.let, "list": LispArrays.listed}
