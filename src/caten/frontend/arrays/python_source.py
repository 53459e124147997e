"""The text of a body in Python: parsed, never executed, and where each node stands in it."""
from __future__ import annotations

import ast
import warnings
from collections.abc import Callable

from ...errors import Place, error
from .changes_in_place import Assignments


class PythonSource:
    """The statements of a body, and offsets of its nodes. E243 if it is no Python."""

    def __init__(self, code: str, place: Callable[[int], Place]) -> None:
        self.code, self.lines = code, code.split("\n")
        first = next((line for line in self.lines if line.strip() and not line.strip().startswith("#")), "")
        self.extra = int(first[:1] in (" ", "\t"))                  # lines that are put in front of an indented text
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")                     # of Python about foreign text
                tree = ast.parse("if True:\n" + code if self.extra else code)
        except SyntaxError as problem:
            pos = self.offset(problem.lineno or 1, (problem.offset or 1) - 1)
            raise error("E243", f"this is no Python: {problem.msg}", place(pos)) from None
        except (ValueError, MemoryError, RecursionError):
            raise error("E243", "this is no Python, or nests too deeply", place(0)) from None
        tree = Assignments().visit(tree)
        self.body: list[ast.stmt] = tree.body
        if self.extra and tree.body and isinstance(tree.body[0], ast.If):
            if len(tree.body) > 1:
                raise error("E243", "this is no Python: the first lines are indented and this one is not",
                            place(self.position(tree.body[1])))
            self.body = tree.body[0].body

    def offset(self, line: int, column: int) -> int:
        """The offset of a line of Python's count, and a column in characters."""
        row = min(max(line - 1 - self.extra, 0), len(self.lines) - 1)
        return min(self.starts[row] + max(column, 0), len(self.code))

    def position(self, node: ast.AST) -> int:
        """The offset of a node; of an operator between two operands its own."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        start = self._characters(line, column)
        if isinstance(node, ast.BinOp):
            end = self._characters(node.left.end_lineno or line, node.left.end_col_offset or 0)
            while end < len(self.code) and self.code[end] in " \t\n\\)":
                end += 1
            return end
        return start

    def _characters(self, line: int, column: int) -> int:
        """The offset of a column that counts bytes of UTF-8."""
        row = min(max(line - 1 - self.extra, 0), len(self.lines) - 1)
        text = self.lines[row]
        return self.offset(line, column if text.isascii() else len(text.encode()[:column].decode(errors="ignore")))
