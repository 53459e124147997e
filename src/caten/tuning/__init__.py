"""Autotuning: candidate schedules, a cost model, measurements, and the search for the fastest."""
