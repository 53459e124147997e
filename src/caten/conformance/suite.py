"""All cases there are."""
from __future__ import annotations

from ..runtime.protocol import Runtime
from .cases import Case
from .features import feature_cases
from .operators import conversion_cases, operator_cases
from .rejections import rejection_cases
from .samples import library_cases, sample_cases


def all_cases(runtime: Runtime, library: bool = False) -> list[Case]:
    """In the order of the report. What there is does not depend on the runtime, but for its refusals. `library`: those
    of the library of operators, too."""
    return [*operator_cases(), *conversion_cases(), *feature_cases(), *sample_cases(),
            *(library_cases() if library else ()), *rejection_cases(runtime)]
