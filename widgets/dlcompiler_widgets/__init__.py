"""Notebook widgets of dlcompiler: see a schedule, change it, watch a search.

::

    from dlcompiler_widgets import Explorer

    Explorer(s, [A, B, C])

A widget is a folder: ``widget.py`` (traits and callbacks, thin), ``index.js`` and ``style.css``. It
shows view models of `dlcompiler.views` and decides nothing itself.
"""

from dlcompiler_widgets.explorer import Explorer

__all__ = ["Explorer"]
