"""All families of random specs, and the spec of a seed."""
from __future__ import annotations

from nest_families import InPlace, Reversal, Scan, Triangle
from product_families import Chain, Choice, Complex, Gather, Packed, Product
from random_specs import random_spec
from row_families import Extreme, Norm, Softmax, Total
from spec_forms import RandomSpec
from spelling_families import Spelled
from window_families import Convolution, Pooling, Stencil

FAMILIES = (Convolution, InPlace, Pooling, Product, Stencil, Scan, Triangle, Softmax, Extreme, Total, Choice, Chain, Gather, Reversal, Norm, Packed, Complex, Spelled)
TURNS = (*FAMILIES, Convolution, InPlace, Product, Spelled, *[None] * 5)       # None: a spec like no one would write


def drawn_spec(seed: int) -> RandomSpec:
    """The spec of a seed; the families take turns."""
    family = TURNS[seed % len(TURNS)]
    return random_spec(seed) if family is None else family(seed).spec()
