"""The pages of the diagnostic codes, which `caten explain` prints."""
from __future__ import annotations

from importlib import resources


def all_pages() -> dict[str, str]:
    """Code -> page, in the order of the codes."""
    files = [f for f in resources.files("caten").joinpath("explanations").iterdir() if f.name.endswith(".md")]
    return {f.name.removesuffix(".md"): f.read_text("utf-8") for f in sorted(files, key=lambda f: f.name)}


def title_of(text: str) -> str:
    """The heading of a page, without `#`."""
    return text.split("\n", 1)[0].lstrip("# ").strip()
