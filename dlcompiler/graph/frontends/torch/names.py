"""Names of calls: those of the modules that make them, and the lines of the user's code."""

from __future__ import annotations

import re
from typing import Any

from dlcompiler.graph.ir import Span

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def name_and_span(node: Any, packet: str) -> tuple[str, Span]:
    """Return the name of a call, and where the model makes it.

    A layer of PyTorch names its call; a call of a user's own module has its operator behind the
    name of the module: ``layer1.0.conv1``, ``layer1.0.add``.
    """
    path, layer = "", ""
    for value in (node.meta.get("nn_module_stack") or {}).values():
        path, layer = str(value[0]), str(value[1])
    path = path.removeprefix("L['self'].").removeprefix("L['self']").removeprefix("self.")
    is_layer = layer.startswith("torch.nn.") or "'torch.nn." in layer
    name = path if path and is_layer else ".".join(filter(None, (path, packet)))
    frames = _FRAME.findall(str(node.meta.get("stack_trace") or ""))
    file, line = frames[-1] if frames else ("", "0")
    return name, Span(file=file, node=path, line=int(line))
