"""Loop IR executed in Python: what a program means, and what it must not do."""

from dlcompiler.simulate.interpreter import Report, interpret

__all__ = ["Report", "interpret"]
