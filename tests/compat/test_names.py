"""Names that mean something to C, to its library or to the generated code are names like any other."""
from __future__ import annotations

import numpy as np
import pytest

from caten import compiler
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.options import Options

WORDS = ["auto", "break", "case", "char", "const", "default", "double", "enum", "extern", "float", "goto", "inline", "int", "long", "register", "restrict",
         "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "_Bool",
         "main", "printf", "malloc", "free", "exit", "errno", "memcpy", "sqrtf", "floorf", "stdin", "NULL", "EOF", "INFINITY", "M_PI", "size_t",
         "int64_t", "uint8_t", "bool", "asm", "typeof", "linux", "unix", "I", "complex", "omp_get_thread_num", "CT_API", "CT_UNROLL", "ct_main", "this",
         "class", "template", "and_eq", "x__y", "__", "_1"]


def library(text: str):
    built = compiler.build([SpecText("names.toml", text)], Options(runtime="gcc", use_cache=False))
    return built.runtime.load(built.artifact, built.manifest)


def spec(name: str, tensor: str, scalar: str, size: str, loop: str, local: str) -> str:
    return f'''[[composite]]
name = "{name}"
inputs = ["{tensor}{{float}}[{size}]", "{scalar}{{float}}[]"]
outputs = ["{tensor}_2{{float}}[{size}]"]
[composite.implementation]
code = """
(dotimes ({loop} {size})
  (set {local} (* {scalar} (sqrt (abs (aref {tensor} {loop})))))
  (setf (aref {tensor}_2 {loop}) (floor {local})))
"""
'''


def test_words_of_c_are_names() -> None:
    """Each word in turn as tensor, scalar, size, loop and local, and as an operator's name: one library of all."""
    n = len(WORDS)
    picked = [[WORDS[(k + 7 * r) % n] for r in range(5)] for k in range(n)]
    ops = library("\n".join(spec(f"{word}-op", *names) for word, names in zip(WORDS, picked, strict=True)))
    x = np.array([0, 1, 2.5, 100], np.float32)
    for word in WORDS:
        np.testing.assert_array_equal(ops[f"{word}_op"](x, 2.0), np.floor(2 * np.sqrt(x)))


@pytest.mark.parametrize("word", ["main", "malloc", "int", "sqrtf", "_init"])
def test_operators_of_any_name(word: str) -> None:
    op = library(spec(word, "x", "a", "n", "i", "v"))
    np.testing.assert_array_equal(op(np.array([4], np.float32), 1.0), [2])


def test_operators_whose_symbols_collide_are_refused() -> None:
    with pytest.raises(CatenError) as refused:
        library(spec("A-B", "x", "a", "n", "i", "v") + spec("a_b", "x", "a", "n", "i", "v"))
    assert refused.value.exit_code == 1
    assert "a_b" in str(refused.value)
