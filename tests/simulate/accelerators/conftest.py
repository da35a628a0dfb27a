"""Programs of VTA: those that were measured on hardware, and small ones written as text."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from dlcompiler.simulate.accelerators import InstructionProgram, assemble
from dlcompiler.simulate.accelerators.measured import read_program
from dlcompiler.target.accelerators.vta import VtaConfig, vta

FILE = Path(__file__).parent / "vta_rtl.jsonl.gz"
"""Programs with what the RTL of 2019 and of 2021 took and computed; docs/VTA.md says how."""


def records():
    with gzip.open(FILE, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="session")
def measured():
    """Return the measured programs on a profile."""
    kept = {}

    def of(profile):
        if profile not in kept:
            kept[profile] = [(each, read_program(each, profile)) for each in records()]
        return kept[profile]

    return of


@pytest.fixture(scope="session")
def machine():
    """Return a VTA, the same for the same parameters."""
    kept = {}

    def of(profile="B", **parameters):
        key = (profile, *sorted(parameters.items()))
        if key not in kept:
            kept[key] = vta("vta-test", VtaConfig(profile=profile, **parameters))
        return kept[key]

    return of


@pytest.fixture
def program(machine):
    """Return a program of a text on a VTA; micro-op n computes on element n of each memory."""

    def of(text, profile="B", micro_ops=None):
        if micro_ops is None:
            micro_ops = [[n, n, n] for n in range(16)]
        return InstructionProgram(
            machine(profile), assemble(machine(profile), text),
            micro_ops=np.array(micro_ops, dtype=np.int64), micro_op_address=4096,
            dram_bytes=1 << 18,
        )  # fmt: skip

    return of
