"""Lowering of the Lisp body of an operator: text -> typed statements of the loop level."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.expr import Var
from ..core.text import Form, Sexp, read_forms
from ..errors import CatenError, Diagnostic, error
from ..loop.statements import Stmt
from .accumulators import accumulate_in_float32
from .arrays.called_composites import Composites
from .composite import MAX_NESTED_FORMS, Callees, Composite, fold
from .composite_calls import inline_call, weak_float
from .expressions import is_function
from .lowered_body import Lowered
from .lowering_state import Frame, Work
from .return_values import split, store_returned
from .scope import Array, Names, Number, Scope, declare_attributes
from .statement_forms import STATEMENTS, divided, sequence
from .typing import WEAK_INT, Typing, Value
from .unset_reads import unset_reads
from .whole_statements import WholeStatements

Key = tuple[int, ...]                 # the declaration of a local: the offsets of enclosing calls, then its own
MAX_PARENTHESES = 160                 # nesting of a body without the operands of functions
MAX_PASSES = 64                       # passes until the types of locals are stable


def lower_body(composite: Composite, callees: Callees, functions: Composites | None = None) -> Lowered:
    """Lower the whole body of a composite. `callees`: those it may `call`. `functions`: the same as functions of whole
    tensors; statements over whole tensors are allowed. Raises CatenError with every refusal.

    The type of a local is the join of all its assignments, so the body is read again until no type changes (a
    fixpoint).
    """
    return lower_forms(composite, read_forms(composite.code, composite.where, depth=MAX_NESTED_FORMS), callees,
                       signature_scope(composite.names, composite), functions=functions)


def lower_forms(composite: Composite, forms: Sequence[Sexp], callees: Callees, scope: Scope,
                code: str = "E230", functions: Composites | None = None) -> Lowered:
    """`lower_body` for forms already read, with the names of `scope`."""
    if not forms:
        raise error(code, "the body is empty", composite.where(0),
                    hint="write what the operator does: (dotimes (i M) (setf (aref C i) …))")
    check_nesting(composite, forms)
    kinds: dict[Key, str] = {}
    for _ in range(MAX_PASSES):
        before = dict(kinds)
        work, stmts = _read_once(composite, forms, callees, scope, kinds, functions)
        if kinds == before:
            break
    else:
        raise error("E317", "the types of the locals depend on each other in too long a chain",
                    composite.where(forms[0].pos), hint="cast some of them explicitly")
    if problems := list(work.diagnostics) or unset_outputs(composite, work, stmts):
        raise CatenError(*problems)
    stmts = accumulate_in_float32(stmts, {t.name: t.shape for t in composite.tensors}, work.names, work.positions)
    return Lowered(stmts, tuple(work.positions.values()), tuple(work.requirements), work.inlined)


def check_nesting(composite: Composite, forms: Sequence[Sexp]) -> None:
    """E239 if parentheses are nested too deeply."""
    level: list[Form] = [form for form in forms if isinstance(form, Form)]
    for _ in range(MAX_PARENTHESES):
        level = [part for form in level for part in _inside(form)]
    if level:
        raise error("E239", f"parentheses are nested deeper than {MAX_PARENTHESES}", composite.where(level[0].pos),
                    hint="compute a part of it in a statement of its own: (set x …)")


def _inside(form: Form) -> Iterator[Form]:
    """The forms directly inside a form; for a function those inside its operands, which are read without recursion."""
    stack = [part for part in form if isinstance(part, Form)]
    while stack:
        part = stack.pop()
        if is_function(part):
            stack.extend([operand for operand in part if isinstance(operand, Form)])
        else:
            yield part


def _read_once(composite: Composite, forms: Sequence[Sexp], callees: Callees, scope: Scope,
               kinds: dict[Key, str], functions: Composites | None) -> tuple[Work, tuple[Stmt, ...]]:
    """One pass with the types of locals known so far."""
    work = Work(Names(composite.names), kinds, frozenset(composite.sizes), callees, composite.file,
                STATEMENTS | {"call": inline_call})
    if functions is not None:
        work.whole = WholeStatements(composite, functions, work.names)
    frame = Frame(work, composite.where, Typing(composite.where, weak_float(composite.tensors)),
                  callers=(composite.name,))
    inner = Scope(scope)
    body, last = split(composite, forms)
    stmts = sequence(frame, body, inner)
    if last is not None:
        try:
            made = work.whole.returned(frame, composite, last, scope, inner) if work.whole is not None else None
            if made is None:
                made = store_returned(frame, composite, last, scope, inner)
            stmts += tuple(divided(frame, made, last.pos))
        except CatenError as problem:
            frame.report(problem)
    return work, stmts


def signature_scope(visible: Sequence[str], composite: Composite) -> Scope:
    """The scope of a body's start: the declared tensors and sizes, under the spellings of `visible`."""
    scope = Scope()
    declare_attributes(scope, composite.attributes)
    for spelled in visible:
        name = next(n for n in composite.names if fold(n) == fold(spelled))
        tensor = composite.tensor(name)
        if tensor is None:
            scope.declare(spelled, Number(Value(WEAK_INT, 0, expr=Var(name, "i64")), "size"))
        elif tensor.scalar:
            scope.declare(spelled, Number(Value(tensor.dtype, 0, expr=Var(name, tensor.dtype)), "scalar input"))
        else:
            scope.declare(spelled, Array(name, tensor.dtype, tensor.shape, tensor.order, tensor.access != "in",
                                         tensor.access == "out"))
    return scope


# outputs


def unset_outputs(composite: Composite, work: Work, stmts: Sequence[Stmt]) -> list[Diagnostic]:
    """E227 for an output (not also an input) that is used before it is set, E228 for an output that nothing writes."""
    fresh = frozenset([t.name for t in composite.tensors if t.access == "out"])
    fixed = frozenset([*composite.sizes, *[t.name for t in composite.tensors if t.scalar]])
    unset = unset_reads(stmts, fresh, fixed) if work.unset else {}
    problems: list[Diagnostic] = []
    for tensor in composite.tensors:
        if tensor.name in unset:
            problems.append(work.unset[unset[tensor.name]])
        elif tensor.access != "in" and tensor.name not in work.written:
            problems.append(Diagnostic("E228", f"the output '{tensor.name}' is never written",
                                       tensor.place or composite.where(0),
                                       "write its elements with (setf …), or take it off the outputs"))
    return problems
