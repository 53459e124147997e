"""What is a result and nothing else is computed as early as it can be: what it reads takes no memory after that."""
from __future__ import annotations

from caten.core.program import resolve
from caten.core.size_formula import evaluate
from caten.core.text import read
from caten.render.scratch_memory import scratch_bytes
from caten.tensor.fusion import kernels_of
from caten.tensor.kernels import names_of
from caten.tensor.lower import lower
from caten.tensor.values import TensorProgram

HEAD = """(tensor F (outputs {outputs})
  (buffer X f32 (N M) (0 1) in) (buffer W f32 (M M) (0 1) in) {buffers} (size N) (size M) (opt 2) (target "c" (machine x86-64 64 16 (32768 524288)))"""


def chain(length: int) -> TensorProgram:
    """Products, each of the last, and of all of them the sum of the rows, in the order of the parameters: the last product is the first result."""
    outputs = [f"Y{n}" for n in range(length)]
    text = HEAD.format(outputs=" ".join(["Z", *outputs]), buffers=" ".join([f"(buffer {y} f32 (M) (0) out)" for y in outputs])
                       + " (buffer Z f32 (N M) (0 1) out)")
    for n in range(length):
        text += f"(define v{n} (reduce f32 ((i N) (j M)) ((p M)) add true (* (read {f'v{n - 1}' if n else 'X'} i p) (read W p j))))"
    for n in range(length):
        text += f"(define y{n} (reduce f32 ((i M)) ((p N)) add true (sin (read v{n} p i))))"
    text += f"(output Z v{length - 1})" + "".join([f"(output Y{n} y{n})" for n in range(length)])
    (program,) = [resolve(p) for p in read(text + ")")]
    assert isinstance(program, TensorProgram)
    return program


def test_results_come_as_soon_as_what_they_read_is_there() -> None:
    names = [name for k in kernels_of(chain(3)) for name in names_of(k)]
    assert names == ["v0", "y0", "v1", "y1", "v2", "y2"]


def test_what_results_read_is_overwritten_after_them() -> None:
    """Two products at a time, however many there are."""
    def memory(length: int) -> int:
        return int(evaluate(scratch_bytes(lower(chain(length))), {"N": 64, "M": 32}))
    assert memory(8) == memory(5) == 2 * 64 * 32 * 4


def test_a_result_waits_for_readers_of_what_its_parameter_held() -> None:
    """`v3` could follow `v0`, but `v2` reads what `X` held."""
    head = HEAD.format(outputs="X Z", buffers="(buffer Z f32 (N M) (0 1) out)")
    text = head.replace("(buffer X f32 (N M) (0 1) in)", "(buffer X f32 (N M) (0 1) {intent})") + """
      (define v0 (reduce f32 ((i N) (j M)) ((p M)) add true (* (read X i p) (read W p j))))
      (define v1 (reduce f32 ((i N) (j M)) ((p M)) add true (* (read v0 i p) (read W p j))))
      (define v2 (reduce f32 ((i N) (j M)) ((p M)) add true (* (read v1 i p) (read X p j))))
      (define v3 (compute f32 ((i N) (j M)) (sin (read v0 j i))))
      (output {result} v3) (output Z v2))"""

    def order(**names: str) -> list[str]:
        (program,) = [resolve(p) for p in read(text.format(**names).replace("(outputs X", f"(outputs {names['result']}"))]
        return [name for k in kernels_of(program) for name in names_of(k)]
    assert order(intent="inout", result="X") == ["v0", "v1", "v2", "v3"]
    assert order(intent="in) (buffer Y f32 (N M) (0 1) out", result="Y") == ["v0", "v3", "v1", "v2"]
