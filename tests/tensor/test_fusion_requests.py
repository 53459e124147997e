"""[schedule] fusion: what shares a kernel by request, and requests that are refused."""
from __future__ import annotations

import re

import numpy as np
import pytest
from test_fusion import PROGRAMS, results
from test_raising import op

from caten import driver, loading
from caten.core.program import Fusion, resolve
from caten.core.text import read, show
from caten.errors import CatenError, Diagnostic
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram
from caten.options import Options
from caten.passes import PASSES, RAISE
from caten.schedule.planning import Planning
from caten.semantics import interpret
from caten.tensor.fusion import boundaries_of, computed_by_readers, kernels_of
from caten.tensor.kernels import names_of
from caten.tensor.lower import lower
from caten.tensor.tensor_verifier import verify
from caten.tensor.values import TensorProgram


def made(body: str, requests: str) -> TensorProgram:
    """The values of a body with requests to fusion; the loops compute what the body says."""
    program = next(p for p in PASSES if p.name == RAISE).run(op(body, f"(fusion {requests})"), Planning())
    assert isinstance(program, TensorProgram)
    assert resolve(read(show(program))[0]) is program
    verify(program)
    before, after = results(op(body)), results(lower(program))
    for name, want in before.items():
        np.testing.assert_allclose(after[name], want, rtol=1e-5, atol=1e-6)
    return program


def kernels(body: str, requests: str) -> list[str]:
    return [" ".join(names_of(k)) for k in kernels_of(made(body, requests))]


SOFTMAX, PRODUCT, MAPPED = (PROGRAMS[n][0] for n in ("softmax", "a product and its epilogue", "a product of what a map costs"))
MAPS = """(local t f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (exp (aref x i))))
  (for i_2 0 N 1 serial (setf (aref y i_2) (* 2.0 (aref t i_2))))"""
MEET = {
    "nothing is asked for": (SOFTMAX, "", ["v0 v1 v2 v3"]),
    "a kept value": (SOFTMAX, "(keep e)", ["v0 v1", "v2 v3"]),
    "a kept sum": (SOFTMAX, "(keep s)", ["v0 v1 v2", "v3"]),
    "by the name of the value": (SOFTMAX, "(keep v1)", ["v0 v1", "v2 v3"]),
    "an inlined value": (SOFTMAX, "(inline e)", ["v0 v2 v3"]),
    "apart": (SOFTMAX, "(apart top s)", ["v0", "v1 v2 v3"]),
    "two requests": (SOFTMAX, "(inline e) (keep s)", ["v0 v2", "v3"]),
    "a contraction without its epilogue": (PRODUCT, "(apart t v1)", ["v0", "v1"]),
    "a contraction that is kept": (PRODUCT, "(keep t)", ["v0", "v1"]),
    "an operand of a contraction": (MAPPED, "(inline t)", ["v1 v2"]),
    "a contraction and its operand": (MAPPED, "(together t v1)", ["v0 v1 v2"]),
    "a map that would be a part of its reader": (MAPS, "(keep t)", ["v0", "v1"]),
    "maps apart": (MAPS, "(apart t y)", ["v0", "v1"]),
    "maps together": (MAPS, "(together t y)", ["v1"]),
}


@pytest.mark.parametrize("name", MEET)
def test_requests_are_met(name: str) -> None:
    body, requests, expected = MEET[name]
    assert kernels(body, requests) == expected


SHIFTED = PROGRAMS["shifted reads of a costly map"][0]
NEST = PROGRAMS["a nest between maps"][0]
SIBLINGS = """(for i 0 N 1 serial (setf (aref y i) (sin (aref x i)))) (for a 0 M 1 serial (for b 0 N 1 serial (setf (aref C a b) (exp (aref C a b)))))"""
EARLY = """(local t f32 (N) scratch) (local u f32 (N) scratch) (for i 0 N 1 serial (setf (aref t i) (exp (aref x i))))
  (for i_3 0 N 1 serial (setf (aref u i_3) (sin (+ (aref t i_3) (aref t (- (- N i_3) 1))))))
  (for i_2 0 N 1 serial (setf (aref y i_2) (+ (aref t i_2) (* (aref u i_2) (aref u (- (- N i_2) 1))))))"""
REFUSED = {
    "a shifted read": (SHIFTED, "(together t y)", r"\(together t y\): v1 \(y\) reads axis 0 of v0 \(t\) at \(- i 1\) \(shifted\)"),
    "a sum": (SOFTMAX, "(inline s)", r"\(inline s\): only a map is computed by its readers, and it is none"),
    "an output": (SOFTMAX, "(inline C)", r"\(inline C\): an output is stored"),
    "what a nest reads": (NEST, "(inline v0)", r"\(inline v0\): a nest is a kernel by itself"),
    "with a nest": (NEST, "(together v0 v1)", r"\(together v0 v1\): v1 \(y\): a nest is a kernel by itself"),
    "no read": (SIBLINGS, "(together y C)", r"\(together y C\): neither of v0 \(C\) and v1 \(y\) reads the other"),
    "an earlier reader": (EARLY, "(together t y)", r"\(together t y\): v1 \(u\) reads v0 \(t\), too, and its kernel runs before that of v2 \(y\)"),
    "no value": (SOFTMAX, "(keep q)", r"\(keep q\): there is no value 'q'"),
    "an argument": (SOFTMAX, "(keep B)", r"\(keep B\): 'B' is an argument, which no kernel computes"),
    "one value": (SOFTMAX, "(together e v1)", r"\(together e v1\): the two values are the same one"),
    "kept and inlined": (SOFTMAX, "(keep e) (inline v1)", r"\(inline v1\): \(keep e\) excludes it"),
    "kept and together": (SOFTMAX, "(keep e) (together s e)", r"\(together s e\): \(keep e\) excludes it"),
    "together and apart": (SOFTMAX, "(apart e s) (together s e)", r"\(together s e\): \(apart e s\) excludes it"),
    "inlined and apart": (SOFTMAX, "(apart e s) (inline e)", r"\(apart e s\): v1 \(e\) is computed by its readers"),
    "another word": (SOFTMAX, "(columns 32)", r"\(columns 32\): it is not a request to fusion"),
    "no number of rows": (SOFTMAX, "(rows 0)", r"\(rows 0\): it is not a request to fusion"),
    "two numbers of rows": (SOFTMAX, "(rows 32) (rows 8)", r"\(rows 8\): \(rows 32\) excludes it"),
    "whole and online": (SOFTMAX, "(whole e) (online v1 8)", r"\(online e 8\): \(whole e\) excludes it|\(online v1 8\): \(whole e\) excludes it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_requests_are_refused(name: str) -> None:
    body, requests, message = REFUSED[name]
    with pytest.raises(CatenError, match=f"E473: {message}"):
        made(body, requests)


def test_reasons_are_the_requests() -> None:
    assert [str(b.why.text) for b in boundaries_of(made(SOFTMAX, "(keep e) (apart top e)")) if hasattr(b.why, "text")] == [
        "[schedule] fusion keeps them apart", "[schedule] fusion keeps it", "[schedule] fusion keeps it"]
    assert list(computed_by_readers(made(SOFTMAX, "(inline e)"))) == ["v1"]


def test_no_fusion_no_requests() -> None:
    program = next(p for p in PASSES if p.name == RAISE).run(op(SOFTMAX, "(opt 0) (fusion (keep q))"), Planning())
    verify(program)


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_request_is_met_or_refused(name: str) -> None:
    """All requests on all values and pairs of values of a program."""
    body = PROGRAMS[name][0]
    values = [v for d in made(body, "").definitions for v in d.names]
    requests = [*[f"({word} {v})" for word in ("keep", "inline") for v in values],
                *[f"({word} {a} {b})" for word in ("together", "apart") for a in values for b in values if a != b]]
    met = 0
    for request in requests:
        try:
            found = [set(names_of(k)) for k in kernels_of(made(body, request))]
        except CatenError as refused:
            if "E473" not in str(refused):
                raise
            continue
        met += 1
        word, *names = request.strip("()").split()
        around = [k for k in found if names[0] in k]
        if word == "inline":
            assert around == []
        elif word == "apart":
            assert not any(set(names) <= k for k in found)
        elif word == "together":
            assert around == [] or set(names) <= around[0] or not any(names[1] in k for k in found)
        else:
            assert len(around) == 1
    assert met >= len(values), "each value may be kept"


ATTENTION = """[composite]
name = "Attention"
inputs = ["Q{float}[T D]", "K{float}[T D]", "V{float}[T D]"]
outputs = ["O{float}[T D]"]
[implementation]
lang = "python"
code = '''
S = Q @ K.T
E = np.exp(S - S.max(axis=-1, keepdims=True))
P = E / E.sum(axis=-1, keepdims=True)
return P @ V
'''
[schedule]
fusion = "%s"
"""
VARIABLES = {
    "": ["v0", "v1 v2 v3 v4", "v5"], "(keep S)": ["v0", "v1 v2 v3 v4", "v5"], "(together S E)": ["v0 v1 v2 v3 v4", "v5"],
    "(together P O)": ["v0", "v1 v2 v3", "v4 v5"], "(apart E P)": ["v0", "v1 v2", "v3 v4", "v5"], "(inline P)": ["v0", "v1 v2 v3", "v5"],
}


@pytest.mark.parametrize("request_", VARIABLES)
def test_variables_of_a_body_over_whole_arrays_have_their_names(request_: str) -> None:
    options = Options(config=(("MARCH", "x86_64_v3"),), opt=1)
    (program,) = loading.load_programs(SpecText("attention.toml", ATTENTION % request_, "toml"), options)
    values = driver.advance(program, "tensor", options)
    assert isinstance(values, TensorProgram)
    assert [" ".join(names_of(k)) for k in kernels_of(values)] == VARIABLES[request_]
    loops = driver.advance(values, "loop", options)
    assert isinstance(loops, LoopProgram)
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((5, 3)).astype(np.float32) for _ in range(3))
    arrays = {"T": 5, "D": 3, "Q": q, "K": k, "V": v, "O": np.zeros((5, 3), np.float32)}
    assert interpret.run(loops, arrays) == 0
    e = np.exp(q @ k.T - (q @ k.T).max(axis=-1, keepdims=True))
    np.testing.assert_allclose(arrays["O"], e / e.sum(axis=-1, keepdims=True) @ v, rtol=1e-5)


@pytest.mark.parametrize(("request_", "near"), [("(keep e)", "did you mean 'E'? The"), ("(together Sum P)", "the")])
def test_a_name_that_is_not_known_has_those_that_are(request_: str, near: str) -> None:
    (program,) = loading.load_programs(SpecText("attention.toml", ATTENTION % request_, "toml"), Options())
    with pytest.raises(CatenError) as refused:
        driver.advance(program, "tensor", Options())
    (told,) = refused.value.diagnostics
    known = [*(["P"] if "P)" in request_ else []), "O", *"SEP", *[f"v{n}" for n in range(6)]]
    assert told.code == "E473"
    assert told.hint == f"{near} values are {', '.join(dict.fromkeys(known))}; caten ir shows them"
    for name in known:
        (program,) = loading.load_programs(SpecText("attention.toml", ATTENTION % f"(keep {name})", "toml"), Options())
        driver.advance(program, "tensor", Options())


def test_a_value_between_is_named() -> None:
    (program,) = loading.load_programs(SpecText("attention.toml", ATTENTION % "(together E O)", "toml"), Options())
    with pytest.raises(CatenError, match=r"E473: \(together E O\): v2 \(E\) is read by v3, v4, and none of them is in the kernel of v5 \(O\)"):
        driver.advance(program, "tensor", Options())


def test_what_is_kept_has_memory_of_its_own() -> None:
    spec = ATTENTION.split("code =")[0] + "code = '''\nP = np.exp(Q)\nreturn P + V * K\n'''\n[schedule]\nfusion = \"(keep P)\"\n"
    (program,) = loading.load_programs(SpecText("sum.toml", spec, "toml"), Options())
    values = driver.advance(program, "tensor", Options())
    assert isinstance(values, TensorProgram)
    assert [names_of(k) for k in kernels_of(values)] == [("v0",), ("v1",)]
    assert "(local P f32 (T D) scratch)" in show(lower(values))
    assert "scratch" not in show(lower(values.without(Fusion)))


@pytest.mark.parametrize("runtime", ["cuda", "opencl", "metal"])
@pytest.mark.parametrize("requests", ["(rows 32)", "(whole S)", "(online S 256)", "(online E 256) (rows 16)", "(rows 16) (together S E)"])
def test_devices_ignore_requests_to_blocks_with_a_warning(requests: str, runtime: str) -> None:
    def loops(text: str) -> tuple[str, list[Diagnostic]]:          # without the names of values, which requests may change
        heard: list[Diagnostic] = []
        options = Options(runtime=runtime, opt=1)
        (program,) = loading.load_programs(SpecText("attention.toml", text, "toml"), options)
        _, _, kernels = show(driver.advance(program, "loop", options, heard.append)).partition("(kernel")
        return re.sub(r"\b([SE]|v[0-9]+)(_[0-9])?\b", "v", kernels), heard
    text = ATTENTION.replace("T D]", "T 64]") % requests
    made, heard = loops(text)
    told = [r for r in requests.replace(") (", ")|(").split("|") if "together" not in r]
    assert [(d.code, d.message.split(" is")[0]) for d in heard] == [("E946", f"Attention: {r}") for r in told]
    assert all(d.place is not None and d.place.line == text[:text.index(r)].count("\n") + 1 for d, r in zip(heard, told, strict=True))
    want, none = loops(text.replace(requests, "(together S E)" if "together" in requests else ""))
    assert made == want
    assert not none
    with pytest.raises(CatenError, match=r"E473: \(whole Z\): there is no value 'Z'"):
        loops(text.replace(requests, "(whole Z)"))


def test_devices_refuse_what_is_refused_elsewhere() -> None:
    spec = ATTENTION.split("code =")[0] + "code = 'return np.exp(Q) + V * K'\n[schedule]\nfusion = \"(rows 32)\"\n"
    for runtime in ("clang", "cuda"):
        options = Options(runtime=runtime)
        (program,) = loading.load_programs(SpecText("sum.toml", spec, "toml"), options)
        with pytest.raises(CatenError, match=r"E473: \(rows 32\): no kernel runs in blocks of rows"):
            driver.advance(program, "loop", options)


OUTPUTS = """[composite]
name = "Sums"
inputs = ["X{float}[M N]", "I{int}[M]", "Z{float}[K N]"]
outputs = ["Z", "t{float}[M]", "u{float}[M N]"]
[implementation]
lang = "python"
code = '''
G = np.exp(X)
np.add.at(Z, I, G)
s = G.sum(axis=1)
D = np.sin(G)
return Z, s, D
'''
[schedule]
fusion = "%s"
"""


@pytest.mark.parametrize("name", ["Z", "t", "u"])
def test_the_name_of_an_output_is_that_of_what_it_holds_after_the_call(name: str) -> None:
    (program,) = loading.load_programs(SpecText("sums.toml", OUTPUTS % f"(keep {name}) (apart G {name})", "toml"), Options())
    values = driver.advance(program, "tensor", Options())
    assert isinstance(values, TensorProgram)
    meant = next(o.value for o in values.outputs if o.name == name)
    around = [names_of(k) for k in kernels_of(values) if meant in names_of(k)]
    assert around == [(meant,)]


def test_two_names_of_one_output_are_one_value() -> None:
    for pair in ("s t", "D u"):
        text = OUTPUTS.replace("np.add.at(Z, I, G)", "Z += 1") % f"(together {pair})"
        (program,) = loading.load_programs(SpecText("sums.toml", text, "toml"), Options())
        with pytest.raises(CatenError, match=r"E473: .*: the two values are the same one"):
            driver.advance(program, "tensor", Options())


def test_variables_beside_loops_over_elements_have_their_names() -> None:
    spec = ATTENTION.split("code =")[0] + """code = '''
A = np.zeros_like(Q)
for i in range(T):
    for j in range(D):
        A[i, j] = np.exp(Q[i, j] + K[i, j])
total = A.sum(axis=1)
return A / total[:, None] + V
'''
[schedule]
fusion = "(keep total)"
"""
    (program,) = loading.load_programs(SpecText("mixed.toml", spec, "toml"), Options())
    values = driver.advance(program, "tensor", Options())
    assert isinstance(values, TensorProgram)
    assert [names_of(k) for k in kernels_of(values)] == [("v0", "v1"), ("v2",)]
