"""Calls that change their argument, as the assignments that they are: `np.fill_diagonal(A, v)`, `np.exp(x, out=y)`.

The text of a body is rewritten before it is read, so whatever looks for stores finds them.
"""
from __future__ import annotations

import ast
from collections.abc import Callable

Change = Callable[[ast.Call], "tuple[ast.expr, ast.expr] | None"]


class Assignments(ast.NodeTransformer):
    """Statements that are such calls become assignments. A call with `out` whose value is used remains, unless `out`
    is made for it: `np.divide(a, b, out=np.zeros_like(a), where=b != 0)` chooses."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """`np.add(x, y, out=z)` as a statement."""
        call = node.value
        if isinstance(call, ast.Call) and (found := _change(call)) is not None:
            target, value = found
            made = ast.Assign(targets=[target], value=self.visit(value))
            return ast.fix_missing_locations(ast.copy_location(made, node))
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """`z = np.add(x, y, out=z)`"""
        call, out = node.value, _out_of(node.value)
        if (isinstance(call, ast.Call) and isinstance(out, ast.Name) and len(node.targets) == 1
                and isinstance(node.targets[0], ast.Name) and node.targets[0].id == out.id):
            return self.visit_Expr(ast.copy_location(ast.Expr(call), node))
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A result that is computed only where a condition holds, else what `out` holds."""
        self.generic_visit(node)
        out, where = _out_of(node), _keyword(node, "where")
        if isinstance(out, ast.Call) and where is not None:
            return ast.fix_missing_locations(ast.copy_location(
                _numpy(node, "where", where, _without(node, "out", "where"), out), node))
        return node


def _change(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """What a call changes, and its new elements; None if it is none that does."""
    out = _out_of(call)
    if isinstance(out, ast.Name | ast.Subscript):
        where, value = _keyword(call, "where"), _without(call, "out", "where")
        return _whole(out), value if where is None else _numpy(call, "where", where, value, _read(out))
    if not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    if isinstance(owner, ast.Name) and owner.id in ("np", "numpy"):
        change = FUNCTIONS.get(call.func.attr)
        return change(call) if change and call.args and isinstance(call.args[0], ast.Name | ast.Subscript) else None
    if call.func.attr in METHODS and isinstance(owner, ast.Name | ast.Subscript):
        return METHODS[call.func.attr](call)
    return None


def _out_of(node: ast.expr) -> ast.expr | None:
    return _keyword(node, "out") if isinstance(node, ast.Call) else None


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _without(call: ast.Call, *names: str) -> ast.Call:
    kept = [k for k in call.keywords if k.arg not in names]
    return ast.copy_location(ast.Call(func=call.func, args=call.args, keywords=kept), call)


def _whole(target: ast.Name | ast.Subscript) -> ast.expr:
    """All elements of what is named, to be assigned."""
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Store()), target)
    everything = ast.copy_location(ast.Constant(...), target)
    return ast.copy_location(ast.Subscript(_read(target), everything, ast.Store()), target)


def _read(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    assert isinstance(target, ast.Name)
    return ast.copy_location(ast.Name(target.id, ast.Load()), target)


def _numpy(at: ast.AST, path: str, *args: ast.expr, **keywords: ast.expr) -> ast.Call:
    """A call of a function of NumPy."""
    function: ast.expr = ast.Name("np", ast.Load())
    for part in path.split("."):
        function = ast.Attribute(function, part, ast.Load())
    made = ast.Call(function, list(args), [ast.keyword(name, value) for name, value in keywords.items()])
    for node in ast.walk(function):
        ast.copy_location(node, at)
    return ast.copy_location(made, at)


def _fill_diagonal(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    if len(call.args) != 2 or call.keywords:
        return None
    matrix, value = call.args
    assert isinstance(matrix, ast.Name | ast.Subscript)
    shape = ast.Starred(ast.Attribute(_read(matrix), "shape", ast.Load()), ast.Load())
    diagonal = _numpy(call, "eye", shape, dtype=ast.Name("bool", ast.Load()))
    return _whole(matrix), _numpy(call, "where", diagonal, value, _read(matrix))


def _put_along_axis(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    given = dict(zip(("arr", "indices", "values", "axis"), call.args, strict=False)) | {
        k.arg: k.value for k in call.keywords if k.arg}
    if given.keys() != {"arr", "indices", "values", "axis"} or not isinstance(array := given["arr"], ast.Name):
        return None
    at = _numpy(call, "put_along_axis.index", _read(array), given["indices"], given["axis"])
    return ast.copy_location(ast.Subscript(_read(array), at, ast.Store()), call), given["values"]


def _copyto(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    where = _keyword(call, "where")
    if len(call.args) != 2 or len(call.keywords) != (where is not None):
        return None
    target, source = call.args
    assert isinstance(target, ast.Name | ast.Subscript)
    return _whole(target), source if where is None else _numpy(call, "where", where, source, _read(target))


def _putmask(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    if len(call.args) != 3 or call.keywords or not isinstance(array := call.args[0], ast.Name):
        return None
    return ast.copy_location(ast.Subscript(_read(array), call.args[1], ast.Store()), call), call.args[2]


def _sorted(call: ast.Call) -> tuple[ast.expr, ast.expr]:
    assert isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name | ast.Subscript)
    array = call.func.value
    made = _numpy(call, call.func.attr, _read(array), *call.args)
    made.keywords = call.keywords
    return _whole(array), made


def _filled(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    assert isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name | ast.Subscript)
    return (_whole(call.func.value), call.args[0]) if len(call.args) == 1 and not call.keywords else None


FUNCTIONS: dict[str, Change] = {"fill_diagonal": _fill_diagonal, "put_along_axis": _put_along_axis, "copyto": _copyto,
                                "putmask": _putmask}
METHODS: dict[str, Change] = {"sort": _sorted, "partition": _sorted, "fill": _filled}
