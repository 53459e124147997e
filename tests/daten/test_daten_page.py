"""What docs/daten.md shows is what comes out."""
from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

from daten import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "daten.md"
SHOWN = PAGE.parents[1] / "samples" / "daten" / "mlp.toml"


def test_the_listing_on_the_page_is_that_of_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    """Some of its lines; but for the bytes inside of kernels, which depend on the caches of the machine."""
    (block,) = re.findall(r"prints one kernel a line.*?^```\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    cli.cli.main(["show", str(SHOWN)], standalone_mode=False)
    inside = re.compile(r"[\d,]+ bytes inside of kernels")
    printed = iter([inside.sub("", line) for line in capsys.readouterr().out.splitlines()])
    for line in block.splitlines():
        assert inside.sub("", line) in printed, line                 # in this order


def test_the_page_shows_what_is_printed() -> None:
    space: dict[str, Any] = {}
    for n, code in enumerate(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)):
        out, file = io.StringIO(), f"<daten.md {n}>"
        linecache.cache[file] = len(code), None, code.splitlines(True), file         # as a notebook does: functions have a source
        with contextlib.redirect_stdout(out):
            exec(compile(code, file, "exec"), space)
        shown = re.findall(r"print\(.*\)\s+# (.*)$", code, re.MULTILINE)
        printed = out.getvalue().splitlines()
        assert [line for line in printed if line in shown] == shown
        assert len(printed) == len(re.findall(r"^ *print\(", code, re.MULTILINE))
