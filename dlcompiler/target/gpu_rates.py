"""Rates and latencies of NVIDIA GPUs, by architecture and by model, each with its source.

`dlcompiler.simulate.gpu.time` predicts times from them. None was chosen to fit a measured time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dlcompiler.target.model import Rate

THROUGHPUT = "CUDA C++ Programming Guide 12.9, 'Throughput of Native Arithmetic Instructions'"
ACCEL_SIM = "tested configurations of Accel-Sim (gpgpusim.config)"
JIA = "Z. Jia and others, 'Dissecting the NVIDIA Volta …', 2018, and '… Turing T4 GPU', 2019"
SHEET = "data sheet of the vendor"


@dataclass(frozen=True, slots=True)
class Architecture:
    """What all GPUs of one compute capability have in common."""

    l1_kib: int
    """First level cache of a multiprocessor, with the shared memory if they are one [KiB]."""
    float32: float
    """Lanes of a multiprocessor, each for one operation a clock; so are the next five [1]."""
    float16: float
    float64: float
    integer: float
    special: float
    convert: float
    memory_units: int
    """Threads of which a multiprocessor takes up a load or a store in a clock [1]."""
    shared: float
    """Bytes of shared memory that a multiprocessor gets in a clock [byte]."""
    l1: float
    """Bytes of hits in the first level cache that a multiprocessor gets in a clock [byte]."""
    schedulers: int
    """Instructions of warps that a multiprocessor issues in a clock [1]."""
    float_latency: int
    """Clocks until the next instruction can use the result of an operation on floats [1]."""
    l1_latency: int
    """Clocks until a load from the first level cache has its value; the next from shared memory."""
    shared_latency: int
    l2_latency: int
    """Clocks that the second level cache adds; the next: that memory adds [1]."""
    dram_latency: int
    tensor: float
    """Products of float16 that the tensor cores of a multiprocessor add up in a clock; or 0 [1]."""


#: Lanes of 16 bits are those of scalar instructions: half of the table, which counts pairs.
#: Latencies of capability 6.0 are those of 6.1; of 5.2 too; of 7.5 those of 7.0; of 8.9 and 12.0
#: those of 8.6; of 10.0 those of 9.0.
ARCHITECTURES: Mapping[tuple[int, int], Architecture] = {
    (5, 2): Architecture(48, 128, 128, 4, 128, 32, 32, 32, 128, 16, 4, 6, 82, 24, 120, 100, 0),
    (6, 0): Architecture(24, 64, 64, 32, 64, 16, 16, 32, 128, 32, 2, 6, 82, 24, 120, 100, 0),
    (6, 1): Architecture(48, 128, 2, 4, 128, 32, 32, 32, 128, 16, 4, 6, 82, 24, 120, 100, 0),
    (7, 0): Architecture(128, 64, 64, 32, 64, 16, 64, 32, 128, 128, 4, 4, 20, 20, 160, 100, 512),
    (7, 5): Architecture(96, 64, 64, 2, 64, 16, 64, 16, 64, 64, 4, 4, 20, 20, 160, 100, 512),
    (8, 0): Architecture(192, 64, 128, 32, 64, 16, 64, 32, 128, 128, 4, 4, 34, 28, 200, 190, 1024),
    (8, 6): Architecture(128, 128, 128, 2, 64, 16, 64, 16, 128, 128, 4, 4, 39, 29, 187, 254, 512),
    (8, 9): Architecture(128, 128, 128, 2, 64, 16, 64, 16, 128, 128, 4, 4, 39, 29, 187, 254, 512),
    (9, 0): Architecture(256, 128, 128, 64, 64, 16, 64, 32, 128, 128, 4, 4, 41, 29, 237, 194, 2048),
    (10, 0): Architecture(
        256, 128, 128, 64, 64, 16, 64, 32, 128, 128, 4, 4, 41, 29, 237, 194, 2048
    ),
    (12, 0): Architecture(128, 128, 128, 2, 128, 16, 64, 16, 128, 128, 4, 4, 39, 29, 187, 254, 512),
}
_SOURCES = {
    "float32": THROUGHPUT, "float16": THROUGHPUT, "float64": THROUGHPUT, "integer": THROUGHPUT,
    "special": THROUGHPUT, "convert": THROUGHPUT,
    "memory_units": "white papers of NVIDIA: LD/ST units of a multiprocessor",
    "shared": "NVIDIA, 'NVIDIA Ampere GA102 GPU Architecture': 128 bytes a clock, Turing 64",
    "l1": JIA + "; from capability 8.0 on, as in the V100",
    "schedulers": "CUDA C++ Programming Guide 12.9, chapter 'Compute Capabilities'",
    "float_latency": JIA, "l1_latency": ACCEL_SIM, "shared_latency": ACCEL_SIM,
    "l2_latency": ACCEL_SIM, "dram_latency": ACCEL_SIM,
}  # fmt: skip

TENSOR = "white papers of NVIDIA (V100, Turing, A100, GA102, Ada, H100): dense FMA of tensor cores"
"""GeForce cards of the 20, 30 and 40 series add up half as many in float32."""
_GEFORCE = ("rtx-2", "rtx-3", "rtx-4")
_CONSUMER = (*_GEFORCE, "gtx-", "titan-")

L2_PORT = Rate(64, "byte/clock", "NVIDIA, 'Tesla V100 GPU Architecture': a multiprocessor's port")
DRAM_FRACTION = Rate(0.9, "1", "a copy on an H200: 4,300 of 4,800 GB/s; other GPUs are near it")
LOOKUPS = JIA + "; one line of L1 in a clock, or in two where it gives half a line in a clock"
LAUNCH = Rate(4000, "clock", ACCEL_SIM + ": 3,000 to 5,000")
BARRIER = Rate(30, "clock", "assumed: the latency of shared memory, once for each barrier")


@dataclass(frozen=True, slots=True)
class Model:
    """A GPU that one can buy."""

    name: str
    """Name in the registry of targets."""
    compute: tuple[int, int]
    """Compute capability."""
    processors: int
    """Streaming multiprocessors [1]."""
    clocks_mhz: tuple[int, int]
    """Base clock and boost clock [MHz]."""
    dram_gb_s: float
    """Peak rate of memory [GB/s]."""
    l2_kib: int
    """Second level cache [KiB]."""
    l2_bytes: int
    """Bytes that the second level cache gives in a clock [byte]."""
    l2_from: str
    """Source of `l2_bytes`."""


_SLICES = "4 bytes for each bit of the memory bus, as in Accel-Sim's configuration of an RTX 3070"
_A100 = "NVIDIA, 'A100 Tensor Core GPU Architecture': 5,120 bytes a clock, 2.3 times a V100"
_HOPPER = "assumed equal to the A100's"
_PASCAL = "assumed half of a V100's"


def _on_bus(
    name: str, compute: tuple[int, int], processors: int, clocks_mhz: tuple[int, int],
    memory: tuple[float, int], l2_kib: int,
) -> Model:  # fmt: skip
    """Return a GPU whose L2 cache is as wide as its bus; `memory`: [GB/s], and bus width [bit]."""
    gb_s, bits = memory
    return Model(name, compute, processors, clocks_mhz, gb_s, l2_kib, 4 * bits, _SLICES)


#: Source: the vendor's data sheet of each, or the white paper of its architecture, with the base
#: clock and the boost clock there. The V100 is the SXM2 module, the A100 the PCIe card of 40 GB,
#: the H100 the SXM5 module; the L2 cache of the H200 is the one that CUDA reports.
MODELS = (
    _on_bus("gtx-titan-x", (5, 2), 24, (1000, 1075), (336.5, 384), 3072),
    _on_bus("gtx-980", (5, 2), 16, (1126, 1216), (224, 256), 2048),
    _on_bus("gtx-980-ti", (5, 2), 22, (1000, 1075), (336.5, 384), 3072),
    Model("p100", (6, 0), 56, (1328, 1480), 732, 4096, 1024, _PASCAL),
    _on_bus("titan-x-pascal", (6, 1), 28, (1417, 1531), (480, 384), 3072),
    _on_bus("gtx-1060", (6, 1), 10, (1506, 1708), (192, 192), 1536),
    _on_bus("gtx-1070", (6, 1), 15, (1506, 1683), (256, 256), 2048),
    _on_bus("gtx-1080", (6, 1), 20, (1607, 1733), (320, 256), 2048),
    _on_bus("gtx-1080-ti", (6, 1), 28, (1480, 1582), (484, 352), 2816),
    Model("v100", (7, 0), 80, (1290, 1530), 900, 6144, 2048, _A100),
    _on_bus("t4", (7, 5), 40, (585, 1590), (320, 256), 4096),
    _on_bus("gtx-1650", (7, 5), 14, (1485, 1665), (128, 128), 1024),
    _on_bus("gtx-1660-ti", (7, 5), 24, (1500, 1770), (288, 192), 1536),
    _on_bus("rtx-2060", (7, 5), 30, (1365, 1680), (336, 192), 3072),
    _on_bus("rtx-2060-super", (7, 5), 34, (1470, 1650), (448, 256), 4096),
    _on_bus("rtx-2070", (7, 5), 36, (1410, 1620), (448, 256), 4096),
    _on_bus("rtx-2070-super", (7, 5), 40, (1605, 1770), (448, 256), 4096),
    _on_bus("rtx-2080", (7, 5), 46, (1515, 1710), (448, 256), 4096),
    _on_bus("rtx-2080-super", (7, 5), 48, (1650, 1815), (496, 256), 4096),
    _on_bus("rtx-2080-ti", (7, 5), 68, (1350, 1545), (616, 352), 5632),
    _on_bus("titan-rtx", (7, 5), 72, (1350, 1770), (672, 384), 6144),
    Model("a100", (8, 0), 108, (765, 1410), 1555, 40 << 10, 5120, _A100),
    Model("a100-sxm", (8, 0), 108, (1095, 1410), 1555, 40 << 10, 5120, _A100),
    Model("a30", (8, 0), 56, (930, 1440), 933, 24 << 10, 2560, "half of the A100's memory"),
    _on_bus("a2", (8, 6), 10, (1440, 1770), (200, 128), 2048),
    _on_bus("a10", (8, 6), 72, (885, 1695), (600, 384), 6144),
    _on_bus("a40", (8, 6), 84, (1305, 1740), (696, 384), 6144),
    _on_bus("rtx-a2000", (8, 6), 26, (562, 1200), (288, 192), 3072),
    _on_bus("rtx-a4000", (8, 6), 48, (735, 1560), (448, 256), 4096),
    _on_bus("rtx-a4500", (8, 6), 56, (1050, 1650), (640, 320), 6144),
    _on_bus("rtx-a5000", (8, 6), 64, (1170, 1695), (768, 384), 6144),
    _on_bus("rtx-a5500", (8, 6), 80, (1080, 1665), (768, 384), 6144),
    _on_bus("rtx-a6000", (8, 6), 84, (1410, 1800), (768, 384), 6144),
    _on_bus("rtx-3050", (8, 6), 20, (1552, 1777), (224, 128), 2048),
    _on_bus("rtx-3060", (8, 6), 28, (1320, 1777), (360, 192), 3072),
    _on_bus("rtx-3060-ti", (8, 6), 38, (1410, 1665), (448, 256), 4096),
    _on_bus("rtx-3070", (8, 6), 46, (1500, 1725), (448, 256), 4096),
    _on_bus("rtx-3070-ti", (8, 6), 48, (1575, 1770), (608, 256), 4096),
    _on_bus("rtx-3080", (8, 6), 68, (1440, 1710), (760, 320), 5120),
    _on_bus("rtx-3080-ti", (8, 6), 80, (1365, 1665), (912, 384), 6144),
    _on_bus("rtx-3090", (8, 6), 82, (1395, 1695), (936, 384), 6144),
    _on_bus("rtx-3090-ti", (8, 6), 84, (1560, 1860), (1008, 384), 6144),
    _on_bus("l4", (8, 9), 58, (795, 2040), (300, 192), 48 << 10),
    _on_bus("l40", (8, 9), 142, (735, 2490), (864, 384), 96 << 10),
    _on_bus("l40s", (8, 9), 142, (1110, 2520), (864, 384), 96 << 10),
    _on_bus("rtx-6000-ada", (8, 9), 142, (915, 2505), (960, 384), 96 << 10),
    _on_bus("rtx-4060-laptop", (8, 9), 24, (1470, 1890), (256, 128), 32 << 10),
    _on_bus("rtx-4060", (8, 9), 24, (1830, 2460), (272, 128), 24 << 10),
    _on_bus("rtx-4060-ti", (8, 9), 34, (2310, 2535), (288, 128), 32 << 10),
    _on_bus("rtx-4070", (8, 9), 46, (1920, 2475), (504, 192), 36 << 10),
    _on_bus("rtx-4070-super", (8, 9), 56, (1980, 2475), (504, 192), 48 << 10),
    _on_bus("rtx-4070-ti", (8, 9), 60, (2310, 2610), (504, 192), 48 << 10),
    _on_bus("rtx-4080", (8, 9), 76, (2205, 2505), (717, 256), 64 << 10),
    _on_bus("rtx-4080-super", (8, 9), 80, (2295, 2550), (736, 256), 64 << 10),
    _on_bus("rtx-4090", (8, 9), 128, (2235, 2520), (1008, 384), 72 << 10),
    Model("h100", (9, 0), 132, (1590, 1980), 3352, 50 << 10, 5120, _HOPPER),
    Model("h100-pcie", (9, 0), 114, (1095, 1755), 2039, 50 << 10, 5120, _HOPPER),
    Model("h200", (9, 0), 132, (1590, 1980), 4800, 60 << 10, 5120, _HOPPER),
)


def _unit(name: str) -> str:
    if "latency" in name:
        return "clock"
    return "byte/clock" if name in ("l1", "shared") else "1/clock"


def clocks_of(model: Model) -> dict[str, Rate]:
    """Return the clock with which times are predicted, and its bounds.

    For GeForce and Titan cards NVIDIA calls the boost clock typical under load. For cards of
    servers and workstations it is the highest one; what they hold under load is the base clock.

    Parameters
    ----------
    model
        A row of `MODELS`.
    """
    base, boost = (mhz * 1e6 for mhz in model.clocks_mhz)
    is_typical = model.name.startswith(_CONSUMER)
    source = f"{SHEET}: the {'boost' if is_typical else 'base'} clock"
    return {
        "clock": Rate(boost if is_typical else base, "1/s", source),
        "clock_least": Rate(base, "1/s", SHEET), "clock_most": Rate(boost, "1/s", SHEET),
    }  # fmt: skip


def rates_of(model: Model) -> Mapping[str, Rate]:
    """Return the rates and latencies of a GPU, with their sources.

    Parameters
    ----------
    model
        A row of `MODELS`.
    """
    common = ARCHITECTURES[model.compute]
    rates = {
        name: Rate(getattr(common, name), _unit(name), source) for name, source in _SOURCES.items()
    }
    rates["lookups"] = Rate(max(common.l1, 64) / 128, "1/clock", LOOKUPS)
    if common.tensor:
        half = 2 if model.name.startswith(_GEFORCE) else 1
        rates["tensor cores"] = Rate(common.tensor / half, "1/clock", TENSOR)
        rates["tensor cores, int8"] = Rate(common.tensor, "1/clock", TENSOR)
    rates |= clocks_of(model)
    rates["dram"] = Rate(model.dram_gb_s * 1e9, "byte/s", SHEET)
    rates["dram_fraction"] = DRAM_FRACTION
    rates["l2"] = Rate(model.l2_bytes, "byte/clock", model.l2_from)
    rates |= {"l2_port": L2_PORT, "launch": LAUNCH, "barrier": BARRIER}
    return MappingProxyType(rates)
