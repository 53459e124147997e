"""Benchmarks of compiled operators: timing on a shared machine, statistics, machine limits, reports."""
