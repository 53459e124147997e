"""What a runtime must refuse, with an error that says why: types that its table lacks, options and values that it
does not know."""
from __future__ import annotations

from collections.abc import Iterator

from ..core.dtypes import DTYPES
from ..runtime.protocol import Runtime
from .cases import Case, Kernel, composite, identifier

COPY = "(dotimes (i N) (setf (aref R i) (aref X i)))"
NO_VALUE = "; $(no such value)"


def rejection_cases(runtime: Runtime) -> Iterator[Case]:
    """Rows are what is refused; how many there are depends on what the runtime's file declares."""
    for dtype in DTYPES:
        if dtype not in runtime.types:
            name = identifier("rejected", dtype)
            text = composite(name, {"X": f"{dtype}[N]"}, {"R": f"{dtype}[N]"}, COPY)
            yield Case("rejection", "element-type", dtype, "copy", Kernel(name, text, frozenset((dtype,))))
    yield Case("rejection", "option", "NO_SUCH_KEY", "unknown", refused=("NO_SUCH_KEY", "1"))
    for key in runtime.config:
        yield Case("rejection", "option", key, "value", refused=(key, NO_VALUE))
