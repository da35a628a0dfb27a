"""The interpreter of the loop IR: it defines what programs mean, and finds forbidden accesses."""

from dlcompiler.simulate.interpreter import Report, interpret

__all__ = ["Report", "interpret"]
