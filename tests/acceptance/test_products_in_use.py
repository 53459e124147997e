"""What a build makes, used as its users do: from C, from Python with caten and without, several operators in one library."""
from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from command_line import ROOT, caten

import caten as library
from caten.core.size_formula import evaluate, formula
from caten.runtime.manifest import operators

COPY = """[composite]
name = "Twice"
inputs = ["A{float}[M N]", "B{float}[M N]"]
outputs = ["B"]
[implementation]
code = "(dotimes (i M) (dotimes (j N) (setf (aref B i j) (* 2.0 (aref A i j)))))"
"""
GATHER = """[composite]
name = "Take"
inputs = ["X{float}[N](where N = (* 2 H))", "I{int64}[M]", "Y{float}[M]", "k{int64}[]", "Z{float}[H]"]
outputs = ["Y"]
[implementation]
code = "(dotimes (i M) (setf (aref Y i) (+ (aref Z 0) (* (aref X (aref I i)) (aref X k)))))"
"""
SCRATCH = """[composite]
name = "Walk"
inputs = ["X{float}[M N]", "Y{float}[M N]"]
outputs = ["Y"]
[implementation]
code = \"\"\"
(dotimes (i M)
  (array row float (N))
  (set s 0.0)
  (dotimes (j N) (incf s (aref X i j)) (setf (aref row j) s))
  (dotimes (j N) (setf (aref Y i j) (+ (aref row j) (aref row (- (- N 1) j))))))
\"\"\"
"""
NAMES = """[composite]
name = "main"
inputs = ["e{float}[result]", "e_want{float}[result]", "state{float}[result]", "expected{float}[]", "next_number{float}[result]"]
outputs = ["e", "failures{float}[result]", "is_close{float}[result]"]
[implementation]
code = \"\"\"
(dotimes (i result)
  (incf (aref e i) (* expected (aref e_want i)))
  (setf (aref failures i) (+ (aref state i) (aref next_number i)))
  (setf (aref is_close i) (* 2.0 (aref state i))))
\"\"\"
"""
ONE = ("softmax", "argmax", "complex_multiply", "transpose", "prefix_sum", "gemm_half", "gemv_int4")
SEVERAL = ("dot", "layernorm", "histogram", "complex_multiply")


def build(*words: str) -> None:
    result = caten(*words)
    assert (result.code, result.err.removeprefix("caten: compiling\n")) == (0, ""), result.err      # said after a while


def sample(name: str) -> str:
    return str(ROOT / "samples" / f"{name}.toml")


@pytest.mark.slice(2)
@pytest.mark.parametrize("specs", [*[(n,) for n in ONE], SEVERAL], ids="+".join)
def test_the_example_builds_with_its_first_line_and_agrees(specs: tuple[str, ...], folder: Path, tool: Any) -> None:
    tool("cc")
    build(*map(sample, specs), "--emit=so,example", "-o", "my lib;x.so", "-O1")
    line = Path("my lib;x_main.c").read_text().split("\n", 1)[0].removeprefix("/* ").removesuffix(" */")
    done = subprocess.run(line.replace("cc ", "cc -Wall -Wextra -Werror -Wno-unused-function ", 1), shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("ok\n")


def test_an_example_whose_arguments_are_called_as_its_own_variables(folder: Path, tool: Any) -> None:
    tool("cc")
    Path("op.toml").write_text(NAMES)
    build("op.toml", "--emit=so,header,example", "-o", "op.so", "-O0")
    subprocess.run(["cc", "-Wall", "-Werror", "op_main.c", "./op.so", "-Wl,-rpath,$ORIGIN", "-lm", "-o", "op"], check=True)
    assert subprocess.run(["./op"], capture_output=True, text=True).stdout == "ok\n"


def test_a_library_of_several_specs(folder: Path, tool: Any) -> None:
    tool("nm")
    build(*map(sample, SEVERAL), "-o", "libops.so", "-O1")
    manifest = json.loads(Path("libops.json").read_text())
    ops = [op["op"] for op in manifest["ops"]]
    assert ops == ["Dot", "LayerNorm", "Histogram", "ComplexMultiply"]
    exported = {line.split()[-1] for line in subprocess.run(["nm", "-D", "--defined-only", "libops.so"], capture_output=True, text=True, check=True).stdout.splitlines()}
    names = {s for op in operators(manifest) for s in op["symbols"].values()} | {op["symbol"] + end for op in operators(manifest) for end in ("_manifest", "_python")}
    assert {n for n in exported if not n.startswith("_")} == names | {"ct_manifest", "ct_dot_Python_parts"}
    header = Path("libops.h").read_text()
    for op in operators(manifest):
        assert header.count(f"int32_t {op['symbols']['call']}(") == header.count(f"int32_t {op['symbols']['workspace']}(") == 1
    loaded = library.load("libops.so")
    assert list(loaded) == ops
    assert loaded.manifest == manifest
    x, y = np.arange(9, dtype=np.float32), np.ones(9, np.float32)
    assert float(loaded.Dot(x, y, np.zeros((), np.float32))) == 36
    with pytest.raises(AttributeError, match="did you mean 'Dot'"):
        loaded.Dott  # noqa: B018   the access is what is tested


def test_a_wrapper_needs_no_caten(folder: Path) -> None:
    build(*map(sample, SEVERAL), "--emit=so,python", "-o", "ops.so", "-O1")
    code = ("import sys, numpy as np; sys.path.insert(0, '.')\nimport ops_numpy as ops\n"
            "print(float(ops.Dot(np.arange(9, dtype=np.float32), np.ones(9, np.float32), np.zeros((), np.float32))), 'caten' in sys.modules, hasattr(ops, 'LayerNorm'))\n"
            "try: ops.Dot(np.arange(9.0), np.ones(9), np.zeros(()))\nexcept TypeError as wrong: print(wrong)")
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=folder)
    first, *rest = done.stdout.splitlines()
    assert first == "36.0 False True", done.stderr
    assert "must have elements of type float32, and has float64" in rest[0]
    build(sample("axpy"), "--emit=so=other.so,python,example", "-O1")        # the library under a name of its own
    assert "other.so" in Path("other_numpy.py").read_text()
    assert "other_main.c -L. -l:other.so" in Path("other_main.c").read_text()
    shadowed = caten(sample("dot"), "-o", "dot.py")                       # Python would import dot.so
    assert (shadowed.code, "dot_numpy.py" in shadowed.err) == (2, True)


def test_a_wrapper_packs_4_bits_and_takes_the_types_of_ml_dtypes(folder: Path) -> None:
    Path("add.lisp").write_text("(composite Add ((X{int4}[M N]<1 0>, Y{bf16}[M], a{half}[], Q{int4}[M N]) -> (Q, Z{bf16}[M]))"
                                "(dotimes (i M) (setf (aref Z i) (+ (aref Y i) (cast bf16 a)))"
                                "(dotimes (j N) (setf (aref Q i j) (cast int4 (+ (cast int8 (aref Q i j)) (cast int8 (aref X i j))))))))")
    build("add.lisp", "--emit=so,python", "-o", "add.so", "-O1")
    code = ("import sys, numpy as np; sys.path.insert(0, '.')\nimport add_numpy as ops\n"
            "x = np.asfortranarray(np.arange(15).reshape(3, 5) % 7).astype('int4'); q = np.full((3, 5), -8, 'int4')\n"
            "q2, z = ops.Add(x, np.array([1, 2, 3], 'bfloat16'), 0.5, q)\n"
            "print(q2 is q, np.array_equal(q.astype(int), np.arange(15).reshape(3, 5) % 7 - 8), z.astype(float).tolist(), 'caten' in sys.modules)")
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.stdout == "True True [1.5, 2.5, 3.5] False\n", done.stderr


def test_types_of_ml_dtypes_are_imported_where_they_are_used(folder: Path) -> None:
    code = ("import sys, numpy as np, caten\nx = np.ones(3, np.float32)\n"
            f"caten.compile({sample('axpy')!r})(2.0, x, x.copy())\nprint('ml_dtypes' in sys.modules)\n"
            "caten.compile('(composite C ((X{bf16}[N]) -> (Y{bf16}[N])) (dotimes (i N) (setf (aref Y i) (aref X i))))')\nprint('ml_dtypes' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_files_of_types_that_numpy_lacks_are_read_as_the_spec_has_them(folder: Path) -> None:
    Path("copy.lisp").write_text("(composite Copy ((X{bf16}[N], Q{uint4}[N]) -> (Y{bf16}[N], R{uint4}[N]))"
                                 "(dotimes (i N) (setf (aref Y i) (aref X i)) (setf (aref R i) (aref Q i))))")
    np.save("x.npy", np.array([1.5, -2, 3], ml_dtypes.bfloat16))
    np.savez("q.npz", q=np.array([1, 15, 7], ml_dtypes.uint4))
    result = caten("run", "copy.lisp", "X=x.npy", "Q=q.npz:q", "-O0")
    assert (result.code, result.out) == (0, "Y bfloat16[3]\n[1.5 -2 3]\nR uint4[3]\n[1 15 7]\n"), result.err


def test_a_strided_array_from_C_and_Python(folder: Path, tool: Any) -> None:
    tool("gcc")
    Path("twice.toml").write_text(COPY)
    build("twice.toml", "-fstrided=A")
    (op,) = operators(json.loads(Path("twice.json").read_text()))
    assert [(a["name"], a["kind"]) for a in op["arguments"]] == [("A", "tensor"), ("B", "tensor"), ("M", "size"), ("N", "size"), ("A_stride0", "stride")]
    Path("main.c").write_text("""#include "twice.h"
        float a[3][5] = {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}, {11, 12, 13, 14, 15}}, b[2][2];
        int main(void) { int bad = ct_twice(&a[0][1], &b[0][0], 2, 2, 10);          /* rows 0 and 2, columns 1 and 2 */
                         return bad || b[0][0] != 4 || b[0][1] != 6 || b[1][0] != 24 || b[1][1] != 26; }\n""")
    subprocess.run(["gcc", "-Wall", "-Werror", "main.c", "-L.", "-l:twice.so", "-Wl,-rpath,$ORIGIN", "-o", "main"], check=True)
    assert subprocess.run(["./main"]).returncode == 0
    a = np.arange(40, dtype=np.float32).reshape(4, 10)
    view, b = a[::2, 3:7], np.zeros((2, 4), np.float32)
    np.testing.assert_array_equal(library.load("twice.so")(view, b), 2 * view)
    np.testing.assert_array_equal(library.load("twice.so")(a[::-1, :4], np.zeros((4, 4), np.float32)), 2 * a[::-1, :4])


def test_a_size_that_is_fixed(folder: Path, tool: Any) -> None:
    tool("gcc")
    Path("twice.toml").write_text(COPY)
    build("twice.toml", "-DM=100", "--emit=so,c")
    (op,) = operators(json.loads(Path("twice.json").read_text()))
    assert op["binds"] == {"M": 100}
    assert "i < 100" in Path("twice.c").read_text() or "100" in Path("twice.c").read_text().split("ct_twice_ws")[0]
    text = next(row["text"] for row in op["checks"] if "M" in row["text"] and "100" in row["text"])
    assert text in Path("twice.h").read_text()
    Path("main.c").write_text(f"""#include "twice.h"
        #include <string.h>
        float a[101 * 2], b[101 * 2];
        int main(void) {{ int n = ct_twice(a, b, 101, 2);
                         return ct_twice(a, b, 100, 2) != 0 || n <= 0 || strcmp(ct_twice_check(n), {json.dumps(text)}); }}\n""")
    subprocess.run(["gcc", "-Wall", "-Werror", "main.c", "-L.", "-l:twice.so", "-Wl,-rpath,$ORIGIN", "-o", "main"], check=True)
    assert subprocess.run(["./main"]).returncode == 0
    twice = library.load("twice.so")
    right, wrong = np.ones((100, 2), np.float32), np.ones((99, 2), np.float32)
    np.testing.assert_array_equal(twice(right, np.zeros_like(right)), 2 * right)
    with pytest.raises(library.CatenError, match="100"):
        twice(wrong, np.zeros_like(wrong))
    compiled = library.compile("twice.toml", sizes={"M": 100})
    with pytest.raises(library.CatenError, match="100"):
        compiled(wrong, np.zeros_like(wrong))


def test_without_bounds_checks_the_index_checks_are_gone_and_no_others(folder: Path) -> None:
    Path("take.toml").write_text(GATHER)
    build("take.toml", "--emit=manifest=checked.json,c=checked.c")
    build("take.toml", "--emit=manifest=free.json,c=free.c", "-fno-bounds-check")
    checked, free = [[row["text"] for row in json.loads(Path(f"{n}.json").read_text())["checks"]] for n in ("checked", "free")]
    gone = [text for text in checked if text not in free]
    assert [text for text in checked if text in free] == free
    assert len(gone) == 3
    assert all("aref" in text for text in gone), gone
    assert [n for n in ("X (aref I i)", "X k", "Z 0") if not any(n in text for text in gone)] == []
    for text in free:
        assert "outside" in text or "required" in text.lower() or "=" in text
        assert text in Path("free.c").read_text()
    x = np.ones(4, np.float32)
    with pytest.raises(library.CatenError, match="aref X"):
        library.compile("take.toml", opt=1)(x, np.array([0, 4]), np.ones(2, np.float32), 0, np.zeros(2, np.float32))


GUARDED = """import ctypes, json, mmap, sys
import numpy as np
library, op, size = ctypes.CDLL("./lib.so"), json.loads(open("lib.json").read()), int(sys.argv[1])
libc, page = ctypes.CDLL(None), mmap.PAGESIZE
pages = -(-size // page) + 1
block = mmap.mmap(-1, (pages + 1) * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(block))
assert libc.mprotect(ctypes.c_void_p(start + pages * page), page, 0) == 0
scratch = start + pages * page - size
assert scratch % 64 == 0
sizes, random, results = {"M": 2000, "N": 333, "K": 70}, np.random.default_rng(1), []
arrays = [random.random([sizes[n] for n in a["shape"]], np.float32) for a in op["arguments"] if a["kind"] == "tensor"]
for function, more in ((op["symbols"]["call"], []), (op["symbols"]["workspace"], [ctypes.c_void_p(scratch)])):
    given = [a.copy() for a in arrays]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in given]
    assert library[function](*pointers, *[ctypes.c_int64(sizes[a["name"]]) for a in op["arguments"] if a["kind"] == "size"], *more) == 0
    results.append(given[-1])
assert (results[0] == results[1]).all() and (results[0] != arrays[-1]).any()
"""


# The size of the workspace for the sizes above, for an empty call, for a negative size, and for one above the limit.
WORKSPACE_SIZE = {name: f"""#include <stdio.h>
#include "lib.h"
int main(void)
{{
    const int64_t sizes[] = {{{', '.join(f"ct_{name}_ws_size({sizes})" for sizes in calls)}}};
    for (int i = 0; i < 4; i++) printf("%lld\\n", (long long)sizes[i]);
    return 0;
}}
""" for name, calls in (("walk", ("2000, 333", "2000, 0", "-1, 333", "1, INT64_MAX")),
                       ("gemm", ("2000, 70, 333", "2000, 70, 0", "-1, 70, 333", "1, 1, INT64_MAX")))}


@pytest.mark.slice(2)
@pytest.mark.parametrize("omp", ["0", "1"])
@pytest.mark.parametrize("name", ["walk", "gemm"])
def test_scratch_memory_of_exactly_the_stated_size(name: str, omp: str, folder: Path, tool: Any) -> None:
    """The twin with `_ws` gets a block that ends where a page begins that may not be touched. Both have scratch for each
    thread; the threads of gemm share what is packed but for small products."""
    tool("gcc")
    Path("walk.toml").write_text(SCRATCH)
    build("walk.toml" if name == "walk" else sample(name), "--config", f"OMP={omp}", "-o", "lib.so")
    (op,) = operators(json.loads(Path("lib.json").read_text()))
    assert ("ct_threads" in str(op["scratch_bytes"])) == ("omp_get_max_threads()" in Path("lib.h").read_text()) == (omp == "1")

    def call(threads: int, size: int) -> bool:
        done = subprocess.run([sys.executable, "-c", GUARDED, str(size)], capture_output=True, text=True,
                              env={"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"})
        assert done.returncode in (0, -signal.SIGSEGV), done.stderr
        return done.returncode == 0
    Path("size.c").write_text(WORKSPACE_SIZE[name])
    subprocess.run(["gcc", "-Wall", "-Werror", "size.c", "./lib.so", "-Wl,-rpath,$ORIGIN", "-o", "size"], check=True)
    for threads in (1, 4) if omp == "1" else (1,):
        size = int(evaluate(formula(op["scratch_bytes"]), {"M": 2000, "N": 333, "K": 70, "ct_threads": threads}))
        assert size >= 333 * 4
        told = subprocess.run(["./size"], capture_output=True, text=True, env={"OMP_NUM_THREADS": str(threads)}, check=True)
        assert told.stdout.split() == [str(size), "0", "-1", "-1"]
        assert call(threads, size)
    if name == "walk":
        assert not call(threads, size - 64 * (333 * 4 // 64))               # the page does notice
