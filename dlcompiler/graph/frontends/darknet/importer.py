"""Make a module of a Darknet network, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.darknet.node import MOST_ELEMENTS, DarknetNode
from dlcompiler.graph.frontends.darknet.operators import ALIASES, OPERATORS, REFUSED, boxes
from dlcompiler.graph.frontends.darknet.reading import (
    OPERATION,
    Section,
    Weights,
    read_sections,
)
from dlcompiler.graph.frontends.origin import elements
from dlcompiler.graph.ir import Expr, Function, Module, Span, TensorType, Tuple, Var
from dlcompiler.graph.passes.tools import KnownTypes


def from_darknet(cfg: Any, weights: Any = None, *, batch: int = 1) -> Module:
    """Return a network of Darknet as a module.

    Parameters
    ----------
    cfg : path or bytes
        The text of the network, a file ``.cfg``.
    weights : path or bytes, optional
        Its weights, a file ``.weights``. By default they are parameters of the module, behind the
        input: ``convolutional_0_biases``, and so on.
    batch : int
        How many images the module computes at once; that of the text is for training; [1].

    Returns
    -------
    Module
        Calls have the names of layers, which count from 0: ``maxpool_1``. Images are in the layout
        NCHW. The result is that of the last layer; or a tuple of the results of all layers that
        predict boxes (``[yolo]``, ``[region]``, ``[detection]``), and of the last one.

    Raises
    ------
    GraphError
        A file is damaged, the weights do not fit, or a layer or an option is not known.

    Notes
    -----
    Layers compute what Redmon's code for CPUs does in inference, which adds 10⁻⁶ to standard
    deviations; his code for GPUs and that of Bochkovskiy add 10⁻⁵ to variances. A shortcut from an
    image with other sides takes one pixel of several, as Redmon's does; Bochkovskiy's adds elements
    by their places in memory. Options that matter only in training are ignored. Images are to be
    resized before, and boxes to be chosen afterwards.

    **Source:** Darknet by J. Redmon, and for newer layers its continuation by A. Bochkovskiy.
    """
    if type(batch) is not int or batch < 1:
        raise GraphError(OPERATION, "not a number of images", got=repr(batch), expected="1 or more")
    net, *sections = read_sections(cfg)
    given = None if weights is None else Weights(weights)
    importer = Importer(str(cfg) if isinstance(cfg, str | Path) else "", given)
    results = importer.run(importer.input(net, batch), sections)
    if given is not None:
        given.finish()
    body = results[0] if len(results) == 1 else Tuple(tuple(results))
    return Module({"main": Function(tuple(importer.params), body)})


@dataclass
class Importer:
    """What is known about a network while its layers become calls."""

    file: str
    weights: Weights | None
    params: list[Var] = field(default_factory=list)
    types: KnownTypes = field(default_factory=lambda: KnownTypes({}))

    def input(self, section: Section, batch: int) -> Var:
        """Return the images, or vectors, that the network takes."""
        given = Var("input", None)
        node = DarknetNode("net", self.types, "net", section.options, given,
                           span=Span(self.file, "net", section.line))  # fmt: skip
        sides = tuple(node.integer(key, 0, low=0) for key in ("channels", "height", "width"))
        pixels = math.prod(sides)
        size = node.integer("inputs", 0, low=0) or pixels
        if not size:
            node.fail("the size of its input is missing", expected="height, width and channels")
        if pixels and size != pixels:
            node.fail("it has other inputs than its images", got=str(size), expected=str(pixels))
        node.refuse_unknown()
        with node.refusing(OPERATION):
            kind = TensorType((batch, *sides) if pixels else (batch, size))
        found = Var("input", kind)
        self.types[found] = kind
        self._limited(node, found)
        self.params.append(found)
        return found

    def run(self, value: Expr, sections: Sequence[Section]) -> list[Expr]:
        """Return the outputs of the layers."""
        layers: list[Expr] = []
        outputs = []
        for place, section in enumerate(sections):
            kind = section.kind[:100]
            kind = ALIASES.get(kind, kind)
            name = f"{kind}_{place}"
            node = DarknetNode(
                name, self.types, kind, section.options, value, layers, self.weights, self.params,
                span=Span(self.file, name, section.line),
            )  # fmt: skip
            value = self._converted(node)
            layers.append(value)
            if kind == "cost" and place < len(sections) - 1:
                node.fail("a layer follows the cost, which ends a network")
            if kind in boxes.TABLE:
                outputs.append(value)
        return outputs if outputs and outputs[-1] is value else [*outputs, value]

    def _converted(self, node: DarknetNode) -> Expr:
        """Return the result of a layer."""
        if node.kind in REFUSED:
            node.fail("such a layer is not supported", because=REFUSED[node.kind])
        converter = OPERATORS.get(node.kind)
        if converter is None:
            node.fail("there is no such layer here", got=f"[{node.kind}]"[:100],
                      expected=", ".join(sorted(OPERATORS)))  # fmt: skip
        node.without("dontload", "dontloadscales", "numload")
        with node.refusing(OPERATION):
            found = converter(node)
            self._limited(node, found)
        node.refuse_unknown()
        return found

    def _limited(self, node: DarknetNode, value: Expr) -> None:
        """Refuse a result that is too large, or has no elements."""
        if not 0 < elements(node.type(value)) <= MOST_ELEMENTS:
            node.fail("its result is empty or too large", got=str(node.type(value)),
                      expected=f"1 to {MOST_ELEMENTS:,} elements")  # fmt: skip
