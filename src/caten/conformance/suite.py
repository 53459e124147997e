"""All cases there are."""
from __future__ import annotations

from ..runtime.protocol import Runtime
from .cases import Case
from .features import feature_cases
from .operators import conversion_cases, operator_cases
from .rejections import rejection_cases
from .samples import sample_cases


def all_cases(runtime: Runtime) -> list[Case]:
    """In the order of the report. What there is does not depend on the runtime, but for its refusals."""
    return [*operator_cases(), *conversion_cases(), *feature_cases(), *sample_cases(), *rejection_cases(runtime)]
