"""Classic TVM's ``tvm.parser``: text of graphs."""

from dlcompiler import graph
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.modules import IRModule


def parse(source: str, source_name: str = "from_string") -> IRModule:
    """Return the module that a text describes.

    Parameters
    ----------
    source : str
        The text, with its version: what ``mod.astext()`` returns.
    source_name : str
        Accepted: errors name lines of the text.

    Raises
    ------
    GraphError
        If the text is no module; the error shows the line.
    """
    del source_name
    return IRModule.of(graph.parse(source))


fromtext = parse
"""The older name."""

__getattr__ = reporter(__name__)
__all__ = ["fromtext", "parse"]
