"""The fusion view: a graph in the regions of its kernels, with a verdict for each edge.

``analysis`` runs the passes, ``session`` has the user's actions, ``snapshot`` builds the contents
of each part, ``measuring`` builds and times the model, ``panel`` connects them to the page, and
``replay`` makes a page that needs no kernel.
"""

from dlcompiler_widgets.graphs.panel import GraphPanel
from dlcompiler_widgets.graphs.view import GraphView

__all__ = ["GraphPanel", "GraphView"]
