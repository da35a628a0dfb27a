"""The VTAs that are known by name, as targets."""

from dlcompiler.target.accelerators.vta import PRESETS, preset

PYNQ, ULTRA96, DE10, VDLA_PAPER = (preset(name).target for name in PRESETS)
