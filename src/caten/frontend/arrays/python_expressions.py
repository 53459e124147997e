"""Expressions of bodies in Python: an abstract evaluator over static values, scalars and arrays."""
from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, ClassVar, NoReturn

from ...core.dtypes import DTYPES, is_complex
from ...core.dtypes import part as part_of
from ...core.expr import Op
from ...errors import amount, did_you_mean, near_function
from ...frozen import frozen
from ..typing import Term, Value
from . import array_products, masked_elements, masked_reductions
from .argument_binding import TYPE_WORDS, ElementType, Function, as_array, call, described, refuse_selected, unset
from .array_functions import (
    ATTRIBUTES,
    CONSTANTS,
    FILLED_BY_LOOP,
    LATER,
    METHODS,
    NUMPY,
    OF_DATA,
    OF_LIBRARY,
    OPERATOR_METHODS,
    PIECEWISE,
    PLAIN,
    SUBSCRIPTED,
)
from .array_scatters import AT
from .array_scope import ArrayScope
from .builder import Builder
from .called_composites import CalledComposite, call_composite
from .composed_functions import COMPOSED
from .elementwise_functions import apply, choose, converted, number_of, term_of
from .handles import Array, Operand, Selected, Unset, constant_of
from .masked_elements import any_selected, lifted, mask_in, selected, subscripted
from .numpy_calls import NumpyOperator, call_numpy, operator_of
from .python_builtins import BUILTINS, Builtin
from .python_source import PythonSource
from .selection import select
from .size_functions import MATH, as_float, whole_quotient
from .type_limits import TypeLimits

MAX_STEPS = 50_000             # evaluated nodes of one body, those of unrolled loops each time
MOST_NAMES = 12                # in a hint
LISTS = "caten ops lists the functions of the library, docs/language.md those of NumPy"

PLAIN_TYPES: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "shl", ast.RShift: "shr", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.Invert: "not"}
COMPARE: dict[type[ast.cmpop], str] = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt",
                                       ast.GtE: "ge"}


@frozen
class Module:
    """`np`, `np.linalg`, `math`: a prefix of names."""

    described: ClassVar[str] = "a module"
    prefix: str


@frozen
class Subscripted:
    """`np.r_`, `np.mgrid`: what brackets make of what is in them."""

    name: str
    make: Callable[[Builder, Any], Any]

    @property
    def described(self) -> str:
        """For a message."""
        return f"np.{self.name} without brackets"


@frozen
class Method:
    """`x.sum`, before its call."""

    function: Function | NumpyOperator | CalledComposite
    array: Any


@dataclass
class UserFunction:
    """A lambda or a function of the body: each call evaluates its text again."""

    name: str
    parameters: tuple[str, ...]
    body: ast.expr | list[ast.stmt]
    closure: dict[str, Any] = field(repr=False)
    defaults: dict[str, Any] = field(default_factory=dict, repr=False)


class PythonExpressions:
    """Evaluates expressions of one body. `run`: evaluates the statements of a function of the body. `generated`: the
    value of a call that a loop over elements computes, None for others."""

    def __init__(self, builder: Builder, source: PythonSource, scope: ArrayScope,
                 run: Callable[[UserFunction, dict[str, Any]], Any],
                 generated: Callable[[ast.Call], Any]) -> None:
        self.builder, self.source, self.scope, self.run, self.generated = builder, source, scope, run, generated
        self.steps = 0
        self.running: list[UserFunction] = []           # functions of the body, the innermost last
        self.handlers = HANDLERS

    def at(self, node: ast.AST) -> Builder:
        """The builder for an operation that is written here."""
        return self.builder.at(self.source.position(node))

    def fail(self, node: ast.AST, code: str, message: str, hint: str | None = None) -> NoReturn:
        self.at(node).fail(code, message, hint)

    def count(self, node: ast.AST) -> None:
        """E239 if the body does too much."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            self.fail(node, "E239", f"this body evaluates more than {MAX_STEPS} expressions",
                      "loops over numbers that are known are unrolled")

    def eval(self, node: ast.expr) -> Any:
        """The value of an expression."""
        self.count(node)
        handler = self.handlers.get(type(node))
        if handler is None:
            self.fail(node, "E244", f"a body cannot use {_words(node)}")
        value = handler(self, node)
        if isinstance(value, Term) and (number := number_of(value)) is not None:
            return number
        return value

    def operand(self, node: ast.expr) -> Operand:
        """An array or a scalar."""
        return self.as_operand(node, self.eval(node))

    def as_operand(self, node: ast.expr, value: Any) -> Operand:
        """A value as an array or a scalar."""
        b = self.at(node)
        found = as_array(b, value) if isinstance(value, tuple | list) else term_of(value, b.pos)
        if isinstance(value, Selected):
            refuse_selected(b)
        if found is None:
            if isinstance(value, Unset):
                unset(self.at(node), value)
            self.fail(node, "E322", f"an array or a number is needed here, not {described(value)}")
        # an argument has no place in the body but that of its use
        return replace(found, pos=b.pos) if isinstance(found, Term) and not found.pos else found

    # names

    def name(self, node: ast.Name) -> Any:
        if node.id in self.scope.values:
            return self.scope.values[node.id]
        if node.id in ("np", "numpy"):
            return Module("np")
        if node.id == "math":
            return Module("math")
        if node.id in BUILTINS:
            return BUILTINS[node.id]
        if node.id in PLAIN:
            return PLAIN[node.id]
        if node.id in ("float", "int", "bool", "complex"):
            return ElementType(TYPE_WORDS[node.id])
        composite = self.scope.composites.function(node.id)
        if composite is not None and composite.name.replace("-", "_") == node.id:
            return composite
        if hasattr(builtins, node.id):
            self.fail(node, "E220", f"bodies are compiled, not executed: there is no {node.id}", LISTS)
        known = [*self.scope.values, *self.scope.composites.names()]
        shown = ", ".join(known[:MOST_NAMES]) + ", …" * (len(known) > MOST_NAMES)
        library = [*PLAIN, *BUILTINS, *self.scope.composites.library_names()]
        function = f"write np.{node.id}" if node.id in NUMPY else near_function(node.id, library)
        self.fail(node, "E220", f"there is no '{node.id}' here", did_you_mean(node.id, known) or (
            _listed(function) if function else f"known here: {shown}, np, {', '.join(list(BUILTINS)[:5])}, …; {LISTS}"))

    def attribute(self, node: ast.Attribute) -> Any:
        owner = self.eval(node.value)
        if isinstance(owner, Module):
            return self._of_module(node, owner)
        if node.attr == "dtype" and isinstance(owner, Array | Unset | Term | Selected):
            return ElementType(self.builder.typing.storage(owner.kind) if isinstance(owner, Term) else owner.dtype)
        if isinstance(owner, ElementType) and node.attr in ("itemsize", "kind", "name"):
            return owner.itemsize if node.attr == "itemsize" else owner.kind if node.attr == "kind" else owner.name
        if isinstance(owner, TypeLimits) and node.attr in owner.numbers:
            return owner.numbers[node.attr]
        if isinstance(owner, Function | NumpyOperator):
            path = owner.name.removeprefix("np.") if isinstance(owner, Function) else owner.path
            if (name := f"{path}.{node.attr}") in NUMPY:
                return NUMPY[name]
        if isinstance(owner, list) and node.attr in ("append", "extend"):
            return getattr(owner, node.attr)
        if isinstance(owner, dict) and node.attr in ("keys", "values", "items"):
            return Builtin(node.attr, lambda b, args, keywords: list(getattr(owner, node.attr)()))
        if isinstance(owner, Unset) and node.attr in ("shape", "ndim", "size", "T"):
            owner = Array(owner.name, owner.dtype, owner.shape)
        if isinstance(owner, Unset):
            unset(self.at(node), owner)
        if isinstance(owner, Selected) and node.attr in masked_elements.ATTRIBUTES:
            return masked_elements.ATTRIBUTES[node.attr](self.at(node), owner)
        if isinstance(owner, Selected) and node.attr in METHODS:
            return Method(METHODS[node.attr], owner)
        if isinstance(owner, Array | Term | int | float) and node.attr in (*ATTRIBUTES, *METHODS):
            if node.attr in ATTRIBUTES:
                return call(self.at(node), ATTRIBUTES[node.attr], [owner], {})
            return Method(METHODS[node.attr], owner)
        if node.attr in OPERATOR_METHODS and isinstance(owner, Array):
            return Method(self._of_module(node, Module("np")), owner)
        if node.attr in LATER and isinstance(owner, Array):
            self.later(node, node.attr)
        if isinstance(owner, Function | NumpyOperator):
            self._no_method(node, owner.name if isinstance(owner, Function) else f"np.{owner.path}")
        what = f"{described(owner)[0].upper()}{described(owner)[1:]}"
        known = [*ATTRIBUTES, *METHODS, "dtype"]
        function = f"write {node.attr}(…)" if node.attr in self.scope.composites.library_names() else None
        self.fail(node, "E221", f"{what} has no '.{node.attr}'",
                  function or near_function(node.attr, known) or f"arrays have {', '.join(known[:MOST_NAMES])}, …")

    def _no_method(self, node: ast.Attribute, function: str) -> NoReturn:
        """E221 for something else of a function than what its name may be joined with: `np.sin.reduce`."""
        if node.attr == "at" and function.removeprefix("np.") in AT:
            self.fail(node, "E221", f"{function}.at has no value", f"it is a statement, {function}.at(Z, index, value)")
        having = [f"np.{name.rpartition('.')[0]}" for name in NUMPY if name.endswith(f".{node.attr}")]
        shown = ", ".join(having[:MOST_NAMES]) + ", …" * (len(having) > MOST_NAMES)
        self.fail(node, "E221", f"{function} has no '.{node.attr}'",
                  f"these have: {shown}" if having else "np.add has .reduce, .accumulate, .reduceat, .outer and .at")

    def _of_module(self, node: ast.Attribute, module: Module) -> Any:
        name = f"{module.prefix}.{node.attr}".removeprefix("np.")
        if module.prefix == "math":
            name = node.attr
            if name in MATH:
                return MATH[name]
            names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}
            name = names.get(name, name)
        if module.prefix != "math" and name in COMPOSED:
            signature, make = COMPOSED[name]
            return Function(f"np.{name}", signature, partial(make, self.numpy))
        if name in NUMPY:
            return NUMPY[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in SUBSCRIPTED:
            return Subscripted(name, SUBSCRIPTED[name])
        if name in TYPE_WORDS:
            return ElementType(TYPE_WORDS[name])
        if module.prefix != "math" and (function := operator_of(self.scope.composites, name, OF_LIBRARY.get(name))):
            return function
        if name in LATER or name in OF_LIBRARY:
            self.later(node, f"np.{name}")
        if any(each.startswith(f"{name}.") for each in (*NUMPY, *LATER, *OF_LIBRARY)):
            return Module(f"np.{name}")
        known = [*NUMPY, *COMPOSED, *OF_LIBRARY, *CONSTANTS, *SUBSCRIPTED, *TYPE_WORDS]
        library = self.scope.composites.library_names()
        hint = (f"write {name}(…) without {module.prefix}." if name in PLAIN or name in library
                else near_function(name, [*known, *library]))
        self.fail(node, "E221", f"there is no {module.prefix}.{node.attr} in a body", _listed(hint))

    def numpy(self, b: Builder, path: str, *args: Any, **keywords: Any) -> Any:
        """The result of a function of NumPy that is an operator of the library."""
        function = operator_of(self.scope.composites, path, OF_LIBRARY.get(path))
        if isinstance(function, CalledComposite):
            return call_composite(b, function, args, keywords)
        if function is None:
            b.fail("E327", f"np.{path} needs the library of operators, which is not there")
        return call_numpy(b, function, args, keywords)

    def later(self, node: ast.AST, name: str) -> NoReturn:
        """E327; E328 for a result whose length depends on data."""
        if (known := OF_DATA.get(name.removeprefix("np."))) is not None:
            self.fail(node, "E328", f"how many elements {name} makes is not known before the call",
                      f"{known}; {FILLED_BY_LOOP}")
        own, hint = name.rpartition(".")[2], "loops over elements can compute it"
        if name in OF_LIBRARY:
            hint = f"write np.{name}(…)"
        elif name.startswith("np.random."):
            hint = "a body has no state: random_bits, randint and others of `caten ops` take a key"
        elif self.scope.composites.of_library(own) is not None:
            hint = f"write {own}(…) without np.: `caten ops {own}` tells what it takes"
        self.fail(node, "E327", f"{name} is not supported yet in expressions over whole arrays", hint)

    # operators

    def binary(self, node: ast.BinOp) -> Any:
        left = self.before(self.eval(node.left), node.right)
        right = self.eval(node.right)
        return self.combine(node, node.op, left, right, node.left, node.right)

    def combine(self, node: ast.AST, op: ast.operator, left: Any, right: Any, at_left: ast.expr,
                at_right: ast.expr) -> Any:
        """The value of `left op right`."""
        b = self.at(node)
        if any_selected(left, right) and isinstance(op, ast.MatMult):
            return masked_reductions.product(b, *[
                side if isinstance(side, Selected) else b.array(self.as_operand(at, side))
                for side, at in ((left, at_left), (right, at_right))])
        if any_selected(left, right):
            return lifted(b, lambda x, y: self.combine(node, op, x, y, at_left, at_right), left, right)
        if isinstance(left, tuple | list) and isinstance(right, type(left)) and isinstance(op, ast.Add):
            return type(left)([*left, *right])
        if isinstance(left, tuple | list) and isinstance(op, ast.Mult) and isinstance(right, int):
            return self.sized(node, left, len(left) * right) * right
        x, y = self.as_operand(at_left, left), self.as_operand(at_right, right)
        if isinstance(op, ast.MatMult):
            return array_products.matmul(b, *[z if isinstance(z, Array) else array_products.needs_arrays(b, "@")
                                            for z in (x, y)])
        return apply(b, BINARY[type(op)], x, y)

    def sized(self, node: ast.AST, value: Any, length: int) -> Any:
        """E239 for a list that is too long."""
        if length > MAX_STEPS:
            self.fail(node, "E239", f"a list of {length} elements")
        return value

    def unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand)
        value = self.eval(node.operand)
        if isinstance(value, Selected):
            return value if isinstance(node.op, ast.UAdd) else lifted(
                self.at(node), lambda v: apply(self.at(node), UNARY[type(node.op)], v), value)
        x = self.as_operand(node.operand, value)
        return x if isinstance(node.op, ast.UAdd) else apply(self.at(node), UNARY[type(node.op)], x)

    def compare(self, node: ast.Compare) -> Any:
        left, result = self.eval(node.left), None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            left = self.before(left, right_node)
            right = self.eval(right_node)
            each = self._compared(node, op, left, right)
            if result is not None and not (isinstance(result, bool) and isinstance(each, bool)):
                self.fail(node, "E326", "a chain of comparisons needs numbers that are known",
                          "write (a < b) & (b < c) for arrays")
            result = each if result is None else result and each
            left = right
        return result

    def _compared(self, node: ast.Compare, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Is | ast.IsNot):
            return (left is right) == isinstance(op, ast.Is)
        if isinstance(op, ast.In | ast.NotIn):
            return self._among(node, left, right) if isinstance(op, ast.In) else self._not_among(node, left, right)
        if any_selected(left, right):
            return lifted(self.at(node), lambda x, y: self._compared(node, op, x, y), left, right)
        fn = COMPARE[type(op)]
        x, y = term_of(left, self.source.position(node)), term_of(right, self.source.position(node))
        if x is None or y is None:
            if fn not in ("eq", "ne") or isinstance(x, Array) or isinstance(y, Array):
                self.as_operand(node, left if x is None else right)
            equal = self._equal(left, right)
            if equal is None:
                self.fail(node, "E326", "whether these shapes are equal is not known when the body is compiled",
                          "a size of a shape that is no number may have any value")
            return equal == (fn == "eq")
        found = apply(self.at(node), fn, x, y)
        known = number_of(found)
        return found if known is None else known

    def _among(self, node: ast.Compare, left: Any, right: Any) -> Any:
        """`x in (0, 2)`: of what is known, or a bool for each call."""
        if isinstance(left, Array) and left.rank:
            self.fail(node, "E326", f"'in' looks for a number, not for {described(left)}",
                      "np.isin looks for each element")
        if isinstance(right, tuple | list | range) and isinstance(left, Array | Term):
            tests = [self._compared(node, ast.Eq(), left, each) for each in right]
            found = [test for test in tests if not isinstance(test, bool)]
            if True in tests or not found:
                return True in tests
            return reduce(lambda x, y: apply(self.at(node), "or", x, y), found)
        if not isinstance(right, tuple | list | str | dict | range):
            self.fail(node, "E326", "'in' needs a list that is known")
        return left in right

    def _not_among(self, node: ast.Compare, left: Any, right: Any) -> Any:
        found = self._among(node, left, right)
        return not found if isinstance(found, bool) else apply(self.at(node), "not", found)

    def _equal(self, left: Any, right: Any) -> bool | None:
        """Equality of static values; None for shapes whose sizes may be equal or not."""
        if isinstance(left, tuple | list) and isinstance(right, tuple | list):
            if len(left) != len(right):
                return False
            answers = [self._equal(x, y) for x, y in zip(left, right, strict=True)]
            return False if False in answers else None if None in answers else True
        if isinstance(left, Term) or isinstance(right, Term):
            x, y = term_of(left, 0), term_of(right, 0)
            if not isinstance(x, Term) or not isinstance(y, Term):
                return False
            same = Op("eq", (self.builder.typing.default(x), self.builder.typing.default(y)))
            return True if self.builder.sizes.proves(same) else False if self.builder.sizes.refutes(same) else None
        return bool(left == right)

    def logic(self, node: ast.BoolOp) -> Any:
        stop_at = isinstance(node.op, ast.Or)
        for part in node.values[:-1]:
            value = self.eval(part)
            if self.as_truth(part, value) == stop_at:
                return value
        return self.eval(node.values[-1])

    def truth(self, node: ast.expr) -> bool:
        """A condition that is known when the body is compiled. E326 for others."""
        return self.as_truth(node, self.eval(node))

    def as_truth(self, node: ast.AST, value: Any) -> bool:
        """A value as a condition."""
        if isinstance(value, Array | Unset):
            self.fail(node, "E326", "whether elements of an array are true is not known when the body is compiled",
                      "np.where(condition, a, b) chooses element by element; & | ~ combine conditions")
        if isinstance(value, Term):
            cond = self.builder.typing.default(value)
            for answer, holds in ((True, self.builder.sizes.proves), (False, self.builder.sizes.refutes)):
                if cond.dtype == "bool" and holds(cond):
                    return answer
            self.fail(node, "E326", "this condition is not known when the body is compiled",
                      "np.where(condition, a, b) chooses at the call")
        return bool(value)

    def choice(self, node: ast.IfExp) -> Any:
        test = self.eval(node.test)
        if isinstance(test, Array) and not test.rank:              # an element: it chooses at the call
            return choose(self.at(node), test, self.operand(node.body), self.operand(node.orelse))
        return self.eval(node.body if self.as_truth(node.test, test) else node.orelse)

    # subscripts and calls

    def subscript(self, node: ast.Subscript) -> Any:
        owner = self.eval(node.value)
        if isinstance(owner, Subscripted):
            return owner.make(self.at(node), self.eval(node.slice))
        if isinstance(owner, dict):
            return self._of_dictionary(node, owner, self.eval(node.slice))
        if isinstance(owner, tuple | list | str):
            return self._of_list(node, owner, self.eval(node.slice))
        if isinstance(owner, Unset):
            unset(self.at(node), owner)
        if isinstance(owner, Selected):
            return subscripted(self.at(node.slice), owner, self.eval(node.slice))
        if isinstance(owner, Value) and owner.kind in DTYPES:
            owner = self.at(node).array(owner)              # an array without axes
        if not isinstance(owner, Array):
            self.fail(node, "E311", f"{described(owner)} has no elements" if not isinstance(owner, Term)
                      else "a number has no elements")
        at = self.eval(node.slice)
        if mask_in(at) is not None:
            return selected(self.at(node.slice), owner, at)
        return select(self.at(node.slice), owner, at)

    def _of_list(self, node: ast.Subscript, owner: Any, at: Any) -> Any:
        if not isinstance(at, int | slice):
            self.fail(node, "E326", "the index into a list is a number that is known when the body is compiled")
        try:
            return owner[at]
        except (IndexError, TypeError, ValueError):
            self.fail(node, "E323", f"the index {at} is outside a list of {len(owner)}")

    def _of_dictionary(self, node: ast.Subscript, owner: dict[Any, Any], key: Any) -> Any:
        if not isinstance(key, int | float | str | tuple):
            self.fail(node, "E326", "the key of a dictionary is known when the body is compiled")
        if key not in owner:
            self.fail(node, "E323", f"there is no key {key!r} in this dictionary", did_you_mean(str(key), [
                each for each in owner if isinstance(each, str)]) or f"its keys: {', '.join(map(repr, owner))}")
        return owner[key]

    def dictionary(self, node: ast.Dict) -> dict[Any, Any]:
        """Keys that are known, and values of any kind."""
        made = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None or not isinstance(known := self.eval(key), int | float | str | tuple):
                self.fail(key or node, "E244", "the keys of a dictionary are numbers, texts and tuples that are known")
            made[known] = self.kept(self.at(value), self.eval(value))
        return made

    def slice(self, node: ast.Slice) -> slice:
        return slice(*[None if part is None else self.eval(part) for part in (node.lower, node.upper, node.step)])

    def call(self, node: ast.Call) -> Any:
        function = self.eval(node.func)
        if isinstance(function, Builtin) and (found := self.generated(node)) is not None:
            return found
        args = list(self.spread(node.args))
        keywords = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail(node, "E244", "a body cannot use ** in a call")
            keywords[keyword.arg] = self.eval(keyword.value)
        b = self.at(node)
        if isinstance(function, Method):
            args, function = [function.array, *args], function.function
        match function:
            case Function(name=name) if name == f"np.{PIECEWISE}":
                return call(b, function, *self._applied(node, args, keywords))
            case Function() if any_selected(*args, *keywords.values()):
                return masked_reductions.called(b, function, args, keywords)
            case Function():
                return call(b, function, args, keywords)
            case NumpyOperator() if any_selected(*args, *keywords.values()):
                return masked_reductions.called(b, function, args, keywords)
            case Builtin(name=name) if name in masked_reductions.OF_PYTHON and any_selected(*args):
                return masked_reductions.called(b, masked_reductions.OF_PYTHON[name], args, keywords)
            case Builtin():
                return function.make(b, args, keywords)
            case CalledComposite():
                return call_composite(b, function, args, keywords)
            case NumpyOperator():
                return call_numpy(b, function, args, keywords)
            case UserFunction():
                return self._of_user(node, function, args, keywords)
            case ElementType():
                if isinstance(node.func, ast.Name) and node.func.id in PLAIN_TYPES and len(args) == 1 and isinstance(
                        args[0], int | float) and math.isfinite(args[0]):
                    return PLAIN_TYPES[node.func.id](args[0])       # a number of Python stays one
                if (size := self._plain(node, args, keywords)) is not None:
                    return size
                if len(args) == 2 and not keywords and is_complex(function.dtype):
                    return self._complex(node, function.dtype, args)
                if len(args) != 1 or keywords or (x := term_of(args[0], b.pos)) is None:
                    b.fail("E322", "a conversion takes one number or array")
                return converted(b, function.dtype, x)
        if callable(function):                              # append and extend of a list
            if len(args) != 1 or keywords:
                b.fail("E322", f"{function.__name__} of a list takes 1 argument, not {len(args) + len(keywords)}")
            function(self.kept(b, args[0] if function.__name__ == "append" else self.sequence(node, args[0])))
            return None
        self.fail(node, "E221", f"{described(function)} is no function")

    def _applied(self, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of `np.piecewise`, its functions applied to the array."""
        given = {**dict(zip(("x", "condlist", "funclist"), args, strict=False)), **keywords}
        pieces, x = given.get("funclist"), given.get("x")
        if not isinstance(pieces, tuple | list) or x is None:
            return args, keywords
        made = []
        for piece in pieces:
            if isinstance(piece, UserFunction):
                piece = self._of_user(node, piece, [x], {})
            elif isinstance(piece, Function):
                piece = call(self.at(node), piece, [x], {})
            elif isinstance(piece, NumpyOperator):
                piece = call_numpy(self.at(node), piece, [x], {})
            made.append(piece)
        return [], {**given, "funclist": made}

    def _plain(self, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Operand | None:
        """`int(n / 2)` and `float(n)` of sizes: numbers of Python."""
        match node.func, args:
            case ast.Name("int"), [Term() as x] if not keywords:
                return whole_quotient(self.at(node), "trunc", x)
            case ast.Name("float"), [Term(kind="int?") as x] if not keywords:
                return as_float(self.at(node), x)
        return None

    def _complex(self, node: ast.Call, dtype: str, args: list[Any]) -> Any:
        """`np.complex64(re, im)`, or `complex(re, im)` of the type that these parts have."""
        b, plain = self.at(node), isinstance(node.func, ast.Name)
        parts = [term_of(each, b.pos) for each in args]
        if None in parts:
            b.fail("E322", "a complex number is made of two numbers or arrays")
        return apply(b, "complex", *[x if plain else converted(b, part_of(dtype), x) for x in parts if x is not None])

    def before(self, value: Any, *later: ast.expr) -> Any:
        """A value that is evaluated before others: values do not change."""
        return value

    def kept(self, b: Builder, value: Any) -> Any:
        """What a list gets, as it is now: values do not change."""
        return value

    def spread(self, nodes: Sequence[ast.expr]) -> Iterator[Any]:
        """The values of a list of expressions, `*parts` spread."""
        for n, node in enumerate(nodes):
            if isinstance(node, ast.Starred):
                yield from self.sequence(node.value, self.eval(node.value))
            else:
                yield self.before(self.eval(node), *nodes[n + 1:])

    def sequence(self, node: ast.AST, value: Any) -> list[Any]:
        """The items of a list, a range, or an array along its first axis, if their number is known."""
        if isinstance(value, Array) and value.rank and (count := constant_of(value.shape[0])) is not None:
            return [select(self.at(node), value, n) for n in range(min(count, MAX_STEPS))]
        if not isinstance(value, tuple | list | range):
            self.fail(node, "E326", f"the number of items of {described(value)} is not known when the body is compiled")
        return list(self.sized(node, value, len(value)))

    def _of_user(self, node: ast.Call, function: UserFunction, args: list[Any], keywords: dict[str, Any]) -> Any:
        names = function.parameters
        twice = keywords.keys() & {*names[:len(args)]}
        given = function.defaults | dict(zip(names, args, strict=False)) | keywords
        if len(args) > len(names) or set(given) != set(names) or twice:
            self.fail(node, "E322", f"{function.name} takes {amount(len(names), 'argument')}, not "
                                    f"{len(args) + len(keywords)}",
                      f"{function.name}({', '.join(names)})")
        self.running.append(function)
        try:
            return self.run(function, given)
        except RecursionError:
            self._refuse_recursion(node)
            raise
        finally:
            self.running.pop()

    def _refuse_recursion(self, node: ast.Call) -> None:
        """E233 if the function that is called here runs already: not its expressions are nested, but its calls."""
        *callers, function = self.running
        starts = [n for n, caller in enumerate(callers) if caller.body is function.body]
        if starts:
            names = [f.name for f in self.running[starts[-1]:]]
            chain = " calls ".join(names if len(names) > 2 else [function.name, "itself"])
            self.fail(node, "E233", f"{chain}: this recursion has no end, or is too deep", "write a loop")

    def function(self, node: ast.Lambda) -> UserFunction:
        return self.defined(node, "this lambda", node.body)

    def defined(self, node: ast.Lambda | ast.FunctionDef, name: str, body: ast.expr | list[ast.stmt]) -> UserFunction:
        """A function of the body, with the values of its defaults."""
        args = node.args
        if args.vararg or args.kwarg:
            self.fail(node, "E244", "a function of a body takes plain names: no *args or **kwargs")
        names = [a.arg for a in (*args.posonlyargs, *args.args)]
        optional = zip([*names[len(names) - len(args.defaults):], *[a.arg for a in args.kwonlyargs]],
                       [*args.defaults, *args.kw_defaults], strict=True)
        defaults = {each: self.eval(value) for each, value in optional if value is not None}
        return UserFunction(name, (*names, *[a.arg for a in args.kwonlyargs]), body, self.scope.values, defaults)

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        found: list[Any] = []
        outer = self.scope.values

        def loop(depth: int) -> None:
            if depth == len(node.generators):
                found.append(self.eval(node.elt))
                return
            part = node.generators[depth]
            for item in self.sequence(part.iter, self.eval(part.iter)):
                self.bind(part.target, item)
                if all(self.truth(cond) for cond in part.ifs):
                    loop(depth + 1)

        self.scope.values = dict(outer)
        try:
            loop(0)
        finally:
            self.scope.values = outer
        return found

    def bind(self, target: ast.expr, value: Any) -> None:
        """Give a value to a name, or its items to several."""
        if isinstance(target, ast.Name):
            self.scope.values[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            items = self.sequence(target, value)
            if len(items) != len(target.elts):
                self.fail(target, "E229", f"{amount(len(items), 'value')} for {amount(len(target.elts), 'name')}")
            for part, item in zip(target.elts, items, strict=True):
                self.bind(part, item)
        else:
            self.fail(target, "E244", "only names can be bound here")

    def constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bytes):
            self.fail(node, "E244", "a body cannot use bytes")
        return node.value


def _listed(hint: str | None) -> str:
    """A hint, and where all functions are listed."""
    return f"{hint}{' ' if hint.endswith('?') else '; '}{LISTS}" if hint else LISTS


def _words(node: ast.AST) -> str:
    return {"Await": "await", "Yield": "yield", "NamedExpr": ":=", "JoinedStr": "f-strings",
            "Set": "sets", "DictComp": "dictionaries", "SetComp": "sets", "Starred": "* here"}.get(
                type(node).__name__, type(node).__name__)


HANDLERS: dict[type[ast.expr], Callable[[Any, Any], Any]] = {
    ast.Constant: PythonExpressions.constant, ast.Name: PythonExpressions.name,
    ast.Attribute: PythonExpressions.attribute, ast.BinOp: PythonExpressions.binary,
    ast.UnaryOp: PythonExpressions.unary, ast.Compare: PythonExpressions.compare, ast.BoolOp: PythonExpressions.logic,
    ast.IfExp: PythonExpressions.choice, ast.Subscript: PythonExpressions.subscript, ast.Slice: PythonExpressions.slice,
    ast.Call: PythonExpressions.call, ast.Lambda: PythonExpressions.function,
    ast.Dict: PythonExpressions.dictionary,
    ast.ListComp: PythonExpressions.comprehension, ast.GeneratorExp: PythonExpressions.comprehension,
    ast.Tuple: lambda s, n: tuple(s.spread(n.elts)), ast.List: lambda s, n: list(s.spread(n.elts))}
