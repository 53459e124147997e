"""The import rule: who may import whom, no cycles (imports inside functions counted), and each file name once."""
from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
ROOT = TOP / "src" / "caten"
BASE = {"build_progress", "cores", "frozen", "errors", "options", "core", "echo", "documents", "schemas"}
STAGES = {"calls", "frontend", "loop", "tensor", "schedule", "render", "runtime"}
MEANING = {"mathematics", "semantics"}
PIPELINE = {"passes", "attach", "loading", "driver", "compiler"}
# package or module -> what of ours it may import, besides itself
ALLOWED: dict[str, set[str]] = {
    "build_progress": set(), "cores": set(), "frozen": set(), "collector": set(), "notices": set(), "echo": set(), "schemas": {"echo"}, "documents": {"echo", "schemas"}, "diagnostic": {"frozen"},
    "diagnostic_lines": {"diagnostic", "echo"}, "errors": {"diagnostic", "diagnostic_lines"},
    "options": {"frozen", "errors"}, "core": {"frozen", "errors"}, "mathematics": {"frozen", "core"},
    "loop": BASE, "semantics": BASE | {"mathematics", "loop", "tensor"}, "tensor": BASE | {"loop", "frontend.op"},
    "frontend": BASE | {"loop", "tensor"},
    "schedule": BASE | {"mathematics", "loop"}, "render": BASE | {"mathematics", "loop"},
    "calls": BASE, "bindings": BASE | {"loop", "render", "calls"}, "runtime": BASE | {"notices", "loop", "render", "calls", "bindings"},
    "graphs": BASE | {"loop", "tensor"}, "gradients": BASE | {"loop", "tensor"}, "differentiation": BASE | {"attach", "driver", "frontend", "gradients", "loading", "loop", "tensor"}, "faults": {"runtime"},
    "passes": BASE | {"frontend", "loop", "tensor", "schedule"},
    "attach": BASE | {"frontend", "loop", "runtime", "schedule", "passes"},
    "loading": BASE | {"frontend", "passes", "attach"},
    "driver": BASE | {"collector", "loop", "schedule", "runtime", "faults", "passes", "attach"},
    "compiler": BASE | {"frontend", "loop", "render", "runtime", "attach", "loading", "driver"},
    "kernels": BASE | {"collector"} | STAGES | PIPELINE,
    "testing": BASE | MEANING | {"differentiation"} | STAGES | PIPELINE,
    "argument_checks": BASE | {"runtime"}, "checking": BASE | {"driver", "runtime", "loading", "frontend", "loop", "testing"}, "api": BASE | {"collector", "argument_checks", "checking", "kernels", "functions"} | STAGES | PIPELINE,
    "api_runs": BASE | {"api", "argument_checks", "checking", "benchmarking", "tuning", "workflows"} | STAGES | PIPELINE,
    "functions": BASE | {"api", "argument_checks", "calls", "frontend", "runtime"},
    "ops": {"api", "frontend"},
    "benchmarking": BASE | {"version", "testing"} | STAGES | PIPELINE,
    "tuning": BASE | {"semantics", "testing", "benchmarking"} | STAGES | PIPELINE,
    "conformance": BASE | {"version", "testing"} | MEANING | STAGES | PIPELINE,
    "workflows": BASE | {"version", "checking", "kernels", "conformance", "testing", "benchmarking", "tuning"} | STAGES | PIPELINE,
    "cli": BASE | {"early_interrupt", "workflows", "graphs", "notices", "checking", "collector", "diagnostic_lines", "version", "faults", "conformance", "tuning", "kernels", "testing", "benchmarking", "api", "bindings"} | STAGES | PIPELINE,
    "version": set(), "early_interrupt": set(), "__init__": {"version", "api", "api_runs", "functions", "ops"}, "__main__": {"early_interrupt", "cli"},
}
FILES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> list[tuple[str, int]]:
    """The modules of ours that a file imports, at its top or inside a function, dotted below caten, with the line."""
    package = path.relative_to(ROOT).parts[:-1]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[:len(package) - (node.level - 1)]
            found += [(m, node.lineno) for m in modules((*above, *(node.module or "").split(".")), [a.name for a in node.names])]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "caten":
            found += [(m, node.lineno) for m in modules(tuple(node.module.split(".")[1:]), [a.name for a in node.names])]
    return found


def modules(base: tuple[str, ...], names: list[str]) -> list[str]:
    """What `from base import names` imports: submodules where there are such, else the module that has the names."""
    within = ".".join([part for part in base if part])
    below = [f"{within}.{name}".lstrip(".") for name in names]
    return [m if (ROOT / (m.replace(".", "/") + ".py")).exists() or not within else within for m in below]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_file_imports_only_what_its_layer_may(path: Path) -> None:
    own = path.relative_to(ROOT).with_suffix("").parts[0]
    for module, line in imports(path):
        allowed = ALLOWED[own] | {own}
        assert module.split(".")[0] in allowed or module in allowed, f"{path.relative_to(ROOT)}:{line} imports {module}"


def import_graph(source: Path) -> dict[str, set[str]]:
    """The modules and packages below a folder, with those that each imports, also inside functions and for types alone."""
    files = {".".join(p.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): p for p in source.rglob("*.py")}
    graph = {}
    for name, path in files.items():
        package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
        found: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = ".".join([*(package[:len(package) - (node.level - 1)] if node.level else []), *([node.module] if node.module else [])])
                found |= {full if (full := f"{base}.{a.name}") in files else base for a in node.names}
        graph[name] = (found & files.keys()) - {name}
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, if there are any."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name):], name]
        if name not in done:
            done.add(name)
            for m in sorted(graph[name]):
                if found := visit(m, [*path, name]):
                    return found
        return []
    return next((found for name in graph if (found := visit(name, []))), [])


def test_no_cycles_between_modules() -> None:
    assert circle(import_graph(ROOT.parent)) == []


@pytest.mark.parametrize("text", ["from . import b", "def late():\n    from .b import x", "import p.b", "from p import b",
                                  "if TYPE_CHECKING:\n    from .b import x"])
def test_any_form_of_import_makes_a_cycle(tmp_path: Path, text: str) -> None:
    for name, content in {"__init__": "from .c import x", "a": text, "b": "from . import x", "c": "from .a import x"}.items():
        (tmp_path / "p").mkdir(exist_ok=True)
        (tmp_path / "p" / f"{name}.py").write_text(content)
    assert circle(import_graph(tmp_path)) == ["p", "p.c", "p.a", "p.b", "p"]


def test_daten_stands_above_caten() -> None:
    """It may import what it needs of caten, its own command alone the parts of the command line; nothing of caten imports it."""
    for path in FILES:
        assert "daten" not in re.findall(r"^ *(?:from|import) (\w+)", path.read_text(), re.MULTILINE), path
    for path in (ROOT.parent / "daten").rglob("*.py"):
        if path.name != "cli.py":
            assert not [m for m in re.findall(r"^ *(?:from|import) (caten\.\w+)", path.read_text(), re.MULTILINE) if m == "caten.cli"], path


def test_each_file_name_occurs_once() -> None:
    """A name says where to look: the same one in two folders does not."""
    own = ("__init__.py", "__main__.py")                   # the names that Python gives
    count = Counter(p.name for p in ROOT.parent.rglob("*.py") if p.name not in own)
    assert [name for name, times in count.items() if times > 1] == []


def test_every_diagnostic_code_has_its_page() -> None:
    pages = {p.stem for p in (ROOT / "explanations").glob("E*.md")}
    files = [*FILES, *sorted((ROOT.parent.parent / "runtimes").glob("*.py")), *(ROOT.parent / "daten").rglob("*.py")]
    raised = {c for p in files for c in re.findall(r'"(E\d{3})"', p.read_text())}
    assert raised - pages == set()
    assert pages - raised == set()


@pytest.mark.parametrize("page", sorted((ROOT / "explanations").glob("E*.md")), ids=lambda p: p.stem)
def test_pages_of_diagnostics_have_a_title_and_fit_a_screen(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.startswith("# ")
    assert 4 <= len(text.splitlines()) <= 25


def test_few_lines_escape_the_type_checker() -> None:
    found = [line.strip() for f in ROOT.parent.rglob("*.py") for line in f.read_text().splitlines() if "type: ignore" in line]
    assert len(found) < 20, "\n".join(found)


def test_what_stands_at_the_top_of_the_repository() -> None:
    """No cache, library or folder that a command left there."""
    if shutil.which("git") is None or not (TOP / ".git").exists():
        pytest.skip("needs git")
    listed = subprocess.run(["git", "ls-files", "--cached"], cwd=TOP, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {Path(name).parts[0] for name in listed} == {".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "benchmarks", "docs", "pyproject.toml", "runtimes",
                                                        "samples", "src", "tests"}
