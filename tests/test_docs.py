"""The documentation is true: its commands print what it says, its reference pages are those of the code."""
from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest

from caten import driver, loading
from caten.cli.commands import fmt
from caten.core.text import flat, read_forms, show
from caten.errors import Place
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.schedule.script import PRIMITIVES

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / name for name in ("tour.md", "fusion.md")]
BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]*)\n(?P<output>.*?)```\n", re.DOTALL)

FENCE = re.compile(r"^(?:`(?P<file>[\w./]+)`:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
LANGUAGE = ROOT / "docs" / "language.md"
LONG = ("caten tune", "caten bench")                # these commands measure for seconds


def blocks(page: Path, kind: str) -> list[str]:
    """The blocks of code of one kind on a page."""
    return [m["text"] for m in FENCE.finditer(page.read_text()) if m["kind"] == kind]


def compiled(text: str, lang: str) -> None:
    """A spec goes through all stages, verified after each pass."""
    options = Options(verify=True)
    for program in loading.load_programs(SpecText("language.md", text, lang), options):
        driver.advance(program, "loop", options)


def run(command: str, folder: Path = ROOT) -> str:
    python = f'"{sys.executable}"'
    words = re.sub(r"^python (?=-)", f"{python} ", re.sub(r"(?<![\w./])caten (?=\w|-)", f"{python} -m caten ", command), flags=re.MULTILINE)
    done = subprocess.run(["bash", "-ec", words], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_print_what_the_page_says(page: Path, update_goldens: bool) -> None:
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks, "a page of commands has commands"
    outputs = [run(b["command"]) for b in blocks]
    if update_goldens:
        for b, out in reversed(list(zip(blocks, outputs, strict=True))):
            text = text[:b.start("output")] + out + text[b.end("output"):]
        page.write_text(text)
    for b, out in zip(BLOCK.finditer(text), outputs, strict=True):
        assert b["output"] == out, f"`{b['command']}` prints something else; pytest --update-goldens writes it into the page"


def test_values_and_loops_on_the_page_of_fusion_are_those_of_its_specs() -> None:
    """The blocks that are no output of a command: their forms are parts of what the stages make of a spec."""
    page, options = ROOT / "docs" / "fusion.md", Options(opt=1)
    rows = next(text for text in blocks(page, "toml") if '"Rows"' in text)
    made: dict[str, str] = {}
    for text in ((ROOT / "samples" / "prefix_sum.toml").read_text(), rows):
        for level in ("tensor", "loop"):
            (program,) = loading.load_programs(SpecText("spec.toml", text, "toml"), options)
            made[f"{program.name}, {level}"] = flat(read_forms(show(driver.advance(program, level, options)), lambda at: Place("", 1, at))[0])
    shown = [[flat(form) for form in read_forms(text, lambda at: Place("", 1, at))] for text in blocks(page, "lisp")]
    assert [[name for name, whole in made.items() if all(form in whole for form in forms)] for forms in shown] == [["PrefixSum, tensor"], ["Rows, tensor"], ["Rows, loop"]]


def script(name: str) -> ModuleType:
    """A script of the docs folder as a module."""
    if str(ROOT / "docs") not in sys.path:
        sys.path.insert(0, str(ROOT / "docs"))                   # the scripts import each other
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_are_those_that_the_script_draws() -> None:
    module = script("pictures")
    folder = ROOT / "docs" / "pictures"
    assert {p.stem for p in folder.iterdir()} == set(module.PICTURES)
    for name, picture in module.PICTURES.items():
        drawn = picture()
        assert (folder / f"{name}.svg").read_text() == drawn, f"docs/pictures/{name}.svg is stale: run python docs/pictures.py"
        ElementTree.fromstring(drawn)


@pytest.mark.parametrize("name", ["glossary", "architecture"])
def test_every_path_that_a_page_names_exists(name: str) -> None:
    named = re.findall(r"`((?:src|samples|runtimes|docs|tests|benchmarks)(?:/[\w./-]+)?)`", (ROOT / "docs" / f"{name}.md").read_text())
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_step_of_the_schedule_language_has_its_names_elsewhere() -> None:
    assert list(script("generate").ELSEWHERE) == list(PRIMITIVES)


def test_reference_pages_are_generated_from_the_code(update_goldens: bool) -> None:
    module = script("generate")
    for name, page in module.PAGES.items():
        expected = module.tidy(page())
        if update_goldens:
            (ROOT / "docs" / name).write_text(expected)
        assert (ROOT / "docs" / name).read_text() == expected, f"docs/{name} is stale: run python docs/generate.py"


def test_links_between_pages_exist() -> None:
    for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
        text = re.sub(r"```.*?```|`[^`\n]*`(?!\])", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_specs_on_pages_have_the_layout_of_caten_fmt() -> None:
    shown = [(page, text) for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"] for text in blocks(page, "toml") if "[composite" in text]
    assert len(shown) > 5
    for page, text in shown:
        assert fmt.formatted(SpecText(page.name, text, "toml")) == text, page.name


@pytest.mark.slice(3)
@pytest.mark.parametrize("name", ["calling", "functions", "runtimes", "write-a-runtime", "rewrites"])
def test_what_a_page_shows_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                 tool: Callable[[str], str]) -> None:
    """A page as one story: its files are written, its commands run, its Python executed, in order and in one folder. A `text` block is what the
    block before it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{tmp_path}")
    names: dict[str, object] = {}
    printed = ""
    page = (ROOT / "docs" / f"{name}.md").read_text()
    if "--runtime riscv" in page:
        tool("qemu-riscv64")
        pytest.importorskip("wasmtime", reason="needs wasmtime")
    for m in FENCE.finditer(page):
        if m["file"]:
            (tmp_path / m["file"]).write_text(m["text"])
        elif m["kind"] == "sh":
            printed = run(m["text"], tmp_path)
        elif m["kind"] == "python":
            exec(compile(m["text"], f"{name}.md", "exec"), names)
            printed = capsys.readouterr().out
        elif m["kind"] == "text":
            assert m["text"] == printed


def test_the_tour_in_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nightly: bool) -> None:
    """Every third command by day; searches and measurements at night."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    page = ROOT / "README.md"
    (tmp_path / "samples").mkdir()
    for name in ("gemm", "axpy"):
        (tmp_path / "samples" / f"{name}.toml").write_text((ROOT / "samples" / f"{name}.toml").read_text())
    commands = [c for c in blocks(page, "sh") if c.startswith("caten ")]
    assert len(commands) == 1
    run("".join([line for line in commands[0].splitlines(True)[::1 if nightly else 3] if nightly or not line.startswith(LONG)]), tmp_path)
    compiled(blocks(page, "toml")[0], "toml")
    for block in blocks(page, "python"):
        exec(compile(block, "README.md", "exec"), {})


def examples() -> list[str]:
    """The examples of every --help, without what stands behind two blanks."""
    text = (ROOT / "docs" / "commands.md").read_text()
    lines = [line.strip() for part in re.findall(r"Examples:\n(.*?)(?:\n\n|```)", text, re.DOTALL) for line in part.splitlines()]
    cut = [re.match(r"""(?:'[^']*'|"[^"]*"|(?!  ).)*""", line) for line in lines]
    return list(dict.fromkeys([m[0].strip() for m in cut if m is not None and m[0].strip()]))


def test_the_examples_of_every_help_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nightly: bool) -> None:
    """Every tenth one by day. Searches and measurements take long: at night, and in the tests of those commands."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))
    for folder, names in ((tmp_path, "*.toml"), (tmp_path / "samples", "gem[mv].toml")):
        folder.mkdir(exist_ok=True)
        for spec in (ROOT / "samples").glob(names):
            (folder / spec.name).write_text(spec.read_text())
    (tmp_path / "build").mkdir()
    (tmp_path / "tiles.lisp").write_text("(schedule (parallel i))")
    (tmp_path / "gemm.lisp").write_text("(composite ((A{float}[N]) -> (B{float}[N])) (dotimes (i N) (setf (aref B i) (* 2 (aref A i)))))")
    for name, shape in (("a", (3, 4)), ("b", (4, 5)), ("c", (3, 5)), ("x", (2, 3))):
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
    np.savez(tmp_path / "data.npz", x=np.ones(4, np.float32), y=np.ones(4, np.float32))
    for command in examples()[::1 if nightly else 10]:
        if "CC=clang-19" in command or command.startswith(("caten test-runtime", "caten report")):        # see tests/conformance
            continue
        if nightly or not command.startswith(LONG):
            run(command.replace("=512", "=64"), tmp_path)


@pytest.mark.slice(4)
@pytest.mark.parametrize("text", blocks(LANGUAGE, "toml"), ids=itertools.count())
def test_every_spec_of_the_language_page_compiles(text: str) -> None:
    compiled(text, "toml")


@pytest.mark.parametrize("text", blocks(LANGUAGE, "lisp"), ids=itertools.count())
def test_every_body_of_the_language_page_compiles(text: str) -> None:
    """The page says what its snippets are bodies of: the second list of declarations."""
    declarations = re.sub(r";.*", "", blocks(LANGUAGE, "tensor")[1])
    compiled(text if text.startswith("(composite") else f"(composite ((\n{indent(declarations, ' ')}) -> (y))\n{text})", "lisp")


def test_every_declaration_of_the_language_page_is_read() -> None:
    for line in blocks(LANGUAGE, "tensor")[0].splitlines():
        declared = line.partition(";")[0].strip()
        name = declared.partition("{")[0]
        body = f"(setf {name} {name})" if "[]" in declared else f"(setf (aref {name}{' 0' * len(declared.partition('[')[2].partition(']')[0].replace('(* 2 M)', 'M').split())}) 0)"
        compiled(f"(composite (({declared}) -> ({name})) (when (< 1 0) {body}))", "lisp")


def test_specs_of_the_language_page_pass_their_tests(tmp_path: Path) -> None:
    specs = blocks(LANGUAGE, "toml")
    for n, text in enumerate(specs):
        (tmp_path / f"{n}.toml").write_text(text)
    found = json.loads(run(f"caten test {tmp_path} --runtime numpy --json -"))["files"]
    assert len(found) == len(specs) > 3
    assert all(file["passed"] and file["cases"] for file in found), found
