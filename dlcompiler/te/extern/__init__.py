"""Tensors that code from outside computes: Python functions by name, or loop IR by hand."""
