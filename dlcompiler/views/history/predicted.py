"""The predicted time of a state on a GPU, in parts that add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from dlcompiler.runtime.timing import format_seconds
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.views.render.units import percent

Kind = Literal["resource", "waiting", "tail", "launch"]


class PredictedPart(TypedDict):
    """A part of a predicted time."""

    kind: Kind
    name: str
    """The resource that binds, or what else takes the time."""
    share: float
    """Its part of the whole; [1]."""
    text: str
    """The part with its unit."""


class Predicted(TypedDict):
    """The predicted time of a state, for a bar."""

    seconds: float
    """All kernels, one after the other [s]."""
    time: str
    """The same with its unit."""
    parts: list[PredictedPart]
    """What takes the time: they add up to all of it."""
    label: str
    """All in words: the time, its parts, and where it comes from."""


def predicted_parts(kernels: Sequence[KernelFacts], machine: str) -> Predicted | None:
    """Return the predicted time of a program's kernels; None if one of them has none.

    For each kernel, the resource that binds takes the time that neither waiting, nor the tail, nor
    the launch adds: so parts add up. The terms of the other resources overlap with it.

    Parameters
    ----------
    kernels
        What is known of the kernels.
    machine
        The GPU.
    """
    times = [kernel.time for kernel in kernels if kernel.time is not None]
    if not times or len(times) < len(kernels):
        return None
    sums: dict[tuple[Kind, str], float] = {}
    for time in times:
        rest = time.seconds - time.latency_s - time.tail_s - time.launch_s
        name = time.terms[0].name if time.terms else "nothing"
        parts: dict[tuple[Kind, str], float] = {
            ("resource", name): max(rest, 0.0),
            ("waiting", "waiting"): time.latency_s,
            ("tail", "tail"): time.tail_s,
            ("launch", "launch"): time.launch_s,
        }
        for key, seconds in parts.items():
            sums[key] = sums.get(key, 0.0) + seconds
    total = sum(time.seconds for time in times)
    kept = [(key, seconds) for key, seconds in sums.items() if seconds > 0]
    found = [
        PredictedPart(kind=kind, name=name, share=seconds / total, text=format_seconds(seconds))
        for (kind, name), seconds in sorted(kept, key=lambda item: _ORDER.index(item[0][0]))
    ]
    words = ", ".join(f"{part['name']} {percent(part['share'])}" for part in found)
    text = format_seconds(total)
    return {
        "seconds": total, "time": text, "parts": found,
        "label": f"{text} predicted on {machine}: {words}",
    }  # fmt: skip


_ORDER: tuple[Kind, ...] = ("resource", "waiting", "tail", "launch")
