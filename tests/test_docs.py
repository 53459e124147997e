"""The documentation is true: its commands print what it says, its reference pages are those of the code."""
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / "tour.md"]
BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]*)\n(?P<output>.*?)```\n", re.DOTALL)


def run(command: str) -> str:
    caten = f'"{sys.executable}" -m caten'
    done = subprocess.run(["bash", "-c", re.sub(r"\bcaten (?=\w|-)", caten.replace("\\", "\\\\") + " ", command)], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, check=False)
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


def test_reference_pages_are_generated_from_the_code(update_goldens: bool) -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, page in module.PAGES.items():
        expected = module.tidy(page())
        if update_goldens:
            (ROOT / "docs" / name).write_text(expected)
        assert (ROOT / "docs" / name).read_text() == expected, f"docs/{name} is stale: run python docs/generate.py"


def test_links_between_pages_exist() -> None:
    for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
