"""`break`, `continue` and `return` in loops over elements, which run to their end: what comes after a jump is put under
a condition, and after a `break` nothing is done in the iterations that are left. A `return` is a `break`, and one after
the loop. A loop whose iterations all begin with the same condition is left when it no longer holds (`loop.early_exit`),
so they cost nothing."""
from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

Statements = list[ast.stmt]


def without_jumps(node: ast.For, going: str) -> tuple[ast.For, bool]:
    """A loop without jumps, and whether it needs the variable `going`, which is true until a `break`."""
    if not any(map(_jumps, node.body)):
        return node, False
    leaves = any(isinstance(jump, ast.Break) for statement in node.body for jump in _jumps(statement))
    body = _guarded(node.body, going)
    if leaves:
        body = [ast.If(_name(going, ast.Load()), body, [])]
    orelse: Statements = node.orelse
    if leaves and orelse:
        orelse = [ast.If(_name(going, ast.Load()), orelse, [])]
    made = ast.For(target=node.target, iter=node.iter, body=body, orelse=orelse)
    return ast.fix_missing_locations(ast.copy_location(made, node)), leaves


def _guarded(statements: Sequence[ast.stmt], going: str) -> Statements:
    """Statements of a loop, up to a jump; those after a conditional one in the branches without it."""
    done: Statements = []
    for n, statement in enumerate(statements):
        if isinstance(statement, ast.Break | ast.Continue):
            if isinstance(statement, ast.Break):
                stop = ast.Assign([_name(going, ast.Store())], ast.Constant(False))
                done.append(ast.copy_location(stop, statement))
            return done or [ast.copy_location(ast.Pass(), statement)]
        if _jumps(statement):
            assert isinstance(statement, ast.If)
            rest = statements[n + 1:]
            arms = [_guarded([*arm, *rest], going) for arm in (statement.body, statement.orelse)]
            done.append(ast.copy_location(ast.If(statement.test, arms[0] or [ast.Pass()], arms[1]), statement))
            return done
        done.append(statement)
    return done


def _jumps(node: ast.AST) -> list[ast.stmt]:
    """The jumps in a statement that are of the loop around it."""
    return list(_found(node))


def _found(node: ast.AST) -> Iterator[ast.stmt]:
    if isinstance(node, ast.Break | ast.Continue):
        yield node
    elif isinstance(node, ast.If):
        for each in (*node.body, *node.orelse):
            yield from _found(each)


def _name(name: str, context: ast.expr_context) -> ast.Name:
    return ast.Name(name, context)


def returns(node: ast.AST) -> bool:
    """Does a statement return, but for the functions in it?"""
    if isinstance(node, ast.Return):
        return True
    return isinstance(node, ast.If | ast.For) and any(map(returns, (*node.body, *node.orelse)))


def without_returns(node: ast.For, name: str, arrays: Container[str]) -> Statements:
    """A loop that is left with `break` where it returned, and returns after it. `name`: the beginning of the names for
    what is returned, and whether. Before the loop they hold numbers that nothing reads. `arrays`: the names of arrays
    that are there before the loop; these need no other names."""
    first = next(_returned(node)).value
    values = _values(first)
    same = [each if each in arrays else None for each in returned_names([node])]
    names = [f"{name}_{n}" if each is None else each for n, each in enumerate(same)]
    before = [_assigned(each, ast.Constant(False if _is_bool(value) else 0))
              for each, known, value in zip(names, same, values, strict=True) if known is None]
    loaded: list[ast.expr] = [_name(each, ast.Load()) for each in names]
    result = ast.Tuple(loaded, ast.Load()) if isinstance(first, ast.Tuple) else loaded[0] if loaded else None
    flag = _name(name, ast.Load())

    def replaced(statements: Sequence[ast.stmt]) -> Statements:
        done: Statements = []
        for s in statements:
            if isinstance(s, ast.Return):
                done += [ast.copy_location(_assigned(each, value), s)
                         for each, known, value in zip(names, same, _values(s.value), strict=False) if known is None]
                left = (_assigned(name, ast.Constant(True)), ast.Break())
                return [*done, *[ast.copy_location(each, s) for each in left]]
            if isinstance(s, ast.If) and returns(s):
                s = ast.copy_location(ast.If(s.test, replaced(s.body), replaced(s.orelse)), s)
            elif isinstance(s, ast.For) and returns(s):
                inner = ast.For(target=s.target, iter=s.iter, body=replaced(s.body), orelse=s.orelse)
                done.append(ast.copy_location(inner, s))
                s = ast.copy_location(ast.If(flag, [ast.Break()], []), s)
            done.append(s)
        return done

    after = node.orelse if any(map(returns, node.orelse)) else []       # it is not left otherwise: see `is_unclear`
    loop = ast.For(target=node.target, iter=node.iter, body=replaced(node.body), orelse=[] if after else node.orelse)
    made = [*before, _assigned(name, ast.Constant(False)), loop, ast.If(flag, [ast.Return(result)], []), *after]
    return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in made]


def is_unclear(node: ast.For) -> bool:
    """Is it a loop that is left with `break`, and returns in its `else`?"""
    return any(map(returns, node.orelse)) and any(isinstance(jump, ast.Break) for s in node.body for jump in _jumps(s))


def returned_names(statements: Sequence[ast.stmt]) -> list[str | None]:
    """The name of each value that statements return; None for one that is not the same name everywhere."""
    found = [[getattr(value, "id", None) for value in _values(each.value)]
             for statement in statements for each in _returned(statement)]
    if not found or len({len(each) for each in found}) > 1:
        return [None] * (len(found[0]) if found else 0)
    return [each[0] if len(set(each)) == 1 else None for each in zip(*found, strict=True)]


def _values(returned: ast.expr | None) -> list[ast.expr]:
    return returned.elts if isinstance(returned, ast.Tuple) else [] if returned is None else [returned]


def _returned(node: ast.AST) -> Iterator[ast.Return]:
    if isinstance(node, ast.Return):
        yield node
    elif isinstance(node, ast.If | ast.For):
        for each in (*node.body, *node.orelse):
            yield from _returned(each)


def _is_bool(value: ast.expr) -> bool:
    return isinstance(value, ast.Compare | ast.BoolOp) or (isinstance(value, ast.Constant) and isinstance(
        value.value, bool)) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([_name(name, ast.Store())], value)
