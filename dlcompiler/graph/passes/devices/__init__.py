"""Devices: which calls go to an accelerator, and where values are copied from one to another."""

from dlcompiler.graph.passes.devices.composite import merge_composite
from dlcompiler.graph.passes.devices.offload import offload
from dlcompiler.graph.passes.devices.partition import DeviceRules, partition_for_device
from dlcompiler.graph.passes.devices.patterns import (
    Pattern,
    is_constant,
    is_op,
    wildcard,
)
from dlcompiler.graph.passes.devices.place import place_on_devices, without_annotations

__all__ = [
    "DeviceRules",
    "Pattern",
    "is_constant",
    "is_op",
    "merge_composite",
    "offload",
    "partition_for_device",
    "place_on_devices",
    "wildcard",
    "without_annotations",
]
