"""Evaluation of tensor expressions with NumPy: the oracle that every kernel is checked against."""
