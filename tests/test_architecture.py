"""The import rule: who may import whom, no cycles, no late imports of our own modules."""
from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "src" / "caten"
BASE = {"frozen", "errors", "options", "core", "echo", "documents", "schemas"}
PIPELINE = {"passes", "attach", "loading", "driver"}
# package or module -> what of ours it may import, besides itself
ALLOWED: dict[str, set[str]] = {
    "frozen": set(), "collector": set(), "echo": set(), "schemas": {"echo"}, "documents": {"echo", "schemas"}, "errors": {"frozen"}, "options": {"frozen", "errors"}, "core": {"frozen", "errors"},
    "loop": BASE, "tensor": BASE | {"loop", "frontend.op"},
    "frontend": BASE | {"loop", "tensor"},
    "schedule": BASE | {"loop"}, "render": BASE | {"loop"}, "runtime": BASE | {"loop", "render"},
    "faults": {"runtime"},
    "passes": BASE | {"frontend", "loop", "tensor", "schedule"},
    "attach": BASE | {"frontend", "runtime", "schedule", "passes"},
    "loading": BASE | {"frontend", "passes", "attach"},
    "driver": BASE | {"collector", "loop", "schedule", "runtime", "faults", "passes", "attach"},
    "build": BASE | {"frontend", "loop", "runtime", "attach", "loading", "driver"},
    "kernels": BASE | {"collector", "frontend", "loop", "tensor", "schedule", "render", "runtime", *PIPELINE, "build"},
    "testing": BASE | {"frontend", "loop", "tensor", "schedule", "render", "runtime", *PIPELINE, "build"},
    "parameters": BASE | {"runtime"}, "api": BASE | {"parameters", "frontend", "loop", "tensor", "schedule", "render", "runtime", *PIPELINE, "build", "kernels"},
    "bench": BASE | {"__version__", "frontend", "loop", "tensor", "schedule", "render", "runtime", *PIPELINE, "build", "testing"},
    "tune": BASE | {"frontend", "loop", "tensor", "schedule", "render", "runtime", *PIPELINE, "build", "testing", "bench"},
    "conformance": BASE | {"__version__", "frontend", "loop", "tensor", "schedule", "render", "runtime", *PIPELINE, "build", "testing"},
    "cli": BASE | {"collector", "__version__", "faults", "conformance", "tune", "frontend", "loop", "tensor", "schedule", "render", "runtime", *PIPELINE, "build", "kernels", "testing", "bench", "api"},
    "__init__": {"api"}, "__main__": {"cli"},
}
FILES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """The modules of ours that a file imports, dotted below caten: (module, line, inside a function?)."""
    package = path.relative_to(ROOT).parts[:-1]
    found = []
    tree = ast.parse(path.read_text())
    late = {id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[:len(package) - (node.level - 1)]
            names = [(*base, *node.module.split("."))] if node.module else [(*base, a.name) for a in node.names]
            found += [(".".join(n), node.lineno, id(node) in late) for n in names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "caten":
            found.append((node.module.removeprefix("caten").lstrip("."), node.lineno, id(node) in late))
    return [(m, line, inside) for m, line, inside in found if m]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_file_imports_only_what_its_layer_may(path: Path) -> None:
    own = path.relative_to(ROOT).with_suffix("").parts[0]
    for module, line, _ in imports(path):
        allowed = ALLOWED[own] | {own}
        assert module.split(".")[0] in allowed or module in allowed, f"{path.relative_to(ROOT)}:{line} imports {module}"


def test_no_cycles_between_modules() -> None:
    graph = {".".join(p.relative_to(ROOT).with_suffix("").parts): [m for m, _, late in imports(p) if not late] for p in FILES}
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


def test_every_diagnostic_code_has_its_page() -> None:
    import re
    pages = {p.stem for p in (ROOT / "explanations").glob("E*.md")}
    files = [*FILES, *sorted((ROOT.parent.parent / "runtimes").glob("*.py"))]
    raised = {c for p in files for c in re.findall(r'"(E\d{3})"', p.read_text())}
    assert raised - pages == set()
    assert pages - raised == set()


@pytest.mark.parametrize("page", sorted((ROOT / "explanations").glob("E*.md")), ids=lambda p: p.stem)
def test_pages_of_diagnostics_have_a_title_and_fit_a_screen(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.startswith("# ")
    assert 4 <= len(text.splitlines()) <= 25
