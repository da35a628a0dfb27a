"""Regions of nodes for a device; a node is a letter here, a capital one for the device."""

import pytest

from dlcompiler.graph.passes.devices.regions import regions_of


def regions(edges):
    """Return the members of each region of a graph; edges such as ``"Ah"``, operands first."""
    nodes = sorted({node for edge in edges.split() for node in edge}, key=edges.index)
    operands = {node: [edge[0] for edge in edges.split() if edge[1] == node] for node in nodes}
    on_device = {node for node in nodes if node.isupper()}
    found = regions_of(nodes, operands, on_device, dict.fromkeys(nodes))
    return {"".join(region.members) for region in found}


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ("AB BC", {"ABC"}),
        ("Ah hB", {"A", "B"}),
        ("Ah AB hB", {"A", "B"}),  # B waits for the host, and the host for A
        ("Ah hi AB iB", {"A", "B"}),
        ("Ah hi ij AB jB", {"A", "B"}),
        ("AB Ah BC hC", {"AB", "C"}),  # what uses A then uses the region AB
        ("AB hB BC Ci", {"ABC"}),
        ("AB CB BD", {"CABD"}),
    ],
)
def test_regions_do_not_wait_for_themselves(edges, expected):
    assert regions(edges) == expected
