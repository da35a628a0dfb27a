"""Devices as classic code names them: ``tvm.cpu(0)``, ``tvm.context("llvm", 0)``."""

from __future__ import annotations

from typing import Any

from dlcompiler.compat.missing import GPU, Named
from dlcompiler.errors import DeviceUnavailable

CPU = ("cpu", "llvm", "c", "stackvm", "arm_cpu")
"""Names, of devices and of kinds of targets, that mean the CPU."""

OTHERS = (
    *("cuda", "gpu", "nvptx", "opencl", "cl", "rocm", "metal", "vulkan", "webgpu", "sdaccel"),
    *("ext_dev", "hexagon", "aocl", "vpi", "micro_dev"),
)


class Device(Named):
    """A device: here, always the CPU.

    Parameters
    ----------
    index : int
        Number of the device among those of its kind.
    """

    classic = "tvm.runtime.Device"
    device_type = 1
    """The number of the kind in classic TVM, and in DLPack."""

    def __init__(self, index: int = 0) -> None:
        self.device_id = index

    @property
    def exist(self) -> bool:
        """Whether there is such a device."""
        return self.device_id == 0

    def sync(self, stream: object = None) -> None:
        """Wait for the device; a call here has ended when it returns."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.device_id == self.device_id

    def __hash__(self) -> int:
        return hash(self.device_id)

    def __repr__(self) -> str:
        return f"cpu({self.device_id})"


def cpu(dev_id: int = 0) -> Device:
    """Return the CPU."""
    return Device(dev_id)


def device(dev_type: Any, dev_id: int = 0) -> Device:
    """Return the device of a name, a target's text or a target.

    Raises
    ------
    DeviceUnavailable
        The kind of device is not part of dlcompiler yet, or unknown.
    """
    if isinstance(dev_type, Device):
        return dev_type
    text = str(dev_type).strip()
    kind = text.split()[0] if text else ""
    if kind in CPU or dev_type == Device.device_type:
        return Device(dev_id)
    if kind in OTHERS:
        raise DeviceUnavailable(
            f"device {text}", f"{kind} is not part of dlcompiler yet", because=GPU, expected="cpu"
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
