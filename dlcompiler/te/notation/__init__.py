"""Notation: tensor expressions as lines of text, read by `te.notation` and written back."""
