"""Machine-readable diagnostics: JSON, SARIF 2.1.0 for code scanning, and annotations of GitHub workflows.

Sources: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub Docs, "Workflow commands for
GitHub Actions".
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import Diagnostic, Place
from ..version import __version__

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def json_text(diagnostics: Sequence[Diagnostic], exit_code: int) -> str:
    """A JSON list with one object per diagnostic."""
    return json.dumps([d.as_json() for d in diagnostics], indent=2, ensure_ascii=True)


def sarif_text(diagnostics: Sequence[Diagnostic], exit_code: int) -> str:
    """A SARIF log with one run: a rule with its page for each code that occurs, and a result for each diagnostic.
    Columns count code points."""
    codes = sorted({d.code for d in diagnostics})
    run = {
        "tool": {"driver": {"name": "caten", "version": __version__, "rules": [_rule(code) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": exit_code == 0, "exitCode": exit_code}],
        "results": [_result(d, codes.index(d.code)) for d in diagnostics],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=True)


def _rule(code: str) -> dict[str, Any]:
    from .explanation_pages import all_pages, title_of  # imported here: only SARIF needs the pages
    page = all_pages().get(code, f"# {code}")
    return {"id": code, "shortDescription": {"text": title_of(page)}, "help": {"text": page, "markdown": page}}


def _result(d: Diagnostic, index: int) -> dict[str, Any]:
    remarks = [text for text, place in d.notes if place is None] + ([d.hint] if d.hint else [])
    result: dict[str, Any] = {"ruleId": d.code, "ruleIndex": index, "level": d.severity,
                              "message": {"text": "\n".join([d.message, *remarks])}}
    if d.place:
        result["locations"] = [_location(d.place)]
    related = [{**_location(place), "id": n, "message": {"text": text}}
               for n, (text, place) in enumerate(d.notes, 1) if place]
    return {**result, "relatedLocations": related} if related else result


def _location(place: Place) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(1, place.line), "startColumn": max(1, place.column)}
    if place.text:
        region["snippet"] = {"text": place.text.rstrip("\r\n")}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(place.file)}, "region": region}}


def _uri(file: str) -> str:
    """The URI of a file; relative names stay relative, so that a service finds the file in its checkout."""
    return Path(file).as_uri() if os.path.isabs(file) else quote(file.replace(os.sep, "/"))


def github_text(diagnostics: Sequence[Diagnostic], exit_code: int) -> str:
    """One line per diagnostic: message, notes and hint, separated by encoded line ends."""
    return "\n".join(map(_command, diagnostics))


def _command(d: Diagnostic) -> str:
    properties = {"file": d.place.file, "line": d.place.line, "col": d.place.column} if d.place else {}
    listed = ",".join([f"{key}={_encoded(str(value), ',:')}"
                       for key, value in (properties | {"title": f"caten {d.code}"}).items()])
    remarks = [f"note: {text}" for text, _ in d.notes] + ([f"hint: {d.hint}"] if d.hint else [])
    return f"::{d.severity} {listed}::" + _encoded("\n".join([d.message, *remarks]))


def _encoded(text: str, also: str = "") -> str:
    """Percent-encode the characters with a meaning in workflow commands; `also`: further ones, for properties."""
    for c in "%\r\n" + also:
        text = text.replace(c, f"%{ord(c):02X}")
    return text


# Formats written at the end of the command: name -> the function of all diagnostics and the exit code.
WRITTEN_LAST: Mapping[str, Callable[[Sequence[Diagnostic], int], str]] = {"json": json_text, "sarif": sarif_text,
                                                                          "github": github_text}
