"""Measure pools: what measures batches of candidates, in workers or from a table."""
