"""Pages of the documentation that are written from docstrings."""
