"""Reports of caten's own faults: what went wrong, kept in the cache as a file that a person can send."""
from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping

from .runtime.library_cache import Cache, default_directory

PLEASE = "this is a fault of caten, not of the input: please report it with that file and the spec"


def kept(problem: BaseException, headline: str, cache_dir: str | None, files: Mapping[str, str] | None = None) -> str:
    """Keep the traceback and further texts by their names under `headline`; a note with their folder."""
    text = f"{headline}\n\n" + "".join(traceback.format_exception(problem))
    name = "crash-" + hashlib.sha256(text.encode(errors="replace")).hexdigest()
    text = text.encode(errors="replace").decode()
    cache = Cache(default_directory(cache_dir), lambda _: None)
    try:
        return (f"the details are in "
                f"{cache.keep_failed(name, {'traceback.txt': text, **(files or {})}) / 'traceback.txt'}")
    except OSError:
        return "run again with --debug 4 for the details"
