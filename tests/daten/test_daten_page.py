"""What docs/daten.md shows is what comes out."""
from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "daten.md"


def test_the_page_shows_what_is_printed() -> None:
    space: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, space)
        shown = re.findall(r"print\(.*\)\s+# (.*)$", code, re.MULTILINE)
        printed = out.getvalue().splitlines()
        assert [line for line in printed if line in shown] == shown
        assert len(printed) == len(re.findall(r"^ *print\(", code, re.MULTILINE))
