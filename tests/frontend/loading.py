"""Specs from texts: what they become, and how they are refused."""
import pytest

from caten.errors import CatenError
from caten.frontend.spec import load
from caten.frontend.spec_files import SpecText
from caten.options import Options


def toml(text, name="f.toml"):
    return SpecText(name, text)


def lisp(text):
    return SpecText("<argument>", text, "lisp")


def only(text, options=None):
    program, = load(text if isinstance(text, SpecText) else toml(text), options or Options())
    return program


def refusals(text, options=None):
    with pytest.raises(CatenError) as caught:
        load(text if isinstance(text, SpecText) else toml(text), options or Options())
    return [(d.code, d.place.line, d.place.column, d.message) for d in caught.value.diagnostics]
