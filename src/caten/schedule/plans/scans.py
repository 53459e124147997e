"""Plans of scans along memory: loops that store, in each iteration, what they have accumulated up to there."""
from __future__ import annotations

from ...frozen import frozen
from ...loop.statements import LoopProgram
from ..analysis.classify import Chain, is_gathered, stored
from ..analysis.loop_queries import trip_count
from ..analysis.running_totals import running_totals
from .plan import NestKind, NotApplicable, Plan, PlanContext, Version

ROUNDS = 2                     # vectors in the shortest loop that is worth them


@frozen
class Scan:
    """A loop whose running totals fill vectors of `lanes`."""

    lanes: int


@frozen
class PrefixVectors(Plan):
    """Vectors of `lanes` iterations: the prefix of each in log₂ steps, plus what the vectors before have added up. The
    tail is scalar."""

    lanes: int


def prefix_vectors(s: Scan, context: PlanContext) -> Version:
    """For all lengths: what is accumulated from vector to vector waits for one operation in `lanes` iterations."""
    return Version(PrefixVectors(s.lanes))


def match_scan(program: LoopProgram, chain: Chain, context: PlanContext) -> Scan:
    """A loop that reads its accumulators, with contiguous accesses."""
    lanes, loop = context.vector_lanes(chain.body), chain.loops[-1]
    if len(chain.loops) > 1 or not running_totals(loop):
        raise NotApplicable("no loop reads what it accumulates")
    count = trip_count(loop)
    if count is not None and count < ROUNDS * lanes:
        raise NotApplicable(f"'{loop.name}' is short")
    far = [ref for ref in stored(chain) if ref.index and is_gathered(program, ref, loop.name)]
    if far:
        raise NotApplicable(f"{far[0]} is not contiguous in '{loop.name}'")
    return Scan(lanes)


SCANS = NestKind("scans", "Running totals (sums, maxima) along contiguous memory.", match_scan, (prefix_vectors,))
