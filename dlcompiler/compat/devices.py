"""TVM's devices: ``tvm.cpu(0)``, ``tvm.gpu(0)``, ``tvm.context("llvm", 0)``.

GPUs are always simulated, and their arrays are in the CPU's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import target as targets
from dlcompiler.compat.missing import REMOTE, Named
from dlcompiler.errors import DeviceUnavailable
from dlcompiler.target.gpus import FIXED_SHARED_BYTES

CPU = ("cpu", "llvm", "c", "stackvm", "arm_cpu")
"""Names, of devices and of kinds of targets, that mean the CPU."""

GPUS = {"cuda": 2, "gpu": 2, "nvptx": 2, "opencl": 4, "cl": 4, "vulkan": 7, "metal": 8, "rocm": 10}
"""Names that mean a GPU -> the number of the kind in classic TVM, and in DLPack."""

ACCELERATOR = "ext_dev"
"""Name of a device that means the accelerator, which is simulated."""

OTHERS = ("webgpu", "sdaccel", "hexagon", "aocl", "vpi", "micro_dev")


class Device(Named):
    """A device: the CPU, or a GPU or an accelerator that is simulated.

    Parameters
    ----------
    index : int
        Number of the device among those of its kind.
    kind : str
        One of `CPU` or `GPUS`, or `ACCELERATOR`.
    """

    classic = "tvm.runtime.Device"

    def __init__(self, index: int = 0, kind: str = "cpu") -> None:
        self.device_id = index
        self.kind = kind if kind in (*GPUS, ACCELERATOR) else "cpu"
        """``"cpu"``, the name of a GPU, or ``"ext_dev"``."""

    @property
    def device_type(self) -> int:
        """Number of the device kind in classic TVM and DLPack."""
        return 12 if self.kind == ACCELERATOR else GPUS.get(self.kind, 1)

    @property
    def device_name(self) -> str:
        """Name of the processor; for a simulated GPU, name of the target that sets its limits."""
        if self.kind == ACCELERATOR:
            return "simulated accelerator"
        return self.kind if self.kind == "cpu" else f"simulated {self._target.name}"

    @property
    def max_threads_per_block(self) -> int | None:
        """Largest number of threads of a block [1]; None for a CPU."""
        return self._limit("max_threads_per_block")

    @property
    def max_thread_dimensions(self) -> tuple[int, int, int] | None:
        """Largest number of threads of a block along x, y and z [1]; None for a CPU."""
        limits = self._target.limits
        if self.kind not in GPUS:
            return None
        return limits["max_threads_x"], limits["max_threads_y"], limits["max_threads_z"]

    @property
    def warp_size(self) -> int | None:
        """Number of threads of a warp [1]; None for a CPU."""
        return self._limit("warp_size")

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """Largest shared memory that a kernel may declare [byte]; None for a CPU."""
        return shared_bytes(self._target) if self.kind in GPUS else None

    @property
    def multi_processor_count(self) -> int:
        """Number of multiprocessors of a GPU, or of cores of a CPU [1]."""
        return self._target.cores

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """Second level cache [byte]; None for a CPU."""
        return self._target.cache_bytes(1) if self.kind in GPUS else None

    @property
    def compute_version(self) -> str | None:
        """Compute capability: ``"8.0"``; None for a CPU."""
        return compute_version(self._target) if self.kind in GPUS else None

    def _limit(self, name: str) -> int | None:
        return self._target.limits.get(name)

    @property
    def _target(self) -> targets.Target:
        return targets.resolve("gpu" if self.kind in GPUS else "cpu")

    @property
    def exist(self) -> bool:
        """Whether this device exists."""
        return self.device_id == 0

    def sync(self, stream: object = None) -> None:
        """Do nothing: calls are synchronous."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return False
        return (other.device_type, other.device_id) == (self.device_type, self.device_id)

    def __hash__(self) -> int:
        return hash((self.device_id, self.device_type))

    def __repr__(self) -> str:
        return f"{self.kind}({self.device_id})"


def shared_bytes(machine: targets.Target) -> int:
    """Return the largest shared memory that a kernel may declare [byte]; a launch may add more."""
    return min(machine.limits.get("max_shared_bytes", 0), FIXED_SHARED_BYTES)


def compute_version(machine: targets.Target) -> str:
    """Return the compute capability of a target for a GPU: ``"8.0"``."""
    digits = machine.cpu.removeprefix("sm_")
    return f"{digits[:-1]}.{digits[-1]}"


def cpu(dev_id: int = 0) -> Device:
    """Return the CPU."""
    return Device(dev_id)


def _gpu(kind: str) -> Callable[..., Device]:
    def made(dev_id: int = 0) -> Device:
        return Device(dev_id, kind)

    made.__name__ = made.__qualname__ = kind
    made.__doc__ = "Return a GPU, which is simulated."
    return made


gpu = cuda = _gpu("cuda")
opencl = cl = _gpu("opencl")
rocm, metal, vulkan = _gpu("rocm"), _gpu("metal"), _gpu("vulkan")


def ext_dev(dev_id: int = 0) -> Device:
    """Return the accelerator, which is simulated."""
    return Device(dev_id, ACCELERATOR)


def device(dev_type: Any, dev_id: int = 0) -> Device:
    """Return the device of a name, a target's text or a target.

    Raises
    ------
    DeviceUnavailable
        If the kind of device is unknown, or not part of dlcompiler yet.
    """
    if isinstance(dev_type, Device):
        return dev_type
    text = str(dev_type).strip()
    kind = text.split()[0] if text else ""
    if kind in CPU or dev_type == 1:
        return Device(dev_id)
    if kind in GPUS:
        return Device(dev_id, "cuda" if GPUS[kind] == 2 else kind)
    if kind == ACCELERATOR:
        return Device(dev_id, kind)
    if kind in OTHERS:
        raise DeviceUnavailable(
            f"device {text}",
            f"{kind} is not part of dlcompiler yet",
            because=REMOTE,
            expected="cpu",
        )
    raise DeviceUnavailable("device", "unknown kind of device", got=repr(dev_type), expected="cpu")


def checked_device(ctx: object, device: object, operation: str) -> Device:
    """Return the device that a call names by ``ctx=`` or by ``device=``; the CPU by default."""
    if ctx is not None and device is not None:
        raise DeviceUnavailable(operation, "both ctx and device are given")
    given = ctx if ctx is not None else device
    if given is None:
        return Device(0)
    if isinstance(given, Device):
        return given
    raise DeviceUnavailable(operation, "not a device", got=repr(given), expected="tvm.cpu(0)")
