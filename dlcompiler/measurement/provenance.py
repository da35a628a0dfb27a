"""Provenance of times on a target: measured or simulated, and on which machine."""

from __future__ import annotations

from dlcompiler.errors import MeasurementError
from dlcompiler.pipeline.devices import check_available, device_of
from dlcompiler.runtime.provenance import Kind, Provenance
from dlcompiler.target import Target


def provenance_of_times(target: Target, operation: str) -> Provenance:
    """Return the provenance of times of programs for a target, as its device reports it.

    Parameters
    ----------
    target : Target
        The target that programs are built for.
    operation : str
        What the user wants to do: the beginning of the error message.

    Raises
    ------
    MeasurementError
        If programs for it have no times, because its device computes nothing or has no clock.
    TargetError
        If there is no device of the name that the target gives.
    """
    found = device_of(target).times(target)
    if found is None:
        because = f"the device {target.runs_on!r} neither measures nor predicts them"
        if target.runs_on == "simulator":
            because = "they are predicted from rates of the GPU, and this target has none"
        raise MeasurementError(
            operation, f"programs for {target.name} have no times",
            because=because, hint="target='cpu' is measured",
        )  # fmt: skip
    return found


def kind_of_times(target: Target) -> Kind | None:
    """Return the kind of times on a target, measured or simulated; None: it has no times."""
    found = device_of(target).times(target)
    return None if found is None else found.kind


def check_measured(target: Target, operation: str) -> Provenance:
    """Return the provenance of times on a target, which must be measured.

    Raises
    ------
    MeasurementError
        If they are simulated, or have no times.
    DeviceUnavailable
        If the device is not here.
    """
    found = provenance_of_times(target, operation)
    check_available(target, operation)
    if found.kind != "measured":
        raise MeasurementError(
            operation, "only machine code has measured times", got=f"times that are {found}",
            hint="target='cpu' is measured",
        )  # fmt: skip
    return found
