"""Tensor intrinsics: computations on tiles that a machine has instructions for."""
