"""Pages of the documentation that are written from docstrings: the passes and the operators."""
