"""Documentation pages that are generated from docstrings: the passes and the operators."""
