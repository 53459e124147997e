"""What is done to the values of a program right before they become kernels."""
from __future__ import annotations

from .bounded_exponents import with_bounded_exponents
from .complex_parts import with_complex_in_parts
from .cut_reductions import with_cut_reductions
from .early_maps import with_early_maps
from .gathered_scatters import with_gathered_scatters
from .joined_checks import with_joined_checks
from .late_division import divided_late
from .values import TensorProgram


def ready_for_fusion(program: TensorProgram) -> TensorProgram:
    """The program whose values the kernels compute. One that has its kernels already stays as it is."""
    program = with_early_maps(with_cut_reductions(with_gathered_scatters(with_complex_in_parts(program))))
    return with_joined_checks(with_bounded_exponents(divided_late(program)))
