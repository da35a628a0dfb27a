"""Graphs: models as typed expressions, passes that give their reasons."""
