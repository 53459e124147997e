"""The import rule: who may import whom, no cycles (imports inside functions counted), and each file name once."""
from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "src" / "caten"
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
    "graphs": BASE | {"loop", "tensor"}, "gradients": BASE | {"loop", "tensor"}, "differentiation": BASE | {"driver", "frontend", "gradients", "loading", "loop", "tensor"}, "faults": {"runtime"},
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
    "benchmarking": BASE | {"__version__", "testing"} | STAGES | PIPELINE,
    "tuning": BASE | {"semantics", "testing", "benchmarking"} | STAGES | PIPELINE,
    "conformance": BASE | {"__version__", "testing"} | MEANING | STAGES | PIPELINE,
    "workflows": BASE | {"__version__", "checking", "kernels", "conformance", "testing", "benchmarking", "tuning"} | STAGES | PIPELINE,
    "cli": BASE | {"workflows", "graphs", "notices", "checking", "collector", "diagnostic_lines", "__version__", "faults", "conformance", "tuning", "kernels", "testing", "benchmarking", "api", "bindings"} | STAGES | PIPELINE,
    "__init__": {"api", "api_runs", "functions", "ops"}, "__main__": {"cli"},
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


def test_no_cycles_between_modules() -> None:
    graph = {".".join(p.relative_to(ROOT).with_suffix("").parts): [m for m, _ in imports(p)] for p in FILES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name in done or name not in graph:
            return
        for m in graph[name]:
            visit(m, (*path, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def test_daten_stands_above_caten() -> None:
    """It may import what it needs of caten, its own command alone the parts of the command line; nothing of caten imports it."""
    for path in FILES:
        assert "daten" not in re.findall(r"^ *(?:from|import) (\w+)", path.read_text(), re.MULTILINE), path
    for path in (ROOT.parent / "daten").rglob("*.py"):
        if path.name != "cli.py":
            assert not [m for m in re.findall(r"^ *(?:from|import) (caten\.\w+)", path.read_text(), re.MULTILINE) if m == "caten.cli"], path


def test_each_file_name_occurs_once() -> None:
    """A name says where to look: the same one in two folders does not."""
    count = Counter(p.name for p in FILES if p.name != "__init__.py")
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
