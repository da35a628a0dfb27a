"""Reductions: how values over axes become one, and whether their order matters."""
