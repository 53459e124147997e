"""Python test lambdas, interpreted over a table of pure numpy functions: `lambda A, B, C: C + A @ B`.

The text is parsed with `ast` and walked; nothing is ever handed to Python's own evaluator, no attribute outside the
tables below is looked up, and no name but those is known, so a spec can compute and do nothing else. (Its time and
memory are limited by who calls this.)
"""
from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import CatenError, amount, did_you_mean
from . import lambda_text
from .lambda_text import METHODS, LambdaText, module_of

NUMPY: dict[str, Any] = {n: getattr(np, n) for n in lambda_text.NUMPY}
MATH: dict[str, Any] = {n: getattr(math, n) for n in lambda_text.MATH}
MODULES: dict[str, dict[str, Any]] = {"math": MATH} | {
    f"{numpy}{name}": {n: getattr(module, n) for n in lambda_text.MODULES[f"np{name}"]}
    for numpy in ("np", "numpy") for name, module in (("", np), (".fft", np.fft), (".linalg", np.linalg))}
BUILTINS: dict[str, Any] = {n: getattr(builtins, n) for n in lambda_text.BUILTINS}
ATTRIBUTES = frozenset(["T", "shape", "ndim", "size", "dtype", "real", "imag"])
STARRED_ARRAYS = (np.ndarray, np.generic)
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}


class Lambda(LambdaText):
    """A parsed test lambda, called by keyword."""

    def __call__(self, **arguments: Any) -> Any:
        """The value of the lambda. CatenError E803–E805 with the place in the spec when it cannot be computed."""
        with np.errstate(all="ignore"):
            return self._eval(self.node.body, dict(arguments))

    def _eval(self, node: ast.expr, env: Mapping[str, Any]) -> Any:
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise self.error("E802", f"a test lambda cannot use {type(node).__name__}", node.lineno, node.col_offset,
                             "it is one expression: arithmetic, numpy calls, indexing, lambdas, comprehensions")
        try:
            return handler(self, node, env)
        except CatenError:
            raise
        except RecursionError:
            raise self.error("E805", "the test code recurses too deeply", node.lineno, node.col_offset) from None
        except MemoryError:
            raise self.error("E805", "the test code needs more memory than it may have", node.lineno,
                             node.col_offset) from None
        except Exception as problem:       # what numpy or Python says about the user's expression is the message
            raise self.error("E805", f"the test code failed: {type(problem).__name__}: {problem}", node.lineno,
                             node.col_offset) from None

    def _name(self, node: ast.Name, env: Mapping[str, Any]) -> Any:
        if node.id in env:
            return env[node.id]
        if node.id in BUILTINS:
            return BUILTINS[node.id]
        raise self.no_name(node, [*env, *BUILTINS])

    def _attribute(self, node: ast.Attribute, env: Mapping[str, Any]) -> Any:
        module = module_of(node.value)
        if module is not None and module.split(".")[0] not in env:
            table = MODULES[module]
            if node.attr not in table:
                raise self.no_function(node, module, node.attr)
            return table[node.attr]
        value = self._eval(node.value, env)
        if isinstance(value, STARRED_ARRAYS) and (node.attr in ATTRIBUTES or node.attr in METHODS):
            return getattr(value, node.attr)
        raise self.error("E804", f"'.{node.attr}' may not be used in a test", node.lineno, node.col_offset,
                         did_you_mean(node.attr, sorted(ATTRIBUTES | METHODS)) or "only arrays have attributes here")

    def _call(self, node: ast.Call, env: Mapping[str, Any]) -> Any:
        function = self._eval(node.func, env)
        args = self._items(node.args, env)
        keywords = {}
        for k in node.keywords:
            if k.arg is None or k.arg in ("out", "where_out"):
                raise self.error("E802", "a test lambda cannot use ** or out=", node.lineno, node.col_offset)
            keywords[k.arg] = self._eval(k.value, env)
        return function(*args, **keywords)

    def _items(self, nodes: list[ast.expr], env: Mapping[str, Any]) -> list[Any]:
        """The values of a list of expressions, `*parts` spread."""
        items: list[Any] = []
        for n in nodes:
            if isinstance(n, ast.Starred):
                items.extend(self._eval(n.value, env))
            else:
                items.append(self._eval(n, env))
        return items

    def _lambda(self, node: ast.Lambda, env: Mapping[str, Any]) -> Any:
        names = [a.arg for a in node.args.args]

        def call(*args: Any) -> Any:
            if len(args) != len(names):
                raise self.error("E805", f"this lambda takes {amount(len(names), 'value')}, not {len(args)}",
                                 node.lineno,
                                 node.col_offset)
            return self._eval(node.body, {**env, **dict(zip(names, args, strict=True))})
        return call

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, env: Mapping[str, Any]) -> list[Any]:
        results: list[Any] = []

        def loop(depth: int, env: Mapping[str, Any]) -> None:
            if depth == len(node.generators):
                results.append(self._eval(node.elt, env))
                return
            part = node.generators[depth]
            for item in self._eval(part.iter, env):
                inner = {**env, **self._bind(part.target, item)}
                if all(self._eval(c, inner) for c in part.ifs):
                    loop(depth + 1, inner)
        loop(0, env)
        return results

    def _bind(self, target: ast.expr, value: Any) -> dict[str, Any]:
        if isinstance(target, ast.Name):
            return {target.id: value}
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = list(value)
            if len(parts) == len(target.elts):
                return {k: v for t, p in zip(target.elts, parts, strict=True) for k, v in self._bind(t, p).items()}
        raise self.error("E802", "a comprehension binds plain names", target.lineno, target.col_offset)

    def _compare(self, node: ast.Compare, env: Mapping[str, Any]) -> Any:
        left = self._eval(node.left, env)
        result: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._eval(right_node, env)
            result = COMPARE[type(op)](left, right)
            if len(node.ops) > 1 and not result:
                return result
            left = right
        return result

    def _logic(self, node: ast.BoolOp, env: Mapping[str, Any]) -> Any:
        stop_at = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self._eval(part, env)
            if bool(value) == stop_at:
                break
        return value

    def _constant(self, node: ast.Constant, env: Mapping[str, Any]) -> Any:
        return node.value


HANDLERS: dict[type[ast.expr], Callable[[Lambda, Any, Mapping[str, Any]], Any]] = {
    ast.Constant: Lambda._constant, ast.Name: Lambda._name, ast.Attribute: Lambda._attribute, ast.Call: Lambda._call,
    ast.Lambda: Lambda._lambda,
    ast.ListComp: Lambda._comprehension, ast.GeneratorExp: Lambda._comprehension, ast.Compare: Lambda._compare,
    ast.BoolOp: Lambda._logic,
    ast.BinOp: lambda s, n, env: BINARY[type(n.op)](s._eval(n.left, env), s._eval(n.right, env)),
    ast.UnaryOp: lambda s, n, env: UNARY[type(n.op)](s._eval(n.operand, env)),
    ast.IfExp: lambda s, n, env: s._eval(n.body if s._eval(n.test, env) else n.orelse, env),
    ast.Tuple: lambda s, n, env: tuple(s._items(n.elts, env)),
    ast.List: lambda s, n, env: s._items(n.elts, env),
    ast.Subscript: lambda s, n, env: s._eval(n.value, env)[s._eval(n.slice, env)],
    ast.Slice: lambda s, n, env: slice(*(None if e is None else s._eval(e, env) for e in (n.lower, n.upper, n.step))),
}
