"""What -o, --emit and their friends make of each other."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from caten.cli.output_kinds import KINDS, Emit, Makes, Plan, plan, read_emit, stem_of
from caten.errors import UsageError

LIBRARY = (("so", "gemm.so"), ("header", "gemm.h"), ("manifest", "gemm.json"))


@pytest.mark.parametrize(("output", "emit", "files"), [
    (None, "", LIBRARY),
    ("out/libops.so", "", (("so", "out/libops.so"), ("header", "out/libops.h"), ("manifest", "out/libops.json"))),
    ("libops.so.1.2", "", (("so", "libops.so.1.2"), ("header", "libops.h"), ("manifest", "libops.json"))),
    ("x.c", "", (("c", "x.c"),)), ("x.h", "", (("header", "x.h"),)), ("x.s", "", (("asm", "x.s"),)), ("x.o", "", (("obj", "x.o"),)),
    ("x.json", "", (("manifest", "x.json"),)), ("x.py", "", (("python", "x.py"),)),
    ("x.a", "", (("a", "x.a"), ("header", "x.h"), ("manifest", "x.json"))),
    (None, "spec", (("spec", "-"),)), ("any.name", "spec", (("spec", "any.name"),)), ("-", "c", (("c", "-"),)),
    (None, "c,asm", (("c", "gemm.c"), ("asm", "gemm.s"))),
    (None, "c=a.txt,asm=-", (("c", "a.txt"), ("asm", "-"))),
    ("lib/x.so", "c", (("c", "lib/x.so"),)),
    ("lib/x.so", "c,example", (("c", "lib/x.c"), ("example", "lib/x_main.c"), ("so", "lib/x.so"), ("header", "lib/x.h"), ("manifest", "lib/x.json"))),
    (None, "so,header=inc/g.h", (("so", "gemm.so"), ("manifest", "gemm.json"), ("header", "inc/g.h"))),
])
def test_plan(output: str | None, emit: str, files: tuple[tuple[str, str], ...]) -> None:
    assert plan(output, read_emit(emit) if emit else [], "gemm").files == files


def test_save_temps_adds_the_text_of_every_stage() -> None:
    made = plan(None, [], "gemm", save_temps=True)
    assert made.files == (*LIBRARY, ("spec", "gemm.spec.lisp"), ("ir", "gemm.ir.lisp"), ("schedule", "gemm.schedule.lisp"), ("c", "gemm.c"),
    ("asm", "gemm.s"))


def test_a_runtime_without_c_names_its_own_artifact() -> None:
    numpy = Makes("numpy", ".json", c=False)
    assert plan(None, [], "gemm", makes=numpy).files == (("so", "gemm.numpy.json"), ("manifest", "gemm.numpy.manifest.json"))
    assert plan(None, [Emit("so", "x.json")], "gemm", makes=numpy).files == (("so", "x.json"), ("manifest", "x.manifest.json"))
    assert plan(None, [], "gemm", makes=Makes("wasm", ".wasm", c=False)).files[0] == ("so", "gemm.wasm")
    with pytest.raises(UsageError, match="E914"):
        plan("gemm.so", [], "gemm", makes=numpy)


@pytest.mark.parametrize(("output", "emits", "message"), [
    ("gemm.xyz", [], "the suffix '.xyz'"), ("gemm", [], "a name without suffix"), ("-", [], "does not select what to print"),
    ("-", [Emit("so")], "cannot go to stdout"),
    ("", [], "empty"), (None, [Emit("c", "-"), Emit("asm", "-")], "both c and asm would go to stdout"),
    (None, [Emit("c", "x"), Emit("asm", "x")], "go to x"),
    (None, [Emit("obj", "-")], "not text"),
])
def test_contradictions(output: str | None, emits: list[Emit], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan(output, emits, "gemm")
    assert message in str(refused.value)
    assert refused.value.diagnostics[0].code == "E903"


def test_kinds_of_emit() -> None:
    assert read_emit("c, asm=x.s") == [Emit("c"), Emit("asm", "x.s")]
    with pytest.raises(UsageError) as refused:
        read_emit("headr")
    assert refused.value.diagnostics[0].hint == "did you mean 'header'?"
    with pytest.raises(UsageError, match="empty"):
        read_emit("c=")


def test_every_kind_is_reachable() -> None:
    for kind in KINDS:
        assert kind in plan(None, [Emit(kind)], "x").kinds


@pytest.mark.parametrize(("inputs", "names", "output", "stem"), [
    (["a/b/gemm.toml"], ["Gemm"], None, "gemm"), (["-"], ["Gemm"], None, "gemm"), (["(composite …)"], ["Main"], None, "main"),
    (["x.y.toml"], ["Gemm"], None, "x"),
    (["a.toml", "b.toml"], ["A", "B"], "x.so", "a"), ([".toml"], ["A"], None, "out"),
])
def test_stem(inputs: list[str], names: list[str], output: str | None, stem: str) -> None:
    assert stem_of(inputs, names, output) == stem


def test_several_specs_need_a_name() -> None:
    with pytest.raises(UsageError, match="2 specs make one library"):
        stem_of(["a.toml", "b.toml"], ["A", "B"], None)


def test_path_of_a_kind() -> None:
    assert Plan((("c", "x.c"),), "x").path("c") == "x.c"
    assert Plan((("c", "x.c"),), "x").path("asm") is None


def test_pictures_of_values_and_kernels(caten: Any, folder: Path) -> None:
    assert caten("gemm.toml", "-O1", "--emit=dot,html").code == 0
    assert (folder / "gemm.dot").read_text().startswith('digraph "Gemm" {')
    assert (folder / "gemm.html").read_text().count('data-values="0.v0"') > 3
    assert caten("gemm.toml", "-O1", "-o", "picture.dot").code == 0
    assert (folder / "picture.dot").read_text() == (folder / "gemm.dot").read_text() == caten("gemm.toml", "-O1", "--emit=dot=-").out
    fused = caten("ir", "gemm.toml", "-O1", "--fused").out
    assert caten("--emit=dot=-", "-", stdin=fused).out == (folder / "gemm.dot").read_text()
    loops = caten("schedule", "gemm.toml", "-O1").out
    for kind in ("dot", "html"):
        refused = caten(f"--emit={kind}=-", "-", stdin=loops)
        assert refused.code == 2
        assert "Gemm is given as loops, in which no values are to be seen [E915]" in refused.err
