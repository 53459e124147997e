"""Medians and ratios with bootstrap confidence intervals (B. Efron, 1979)."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..frozen import frozen

RESAMPLES = 2000
CONFIDENCE = 0.95
SEED = 20240229                # fixed, so that intervals are reproducible

Samples = Sequence[float]


@frozen
class Estimate:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        return {"value": self.value, "low": self.low, "high": self.high}


def estimate_from(json: dict[str, Any]) -> Estimate:
    """The inverse of `as_json`."""
    return Estimate(float(json["value"]), float(json["low"]), float(json["high"]))


def median(samples: Samples) -> Estimate:
    """The median with its confidence interval."""
    values = np.asarray(samples, float)
    return _estimate(float(np.median(values)), np.median(_resampled(values, np.random.default_rng(SEED)), axis=1))


def ratio(above: Sequence[Samples], below: Sequence[Samples]) -> Estimate:
    """The median over the runs of the ratio of two medians. The bootstrap resamples the samples of each run, not the
    runs: there are few of them."""
    source = np.random.default_rng(SEED)
    values, spread = [], []
    for a, b in zip(above, below, strict=True):
        x, y = np.asarray(a, float), np.asarray(b, float)
        values.append(float(np.median(x) / np.median(y)))
        spread.append(np.median(_resampled(x, source), axis=1) / np.median(_resampled(y, source), axis=1))
    return _estimate(float(np.median(values)), np.median(spread, axis=0))


def paired_ratio(above: Sequence[Samples], below: Sequence[Samples]) -> Estimate:
    """Like `ratio`, for samples taken in the same rounds. The bootstrap resamples rounds, so that a disturbance of both
    cancels."""
    source = np.random.default_rng(SEED)
    values, spread = [], []
    for a, b in zip(above, below, strict=True):
        x, y = np.asarray(a, float), np.asarray(b, float)
        chosen = source.integers(0, len(x), (RESAMPLES, len(x)))
        values.append(float(np.median(x) / np.median(y)))
        spread.append(np.median(x[chosen], axis=1) / np.median(y[chosen], axis=1))
    return _estimate(float(np.median(values)), np.median(spread, axis=0))


def geometric_mean(estimates: Sequence[Estimate]) -> Estimate:
    """The geometric mean of independent estimates; the squares of the logarithmic half-widths add up."""
    logs = [math.log(e.value) for e in estimates]
    mean = sum(logs) / len(logs)
    down = math.sqrt(sum([(v - math.log(e.low)) ** 2 for v, e in zip(logs, estimates, strict=True)])) / len(logs)
    up = math.sqrt(sum([(math.log(e.high) - v) ** 2 for v, e in zip(logs, estimates, strict=True)])) / len(logs)
    return Estimate(math.exp(mean), math.exp(mean - down), math.exp(mean + up))


def _resampled(values: Any, source: np.random.Generator) -> Any:
    """RESAMPLES bootstrap samples, one per row, drawn with replacement."""
    return values[source.integers(0, len(values), (RESAMPLES, len(values)))]


def _estimate(value: float, spread: Any) -> Estimate:
    edge = (1 - CONFIDENCE) / 2 * 100
    low, high = np.percentile(spread, [edge, 100 - edge])
    return Estimate(value, min(value, float(low)), max(value, float(high)))
