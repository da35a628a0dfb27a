"""Measure pools: measure batches of candidates in workers, or read times from a table."""
