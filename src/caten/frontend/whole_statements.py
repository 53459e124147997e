"""Statements over whole tensors among the loops of a body in Lisp: `(set m (sum X :axis 0))`, `(setf Y (* 2 Y))`.

They are evaluated as in a body over whole tensors, and become loops where they stand (`arrays.loop_statements`)."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..core.expr import Op
from ..core.monoids import is_monoid
from ..core.text import Atom, Form, Sexp
from ..errors import CatenError, Diagnostic
from ..loop.statements import Aref, Incf, Setf, Stmt
from ..tensor.values import AxisNames, Read, TensorProgram, ValueTable
from .arrays import handles
from .arrays.array_scope import ArrayScope
from .arrays.builder import Builder
from .arrays.called_composites import Composites
from .arrays.elementwise_functions import apply
from .arrays.lisp_arrays import LispArrays
from .arrays.loop_statements import LoopFacts, LoopStatements, NotInEveryIteration
from .arrays.selection import select
from .assignments import UPDATES, declare_local, output_instead
from .composite import Composite, parameters
from .expressions import element_of
from .lowering_state import Frame, same_name
from .scope import Array, Broken, Names, Number, Scope, Variable
from .typing import Term, Value


class WholeStatements:
    """The statements over whole tensors of one body, read once. `composites`: those that it may call as functions."""

    def __init__(self, composite: Composite, composites: Composites, names: Names) -> None:
        self.params = parameters(composite)
        self.scope = ArrayScope(self.params, composite.outputs, composites, composite.attributes)
        self.table = ValueTable(TensorProgram(composite.name, self.params), names)
        written = {word.replace("-", "_") for word in re.findall(r"[A-Za-z_][\w-]*", composite.code)}
        self.table.axis_names = AxisNames({*names.taken, *written})          # formulas have variables of loops, too
        self.facts = LoopFacts(self.params)
        self.at_entry = self.facts.context

    def is_one(self, form: Sexp, scope: Scope) -> bool:
        """Is this a statement over whole tensors: does it set one, or compute with one?"""
        if not isinstance(form, Form) or not form or not isinstance(form[0], Atom) or form[0].lower() not in (
                "set", "setf", *UPDATES):
            return False
        return any(isinstance(part, Atom) and _is_tensor(part, scope) for part in form[1::2]) or any(
            self.has_tensor(part, scope) for part in form[2::2])

    def has_tensor(self, form: Sexp, scope: Scope) -> bool:
        """Does an expression have a whole tensor as an operand?"""
        if isinstance(form, Atom):
            return _is_tensor(form, scope)
        if not isinstance(form, Form):
            return False
        if not form or not same_name(form[0], "aref"):
            return any(self.has_tensor(part, scope) for part in form)
        owner = scope.find(form[1]) if len(form) > 1 and isinstance(form[1], Atom) else None
        return (isinstance(owner, Array) and len(form) - 2 < len(owner.shape)) or any(
            self.has_tensor(part, scope) for part in form[2:])

    def statements(self, f: Frame, form: Form, scope: Scope) -> list[Stmt]:
        """The loops of a statement. Raises CatenError."""
        self.facts.context = self.at_entry
        for cond in self.facts.conditions:
            self.facts.context = self.facts.context.given(cond)
        for loop in f.work.loops:
            self.facts.context = self.facts.context.inside(loop)
        builder = Builder(self.table, f.typing, self.facts, lambda message, pos: 0, {}, {}, "lisp", form.pos)
        one = _Statement(self, f, builder, scope)
        try:
            one.assign(form)
        except NotInEveryIteration as problem:
            f.fail("E326", f"this needs {problem.cond}, which is not known to hold in every iteration", problem.pos,
                   "an (if …) around the statement states it")
        for cond, pos in self.facts.conditions.items():
            f.require(cond, pos, "the shapes do not fit together")
        for node, pos in one.made.marks.items():
            f.mark(node, pos)
            if isinstance(node, Aref) and node.buffer in one.fresh:
                f.work.unset.setdefault(node, Diagnostic(
                    "E227", f"this reads the output '{node.buffer}', which is no input, before anything sets it",
                    f.spot(pos)))
        return one.made.blocks[0].stmts

    def returned(self, f: Frame, composite: Composite, form: Sexp, outputs: Scope, scope: Scope) -> list[Stmt] | None:
        """The loops of `(return e…)` with expressions over whole tensors; None if there are none."""
        values: Sequence[Sexp] = form[1:] if isinstance(form, Form) else (form,)
        if len(values) == 1 and isinstance(values[0], Form) and values[0] and same_name(values[0][0], "values"):
            values = values[0][1:]
        if len(values) != len(composite.outputs) or not any(
                isinstance(v, Form) and self.has_tensor(v, scope) for v in values):
            return None
        stmts: list[Stmt] = []
        own, named = Scope(scope), list[Sexp]()
        for n, value in enumerate(values):
            named.append(_word(f"returned-{n}", value.pos))
            stmts += self.statements(f, _form(value.pos, "set", named[n], value), own)
        for name, value in zip(composite.outputs, named, strict=True):
            inner = Scope(own)
            target = outputs.find_exact(name)
            if target is not None:
                inner.declare(name, target)
            stmts += self.statements(f, _form(value.pos, "setf", _word(name, value.pos), value), inner)
        return stmts


class _Statement(LispArrays):
    """One statement, which sees the names of the loops around it."""

    def __init__(self, of: WholeStatements, f: Frame, builder: Builder, scope: Scope) -> None:
        super().__init__(builder, [], of.scope)
        self.f, self.bindings = f, scope
        self.made = LoopStatements(builder, of.params, of.table)
        self.names = [{}]                                # of `let`
        self.fresh: set[str] = set()                     # outputs that hold nothing at first

    def assign(self, form: Form) -> None:
        """Add the statements of a form."""
        fn, negated = UPDATES.get(form[0].lower(), ("", False))
        if len(form) % 2 == 0 or (fn and len(form) != 3):
            self.fail(form, "E222", f"({form[0]} …) takes pairs of a place and a value", f"write ({form[0]} Z value)")
        for target, value in zip(form[1::2], form[2::2], strict=True):
            operand = self.operand(value)
            if negated:
                operand = apply(self.builder.at(value.pos), "neg", operand)
            self.put_in(form, target, value, operand, fn)

    def put_in(self, form: Form, target: Sexp, value: Sexp, operand: handles.Operand, fn: str) -> None:
        b = self.builder.at(target.pos)
        if isinstance(target, Form):
            self.element(form, target, value, operand, fn)
            return
        assert isinstance(target, Atom)
        binding = self.bindings.find(target)
        if isinstance(binding, Number) and form[0].lower() == "set" and self.bindings.find_exact(target) is None:
            binding = None                               # `m` may be a local beside the size M
        match binding:
            case Array() | Variable():
                self.change(b, target, binding, value, operand, fn)
            case None if form[0].lower() == "set":
                self.declare(str(target), value, operand)
            case Broken():
                raise CatenError()
            case None:
                self.undefined(target)
            case _:
                self.fail(target, "E226", f"'{target}' is a {getattr(binding, 'what', 'constant')} and cannot be "
                          "assigned", f"take a local instead: (set x {target})")

    def change(self, b: Builder, target: Atom, binding: Array | Variable, value: Sexp, operand: handles.Operand,
               fn: str) -> None:
        """Store into a tensor or a local."""
        if isinstance(binding, Variable):
            term = self.term(operand, value.pos)
            self.f.meet(binding, term)
            place = self.f.place(binding)
            expr = self.f.typing.settle(term, place.dtype, f"'{target}'")
            self.made.add(Setf(place, expr) if not fn else Incf(place, expr, fn) if is_monoid(fn, place.dtype)
                          else Setf(place, Op(fn, (place, expr))))
            return
        if not binding.writable:
            self.fail(target, "E225", f"'{target}' is an input and no output: it cannot be changed",
                      output_instead(target, self.bindings))
        self.f.work.written.add(binding.name)
        whole = self.array(binding)
        if fn and not is_monoid(fn, binding.dtype):
            operand, fn = apply(b, fn, whole, operand), ""
        self.made.store(b, whole, operand, fn, self.builder.at(value.pos))

    def declare(self, name: str, value: Sexp, operand: handles.Operand) -> None:
        """A new local: a number, or an array."""
        b = self.builder.at(value.pos)
        if not isinstance(operand, handles.Array) or not operand.rank:
            self.made.add(*declare_local(self.f, self.bindings, name, self.term(operand, value.pos), value.pos))
            return
        local = self.made.local(name, operand.dtype, operand.shape, b)
        self.made.store(b, handles.Array(local, operand.dtype, operand.shape), operand)
        self.bindings.declare(name, Array(local, operand.dtype, self.made.memory[local][1],
                                          tuple(range(operand.rank)), True))

    def element(self, form: Form, target: Form, value: Sexp, operand: handles.Operand, fn: str) -> None:
        """`(setf (aref y i) (sum X))`"""
        array, index, _, _ = element_of(self.f, target, self.bindings)
        assert isinstance(array, Array)
        if not array.writable:
            self.fail(target, "E225", f"'{target[1]}' is an input and no output: it cannot be changed",
                      output_instead(str(target[1]), self.bindings))
        place = Aref(array.name, index, array.dtype)
        self.f.mark(place, target.pos)
        self.f.work.written.add(array.name)
        expr = self.f.typing.settle(self.term(operand, value.pos), array.dtype, f"'{target[1]}'")
        self.made.add(Setf(place, expr) if not fn else Incf(place, expr, fn) if is_monoid(fn, place.dtype)
                      else Setf(place, Op(fn, (place, expr))))

    def term(self, operand: handles.Operand, pos: int) -> Term:
        """A number over memory. E320 for an array."""
        if isinstance(operand, handles.Array):
            if operand.rank:
                self.builder.at(pos).fail("E320", f"a value of the shape {handles.spelled(operand.shape)} is no number")
            return Value(operand.dtype, pos, expr=self.made.expression(operand.at(())))
        if isinstance(operand, Value) and operand.expr is not None:
            return Value(operand.kind, pos, operand.depth, operand.size, self.made.expression(operand.expr))
        return operand

    # names

    def array(self, binding: Array) -> handles.Array:
        """A tensor or a local array, in memory."""
        self.made.memory[binding.name] = binding.dtype, binding.shape
        if binding.fresh:
            self.fresh.add(binding.name)
        return handles.Array(binding.name, binding.dtype, binding.shape)

    def find(self, name: str) -> tuple[str, Any] | None:
        known = super().find(name)
        if known is not None:
            return known
        match self.bindings.find(name):
            case Array() as binding:
                return name, self.array(binding)
            case Variable() as binding:
                place = self.f.place(binding)
                self.made.memory[place.buffer] = place.dtype, ()
                return name, Value(self.f.work.kinds[binding.key], 0, expr=Read(place.buffer, (), place.dtype))
            case Number(term=term):
                return name, term
            case Broken():
                raise CatenError()
        return None

    def _eval(self, form: Sexp) -> Any:
        if isinstance(form, Form) and form and same_name(form[0], "aref"):
            owner = self.eval(form[1]) if len(form) > 1 else None
            if not isinstance(owner, handles.Array):
                self.fail(form, "E223", "expected an array after aref", "write (aref X i j)")
            return select(self.builder.at(form.pos), owner, tuple([self.eval(part) for part in form[2:]]))
        return super()._eval(form)


def _word(text: str, pos: int) -> Atom:
    word = Atom(text)
    word.pos = pos
    return word


def _form(pos: int, head: str, *parts: Sexp) -> Form:
    form = Form((_word(head, pos), *parts))
    form.pos = pos
    return form


def _is_tensor(atom: Atom, scope: Scope) -> bool:
    binding = scope.find(atom)
    return isinstance(binding, Array) and bool(binding.shape)
