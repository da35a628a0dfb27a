"""Tuning runs: the plan, the search loop, its clock, progress and control."""
