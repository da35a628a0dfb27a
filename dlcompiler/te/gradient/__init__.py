"""Gradients: reverse mode over the operations and inside their expressions."""
