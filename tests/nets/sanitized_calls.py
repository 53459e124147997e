"""Run by itself, with the sanitizer's library preloaded: `python sanitized_calls.py LIBRARY JOBS` calls every job of a pickle."""
from __future__ import annotations

import pickle
import sys
from pathlib import Path

from guarded_calls import Allocated, call

from caten.runtime.library import open_library


def main(artifact: str, jobs: str) -> None:
    library = open_library(Path(artifact))
    for job in pickle.loads(Path(jobs).read_bytes()):
        print(f"{job.name} {({k: v for k, v in job.arguments.items() if not hasattr(v, 'shape')})}", file=sys.stderr, flush=True)
        call(library, job, Allocated)
    print("all called")


if __name__ == "__main__":
    main(*sys.argv[1:])
