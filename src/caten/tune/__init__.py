"""Searching for the schedule that is the fastest on this machine: candidates, a model of their cost, measurements, the search."""
