"""Measuring compiled operators: timing on a machine that others use too, statistics, the machine's own limits, reports."""
