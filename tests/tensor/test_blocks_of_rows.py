"""Contractions that share a loop over blocks of rows: which do, in which form, and what they compute."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_structure_families import values_of

import caten
from caten import driver, loading
from caten.core.program import InOrder, Machine, Schedule, resolve
from caten.core.text import read, show
from caten.errors import CatenError, Diagnostic
from caten.frontend.spec_files import SpecText
from caten.loop import verifier as loop_verifier
from caten.loop.statements import For, If, Local, LoopProgram
from caten.options import Options
from caten.semantics import interpret
from caten.tensor import tensor_verifier
from caten.tensor.blocks_of_rows import BLOCKS, Blocks, joined, shared_axes
from caten.tensor.fused_text import fused
from caten.tensor.fusion import is_contraction, kernels_of
from caten.tensor.fusion_report import explained
from caten.tensor.kernels import Group, Member
from caten.tensor.late_division import divided_late
from caten.tensor.lower import lower
from caten.tensor.values import Compute, FusedKernel, Read, TensorProgram

WHOLE, RUNNING = Blocks(4, 5), Blocks(4, 5, bytes=0)
DEPTH = 8
SCORE = "(* (read Q i j p) (read K i k p))"
MASKED = "(where (>= (+ j {more}) k) (* 0.5 (read v0 i j k)) -inf)"
FREE = "(* 0.5 (read v0 i j k))"
ATTENTION = """(tensor Attention (size H) (size T) (size D)
  (buffer Q f32 (H T D) (0 1 2) in) (buffer K f32 (H T D) (0 1 2) in) (buffer V f32 (H T D) (0 1 2) in)
  (buffer O f32 (H T D) (0 1 2) out) {facts}
  (define v0 (reduce f32 ((i H) (j T) (k T)) ((p D)) add true {score}))
  (define v1 (compute f32 ((i H) (j T) (k T)) {map}))
  (define v2 (reduce f32 ((i H) (j T)) ((p T)) max true (read v1 i j p)))
  (define v3 (compute f32 ((i H) (j T) (k T)) (exp (- (read v1 i j k) (read v2 i j)))))
  (define v4 (reduce f32 ((i H) (j T)) ((p T)) add true (read v3 i j p)))
  (define v5 (compute f32 ((i H) (j T) (k T)) (/ (read v3 i j k) (read v4 i j))))
  (define v6 (reduce f32 ((i H) (j T) (k D)) ((p T)) add true (* {weights} (read V i p k))))
  (output O v6))"""


def attention(*, score: str = SCORE, map: str = FREE, weights: str = "(read v5 i j p)", facts: str = "(bind D 8)",
              ) -> TensorProgram:
    text = ATTENTION.format(score=score, map=map, weights=weights, facts=facts)
    program = resolve(read(text)[0])
    assert isinstance(program, TensorProgram)
    return program


def arrays(T: int, seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(2, T, DEPTH)).astype(np.float32) for name in "QKV"}


def expected(given: dict[str, Any], more: int | None = None) -> Any:
    """The definition, in float64. `more`: how many keys behind its own a row sees."""
    Q, K, V = (given[name].astype(np.float64) for name in "QKV")
    S = 0.5 * np.einsum("hid,hjd->hij", Q, K)
    T = S.shape[1]
    if more is not None:
        S = np.where(np.arange(T)[:, None] + more >= np.arange(T), S, -np.inf)
    with np.errstate(invalid="ignore"):
        E = np.exp(S - S.max(axis=-1, keepdims=True, initial=-np.inf))
        return E / E.sum(axis=-1, keepdims=True) @ V


def run(program: LoopProgram, given: dict[str, Any]) -> Any:
    H, T, D = given["Q"].shape
    values = {**given, "O": np.full((H, T, D), 7, np.float32), "H": H, "T": T, "D": D}
    assert interpret.run(program, values) == 0
    return values["O"]


def blocked(program: TensorProgram, blocks: Blocks = WHOLE) -> list[bool]:
    """For each kernel: does it run in blocks of rows?"""
    found = joined(kernels_of(program), program, blocks)
    return [isinstance(k, Group) and k.blocked is not None for k in found]


# -- structure ---------------------------------------------------------------------------------------------------------

def test_attention_is_one_kernel() -> None:
    assert blocked(attention()) == [True]
    assert blocked(divided_late(attention(map=MASKED.format(more=0)))) == [True]


@pytest.mark.parametrize("facts", ["", "(bind D 64)", "(bind D 128)"])
def test_heads_of_usual_depth_are_one_kernel(facts: str) -> None:
    """A depth that is not known counts as that of a usual head, for rows are summed up between the contractions."""
    assert blocked(attention(facts=facts)) == [True]


@pytest.mark.parametrize(("registers", "least"), [(16, 48), (32, 64)])
def test_blocks_are_register_tiles(registers: int, least: int) -> None:
    machine = Machine("x86_64", 32, registers, (32768, 524288))
    assert Blocks().rows_of(machine, needs_all_keys=False) == least
    assert Blocks().rows_of(machine, needs_all_keys=True) == 2 * least
    assert Blocks(5).rows_of(machine, needs_all_keys=True) == 5


@pytest.mark.parametrize(("change", "why"), [
    ({"weights": "(read v5 i p j)"}, "the weights are read transposed"),
    ({"weights": "(read v5 i (- (- T j) 1) p)"}, "the rows are read in another order"),
    ({"facts": "(bind D 192)"}, "each block would read too much again"),
])
def test_contractions_that_stay_apart(change: dict[str, str], why: str) -> None:
    assert not any(blocked(attention(**change))), why


def test_the_layers_of_a_perceptron_stay_apart() -> None:
    text = """(tensor Mlp (size M)
      (buffer X f32 (M {n}) (0 1) in) (buffer A f32 ({n} 256) (0 1) in) (buffer B f32 (256 {n}) (0 1) in)
      (buffer Y f32 (M {n}) (0 1) out)
      (define v0 (reduce f32 ((i M) (j 256)) ((p {n})) add true (* (read X i p) (read A p j))))
      (define v1 (compute f32 ((i M) (j 256)) (tanh (read v0 i j))))
      (define v2 (reduce f32 ((i M) (j {n})) ((p 256)) add true (* (read v1 i p) (read B p j))))
      (output Y v2))"""
    assert blocked(resolve(read(text.format(n=768))[0])) == [False, False]              # type: ignore[arg-type]
    assert blocked(resolve(read(text.format(n=8))[0])) == [True]                        # type: ignore[arg-type]


def test_the_steps_of_a_recurrent_network_stay_apart() -> None:
    """What is carried from step to step is read by the last product, and is made of the products of all steps."""
    text = """[composite]
name = "Steps"
inputs = ["X{float}[T M 32]", "U{float}[32 128]", "W{float}[64 128]", "V{float}[64 8]"]
outputs = ["Y{float}[M 8]"]
[implementation]
lang = "python"
code = '''
c = np.zeros((X.shape[1], 64), np.float32)
h = c
for t in (0, 1, 2, 3, 4):
    gates = X[t] @ U + h @ W
    c = c * np.tanh(gates[:, :64]) + np.tanh(gates[:, 64:])
    h = np.tanh(c)
return h @ V
'''
"""
    groups = joined(kernels_of(program := values_of(SpecText("steps.toml", text))), program, BLOCKS)
    products = [sum(is_contraction(m.value) for m in k.members) for k in groups if isinstance(k, Group)]
    assert max(products) == 2, "the last step, and what follows it"


WITH_WEIGHTS = ("(buffer O", "(buffer P f32 (H T T) (0 1 2) out) (buffer O"), ("(output O v6)", "(output O v6) (output P v5)")


def with_weights(map: str = FREE) -> TensorProgram:
    """Attention whose weights are an output too."""
    text = show(attention(map=map))
    for old, new in WITH_WEIGHTS:
        text = text.replace(old, new)
    program = resolve(read(text)[0])
    assert isinstance(program, TensorProgram)
    return program


@pytest.mark.parametrize("map", [FREE, MASKED.format(more=0)], ids=["free", "causal"])
def test_weights_that_are_an_output_are_stored(map: str) -> None:
    """By the kernel of attention, for all keys: the running form has no weights, and beyond the last key these are 0."""
    program = with_weights(map)
    (group,) = joined(kernels_of(program), program, RUNNING)
    assert isinstance(group, Group)
    assert group.blocked is not None
    assert group.stored == {"v5", "v6"}
    for T in (1, 3, 9):
        given = arrays(T)
        P = np.full((2, T, T), 7, np.float32)
        values = {**given, "O": np.full((2, T, DEPTH), 7, np.float32), "P": P, "H": 2, "T": T, "D": DEPTH}
        made = lower(program, RUNNING)
        loop_verifier.verify(made)
        assert interpret.run(made, values) == 0
        more = 0 if map != FREE else None
        np.testing.assert_allclose(values["O"], expected(given, more), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(P @ given["V"], values["O"], rtol=1e-5, atol=1e-6)
        assert more is None or not P[:, *np.triu_indices(T, 1)].any()


def test_weights_beside_a_result_with_its_axes_exchanged() -> None:
    """Where weights alone are stored for others, their rows are those of the scores, not the first axis of the result."""
    text = show(with_weights()).replace("(buffer O f32 (H T D)", "(buffer O f32 (T H D)").replace("((i H) (j T) (k D))", "((i T) (j H) (k D))").replace(
        "(* (read v5 i j p) (read V i p k))", "(* (read v5 j i p) (read V j p k))")
    program = resolve(read(text)[0])
    assert isinstance(program, TensorProgram)
    assert "((i T) (j H) (k D))" in text
    assert blocked(divided_late(program)) == [True]
    given = arrays(9)
    values = {**given, "O": np.zeros((9, 2, DEPTH), np.float32), "P": np.zeros((2, 9, 9), np.float32), "H": 2, "T": 9, "D": DEPTH}
    made = lower(program, WHOLE)
    loop_verifier.verify(made)
    assert interpret.run(made, values) == 0
    np.testing.assert_allclose(values["O"].transpose(1, 0, 2), expected(given), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values["P"] @ given["V"], expected(given), rtol=1e-5, atol=1e-6)


def test_rows_that_are_read_at_another_place_share_no_loop() -> None:
    """By a value that only others read: scores transposed, in the kernel of the weights."""
    program = attention()
    first, rows, last = (k for k in kernels_of(divided_late(program)) if isinstance(k, Group))
    scores = next(m.value for m in first.members if m.name == "v1")
    assert isinstance(scores, Compute)
    i, j, k = scores.axes
    turned = Member("c", Compute("f32", scores.axes, Read("v1", (i.var, k.var, j.var), "f32")), (i, j))
    shared = shared_axes([first, Group((*rows.members, turned), rows.stored | {"c"}), last])
    assert shared["v1"] == (i,)
    assert len(shared_axes([first, rows, last])["v1"]) == 2


@pytest.mark.parametrize("reader", ["v1", "v3"])
def test_what_is_read_before_the_last_product_is_not_in_its_kernel(reader: str) -> None:
    """The scores are stored for others, or another kernel reads the exponentials before the weights are used."""
    program = attention()
    text = show(program).replace("(buffer O", "(buffer C f32 (T T) (0 1) out) (buffer O").replace("(output O v6)", "(output O v6) (output C c)")
    before, after = text.split("  (define v6")
    scatter = f"  (define c (reduce f32 ((j T) (k T)) ((h H)) add true (read {reader} h k j)))\n"
    changed = resolve(read(before + scatter + "  (define v6" + after)[0])
    assert isinstance(changed, TensorProgram)
    made = lower(changed, WHOLE)
    loop_verifier.verify(made)
    given = arrays(9)
    values = {**given, "O": np.zeros((2, 9, DEPTH), np.float32), "C": np.zeros((9, 9), np.float32), "H": 2, "T": 9, "D": DEPTH}
    assert interpret.run(made, values) == 0
    np.testing.assert_allclose(values["O"], expected(given), rtol=1e-5, atol=1e-6)
    S = 0.5 * np.einsum("hid,hjd->hij", given["Q"].astype(np.float64), given["K"])
    wanted = S if reader == "v1" else np.exp(S - S.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(values["C"], wanted.sum(axis=0).T, rtol=1e-4, atol=1e-5)


def test_the_text_of_kernels_is_taken_back() -> None:
    program = attention(map=MASKED.format(more=0))
    written = fused(program)
    assert [k.form for k in written.all(FusedKernel)] == ["blocks"]
    tensor_verifier.verify(written)
    again = resolve(read(show(written))[0])
    assert again is written
    assert lower(again, RUNNING) is lower(program, RUNNING)


def test_the_report() -> None:
    lines = list(explained(attention()))
    assert lines[0] == "kernel k0, blocks, outer loops i (H), j (T): v0, v1, v2, v3, v4, v6_sum, v6"
    assert "  v3 is in memory for the rows of a block; 12 H T T bytes are not stored and loaded" in lines
    assert not [line for line in lines if " | " in line]


def test_a_request_keeps_the_scores_in_memory() -> None:
    asked = attention(facts='(bind D 8) (fusion (keep v1))')
    assert not any(blocked(asked))


def test_a_size_may_have_any_name() -> None:
    text = show(attention(map=MASKED.format(more=0))).replace("(size H)", "(size rows)").replace("(i H)", "(i rows)").replace("(H T D)", "(rows T D)")
    found = resolve(read(text)[0])
    assert isinstance(found, TensorProgram)
    for blocks in (WHOLE, RUNNING):
        assert show(lower(found, blocks)).replace("rows", "H") == show(lower(
            attention(map=MASKED.format(more=0)), blocks)).replace("rows", "H")


@pytest.mark.parametrize("blocks", [WHOLE, RUNNING], ids=str)
def test_an_array_may_have_the_name_of_a_value(blocks: Blocks) -> None:
    """Scratch memory is named as the spec names it, which may be what a member of the kernel is called here."""
    text = show(attention()).replace("(read Q i j p)", "(read q i j p)").replace("(define v0", """(named q v3 i j k)
      (define q (reduce f32 ((i H) (j T) (k D)) ((p D)) add true (* (read Q i j p) (read Q i j k))))
      (define v0""")
    program = resolve(read(text)[0])
    assert isinstance(program, TensorProgram)
    assert blocked(program) == [False, True]
    given = arrays(7)
    loops = lower(program, blocks)
    loop_verifier.verify(loops)
    np.testing.assert_allclose(run(loops, given), run(lower(program), given), rtol=2e-5, atol=2e-6)


def test_devices_with_groups_of_threads_have_kernels_of_their_own() -> None:
    machine = '(target "cuda" (machine gpu 16 255 (49152) true (32 1024 49152)))'
    assert not any(blocked(attention(facts=f"(bind D 8) {machine}")))


def test_a_condition_chooses_the_form() -> None:
    match lower(attention(), Blocks(4, 5, bytes=4 * 4 * 100)).kernels[0].body:
        case (If(cond, whole, running),):
            assert show(cond) == "(<= T 100)"
        case other:
            raise AssertionError(other)
    sizes = [[show(n.shape) for s in branch for n in s.walk() if isinstance(n, Local)] for branch in (whole, running)]
    assert any("T" in shape for shape in sizes[0])
    assert not any("T" in shape for shape in sizes[1])              # memory that does not grow with the keys


@pytest.mark.parametrize(("size", "form"), [(100, "whole"), (101, "running")])
def test_a_known_number_of_keys_needs_no_condition(size: int, form: str) -> None:
    program = attention(facts=f"(bind D 8) (bind T {size})")
    body = lower(program, Blocks(4, 5, bytes=4 * 4 * 100)).kernels[0].body
    assert not any(isinstance(s, If) for s in body)
    assert ("key_block" in show(body)) == (form == "running")


def test_the_division_is_after_the_sum() -> None:
    values = {d.name: show(d.value) for d in divided_late(attention()).definitions}
    assert "v5" not in values
    assert values["v6"] == "(compute f32 ((i H) (j T) (k D)) (/ (read v6_sum i j k) (read v4 i j)))"


@pytest.mark.parametrize("program", [
    attention(facts="(bind D 8) (in-order)"),
    resolve(read(show(attention()).replace("(read v1 i j k) (read v2 i j)", "(read v1 i j k) (read v2 i k)"))[0]),
], ids=["sums in order", "no softmax"])
def test_a_division_that_stays(program: TensorProgram) -> None:
    assert divided_late(program) is program


def test_sums_in_order_have_no_running_form() -> None:
    program = attention(facts="(bind D 8) (in-order)")
    assert program.first(InOrder) is not None
    assert "key_block" not in show(lower(program, RUNNING))


def test_a_causal_condition_ends_the_keys_of_a_block() -> None:
    def keys(program: TensorProgram) -> set[str]:
        loops = [n for s in lower(program, WHOLE).kernels[0].body for n in s.walk() if isinstance(n, For)]
        return {show(n.hi) for n in loops if n.name.startswith("k")}
    assert "(min T (+ (* 4 j_block) 4))" in keys(attention(map=MASKED.format(more=0)))
    assert not any("j_block" in hi for hi in keys(attention()))
    assert not any("j_block" in hi for hi in keys(attention(map=MASKED.format(more=0).replace("-inf", "-1.0"))))
    linear = resolve(read("""(tensor Linear (size T)
      (buffer Q f32 (T 8) (0 1) in) (buffer K f32 (T 8) (0 1) in) (buffer V f32 (T 8) (0 1) in) (buffer O f32 (T 8) (0 1) out)
      (define v0 (reduce f32 ((j T) (k T)) ((p 8)) add true (* (read Q j p) (read K k p))))
      (define v1 (compute f32 ((j T) (k T)) (where (>= j k) (read v0 j k) 0.0)))
      (define v2 (reduce f32 ((j T) (l 8)) ((k T)) add true (* (read v1 j k) (read V k l))))
      (output O v2))""")[0])
    assert isinstance(linear, TensorProgram)
    assert any("(+ (* 4 j_block) 4)" in hi for hi in keys(linear))                      # its result has no keys


# -- numbers -----------------------------------------------------------------------------------------------------------

@pytest.mark.slice(2)
@pytest.mark.parametrize("blocks", [WHOLE, RUNNING, Blocks(3, 2, bytes=0), Blocks(48, 512, bytes=0)], ids=str)
@pytest.mark.parametrize("more", [None, 0, 2, -1])
@pytest.mark.parametrize("T", [1, 4, 7, 11])
def test_numbers(T: int, more: int | None, blocks: Blocks) -> None:
    program = attention(map=FREE if more is None else MASKED.format(more=more).replace("(+ j -1)", "(- j 1)"))
    given = arrays(T)
    found = run(lower(program, blocks), given)
    np.testing.assert_allclose(found, expected(given, more), rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(found, run(lower(program), given), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("requests", "loops"), [
    ("(rows 3)", ["(for j_block 0 (floordiv (+ T 2) 3)", "(if (<= T "]), ("(rows 3) (whole v3)", ["(for j_block 0 (floordiv (+ T 2) 3)"]),
    ("(online v0 2)", ["(for j_block 0 (floordiv (+ T 95) 96)", "(for key_block 0 (floordiv (+ T 1) 2)"]),
    ("(rows 5) (online v3 7)", ["(for j_block 0 (floordiv (+ T 4) 5)", "(for key_block 0 (floordiv (+ T 6) 7)"]),
])
def test_requests_for_blocks(requests: str, loops: list[str]) -> None:
    program = divided_late(attention(facts=f"(bind D 8) (fusion {requests})"))
    lowered, given = lower(program, Blocks()), arrays(23)
    text = show(lowered)
    assert [loop in text for loop in loops] == [True] * len(loops)
    assert ("key_block" in text) == ("whole" not in requests)
    np.testing.assert_allclose(run(lowered, given), expected(given), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("facts", "change", "why"), [
    ("(online v3 4)) (in-order", {}, r"\(online v3 4\): sums may not be reassociated"),
    ("(online v3 4)", {"weights": "(* (read v5 i j p) (read v2 i j))"}, r"\(online v3 4\): the reductions .* are not a max"),
    ("(online v3 4)", {"weights": "(read v5 i p j)"}, r"\(online v3 4\): v3 is in no kernel of blocks of rows"),
    ("(rows 4)", {"weights": "(read v5 i p j)"}, r"\(rows 4\): no kernel runs in blocks of rows"),
])
def test_requests_for_blocks_that_are_refused(facts: str, change: dict[str, str], why: str) -> None:
    program = attention(facts=f"(bind D 8) (fusion {facts})", **change)
    with pytest.raises(CatenError, match=why):
        lower(divided_late(program), Blocks())


@pytest.mark.slice(2)
@pytest.mark.parametrize("blocks", [WHOLE, RUNNING], ids=str)
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_scores_that_are_not_finite(special: float, blocks: Blocks) -> None:
    """What is NaN by the definition is NaN in blocks, and nothing else is: rows with some keys, or all, at -inf."""
    mask = "(+ (read M i k) (read v0 i j k))"
    text = show(attention(map=mask)).replace("(buffer O", "(buffer M f32 (H T) (0 1) in) (buffer O")
    program = resolve(read(text)[0])
    assert isinstance(program, TensorProgram)
    for where in (slice(0, 5), slice(3, 9), slice(0, 12)):
        given = {**arrays(12), "M": np.zeros((2, 12), np.float32)}
        given["M"][0, where] = special
        np.testing.assert_allclose(run(lower(program, blocks), given), run(lower(program), given), rtol=2e-5, atol=2e-6)


def test_large_scores_do_not_overflow() -> None:
    given = arrays(23)
    given["Q"] *= 500
    np.testing.assert_allclose(run(lower(attention(), RUNNING), given), expected(given), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("queries", [0, 3])
def test_a_sum_over_no_keys_is_zero(queries: int) -> None:
    text = show(attention()).replace("(buffer K f32 (H T D)", "(buffer K f32 (H S D)").replace(
        "(buffer V f32 (H T D)", "(buffer V f32 (H S D)").replace("(size T)", "(size T) (size S)").replace(
        "(k T)", "(k S)").replace("(p T)", "(p S)")
    program = resolve(read(text)[0])
    assert isinstance(program, TensorProgram)
    for blocks in (None, WHOLE):
        given = {"Q": np.ones((1, queries, 8), np.float32), "K": np.ones((1, 0, 8), np.float32),
                 "V": np.ones((1, 0, 8), np.float32), "O": np.ones((1, queries, 8), np.float32)}
        assert interpret.run(lower(program, blocks), {**given, "H": 1, "T": queries, "D": 8, "S": 0}) == 0
        np.testing.assert_array_equal(given["O"], np.zeros_like(given["O"]))


SPEC = """
[composite]
name = "Attention"
inputs  = ["Q{{float}}[H T 16]", "K{{float}}[H T 16]", "V{{float}}[H T 16]"]
outputs = ["O{{float}}[H T 16]"]

[implementation]
lang = "python"
code = '''
S = {scores} / np.sqrt(16)
{mask}
E = np.exp(S - S.max(-1, keepdims=True))
return (E / E.sum(-1, keepdims=True)) @ V
'''
"""
CAUSAL = "S = np.where(np.arange(T)[:, None] >= np.arange(T)[None, :], S, -np.inf)"


@pytest.mark.slice(2)
@pytest.mark.slow
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize(("scores", "mask"), [
    ("np.einsum('htd,hsd->hts', Q, K)", ""), ("Q @ np.swapaxes(K, 1, 2)", CAUSAL)])
def test_compiled(scores: str, mask: str, opt: int) -> None:
    for config in ({}, {"OMP": 1}):
        function = caten.compile(SPEC.format(scores=scores, mask=mask), opt=opt, config=config)
        rng = np.random.default_rng(5)
        for T in (1, 7, 100, 513, 2800) if opt == 2 else (1, 7, 60):
            Q, K, V = (rng.normal(size=(1 + (T < 1000), T, 16)).astype(np.float32) for _ in range(3))
            want = expected({"Q": Q * 0.5, "K": K, "V": V}, 0 if mask else None)
            np.testing.assert_allclose(function(Q, K, V), want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("march", ["x86_64_v3", "x86_64_v4"])
@pytest.mark.parametrize("name", ["attention", "causal_attention"])
def test_scores_are_neither_filled_nor_scaled_in_passes_of_their_own(name: str, march: str) -> None:
    """Each contraction of the two forms sets its results, and applies what maps them, in the register tile."""
    path = Path(__file__).parents[2] / "benchmarks" / "specs" / "programs" / f"{name}.toml"
    options, warnings = Options(config=(("MARCH", march),)), list[Diagnostic]()
    (program,) = loading.load_programs(SpecText(path.name, path.read_text(), "toml"), options)
    made = driver.advance(program, "loop", options, warnings.append)
    assert warnings == []
    assert isinstance(made, LoopProgram)
    assert [step[0] for step in applied(made)].count("transpose") == 2         # keys are packed by transposes in registers
    hows = [step[3] for step in applied(made) if step[0] == "stage" and step[3] in ("begin", "finish")]
    assert sorted(hows) == ["begin", *["finish"] * (3 if "causal" in name else 4)]      # the running form adds to what it has rescaled


def applied(program: LoopProgram) -> list[tuple[str, ...]]:
    fact = program.first(Schedule)
    assert fact is not None
    return [tuple(map(str, step)) for step in fact.steps]


# -- layouts -----------------------------------------------------------------------------------------------------------

LAYOUT = """[composite]
name = "Attention"
inputs = ["Q{{float}}[{Q}]", "K{{float}}[{K}]", "V{{float}}[{V}]"]
outputs = ["O{{float}}[{O}]"]
[implementation]
lang = "python"
code = '''
S = np.einsum("{q},{k}->{s}", Q, K){mask}
E = np.exp(S - S.max(-1, keepdims=True))
return np.einsum("{s},{v}->{o}", E / E.sum(-1, keepdims=True), V)
'''
"""
SIZES = {"b": 2, "h": 3, "t": 9, "s": 9, "d": 8}


@pytest.mark.slice(2)
@pytest.mark.parametrize("seed", range(16))
def test_arrays_of_any_layout(seed: int) -> None:
    """Batches, heads, rows and depth in any order; two of the orders are those of torch and of GPT-2."""
    rng = random.Random(seed)
    axes = "bthd" if seed % 3 else "thd"
    q, k, v, o = ["".join(rng.sample(axes, len(axes))) for _ in range(4)] if seed > 3 else [axes] * 4
    k, v = k.replace("t", "s"), v.replace("t", "s")
    s = "".join(rng.sample([a for a in axes if a not in "td"], len(axes) - 2)) + "ts"
    mask = "\nS = np.where(np.arange(T)[:, None] >= np.arange(T), S, -np.inf)" if seed % 2 else ""
    declared = {name: " ".join(["8" if a == "d" else a.upper().replace("S", "T") for a in layout]) for name, layout in zip("QKVO", (q, k, v, o), strict=True)}
    values = values_of(SpecText("t.toml", LAYOUT.format(q=q, k=k, v=v, o=o, s=s, mask=mask, **declared), "toml"))
    made = lower(values, RUNNING if seed % 5 == 4 else WHOLE)
    loop_verifier.verify(made)
    assert any(isinstance(n, For) and n.name.endswith("_block") for kernel in made.kernels for each in kernel.body for n in each.walk())
    given = np.random.default_rng(seed)
    Q, K, V = [given.standard_normal([SIZES[a] for a in layout]).astype(np.float32) for layout in (q, k, v)]
    scores = np.einsum(f"{q},{k}->{s}", Q, K)
    weights = np.exp(scores) * (np.tri(SIZES["t"]) if mask else 1)
    expected = np.einsum(f"{s},{v}->{o}", weights / weights.sum(-1, keepdims=True), V)
    found = np.zeros(expected.shape, np.float32)
    assert interpret.run(made, {"Q": Q, "K": K, "V": V, "O": found, **{a.upper(): SIZES[a] for a in axes if a != "d"}}) == 0
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)


# -- arrays that are read and written ----------------------------------------------------------------------------------

IN_PLACE = """
[composite]
name = "InPlace"
inputs = ["Q{{float}}[T 8]", "K{{float}}[U 8]", "V{{float}}[U 8]", "G{{float}}[T 8]", "M{{float}}[T U]"{more}]
outputs = [{outputs}]
[implementation]
lang = "python"
code = '''
S = Q @ K.T + M
E = np.exp(S - S.max(axis=1, keepdims=True))
{code}
'''
"""
# What is computed of the scores and their exponentials, and the results.
CHANGES = {
    "the queries": ("Q[:, :] = E / E.sum(axis=1, keepdims=True) @ V + Q", "Q"),
    "the mask": ("M[:, :] = E / E.sum(axis=1, keepdims=True)\nQ[:, :] = M @ V", "M Q"),
    "the mask, and weights for others": ("W = E / E.sum(axis=1, keepdims=True)\nZ[:, :] = W.T @ G\nM[:, :] = E\nO[:, :] = W @ V", "M Z O"),
    "two products before": ("D = G @ V.T\nW = (D - (D * E).sum(axis=1, keepdims=True)) * E\nM[:, :] = W\nO[:, :] = W @ K + G", "M O"),
}


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("change", CHANGES)
def test_arrays_that_a_block_reads_and_writes(change: str) -> None:
    """A block stores to no memory of which it reads old elements later."""
    code, results = CHANGES[change]
    own = [name for name in results.split() if name not in "QM"]
    more = "".join([f', "{name}{{float}}[{"U" if name == "Z" else "T"} 8]"' for name in own])
    text = IN_PLACE.format(more=more, outputs=", ".join([f'"{name}"' for name in results.split()]), code=code)
    operator = caten.compile(text)
    for T, U in ((1, 1), (5, 3), (150, 33), (129, 300)):
        draw = np.random.default_rng(T)
        shapes = {"Q": (T, 8), "K": (U, 8), "V": (U, 8), "G": (T, 8), "M": (T, U), **{name: (U if name == "Z" else T, 8) for name in own}}
        given = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        values: dict[str, Any] = {"np": np, **{name: value.astype(np.float64) for name, value in given.items()}}
        scores = values["Q"] @ values["K"].T + values["M"]
        values["E"] = np.exp(scores - scores.max(axis=1, keepdims=True))
        exec(code, values)
        made = operator(*[value.copy() for value in given.values()])
        for name, found in zip(results.split(), made if isinstance(made, tuple) else (made,), strict=True):
            np.testing.assert_allclose(found, values[name], rtol=1e-3, atol=1e-4, err_msg=f"{name}, {T} x {U}")
