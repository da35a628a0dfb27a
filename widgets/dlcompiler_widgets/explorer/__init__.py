"""The Explorer: a schedule as a loop tree that can be clicked."""

from dlcompiler_widgets.explorer.widget import Explorer

__all__ = ["Explorer"]
