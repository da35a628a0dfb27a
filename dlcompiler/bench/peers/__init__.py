"""Peers: libraries that compute the same work, for comparison. Imported in a worker process only.

A peer is a function from a `Job` to its `Offer`: ways to compute the job, of which the fastest is
measured. A peer of whole models is a function from a `ModelJob` to one offer.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Collection, Sequence

from dlcompiler.bench.peers.job import Absent, Array, Job, ModelJob, Offer
from dlcompiler.errors import UserError
from dlcompiler.registry import Registry

__all__ = [
    "MODEL_PEERS",
    "PACKAGES",
    "REGISTRY",
    "Absent",
    "Array",
    "Job",
    "ModelJob",
    "Offer",
    "check_names",
    "versions",
]

REGISTRY: Registry[Callable[[Job], Sequence[Offer]]] = Registry(
    "peer",
    {
        "numpy": "dlcompiler.bench.peers.numpy_peer:offers",
        "torch": "dlcompiler.bench.peers.torch_peer:offers",
        "onnxruntime": "dlcompiler.bench.peers.onnxruntime_peer:offers",
    },
)
"""Name of a peer -> what makes its offers for a job."""

MODEL_PEERS: Registry[Callable[[ModelJob], Offer]] = Registry(
    "peer of models",
    {
        "onnxruntime": "dlcompiler.bench.peers.onnxruntime_model:offer",
        "torch": "dlcompiler.bench.peers.torch_model:offer",
        "torch.compile": "dlcompiler.bench.peers.torch_model:compiled_offer",
    },
)
"""Name of a peer that runs whole models -> what makes its offer."""

PACKAGES = {
    "numpy": ("numpy",),
    "torch": ("torch",),
    "torch.compile": ("torch", "onnx"),
    "onnxruntime": ("onnxruntime", "onnx"),
}
"""Name of a peer -> the packages that it needs."""


def check_names(names: Sequence[str], known: Collection[str] = REGISTRY) -> tuple[str, ...]:
    """Return names of peers, each once.

    Parameters
    ----------
    names : sequence of str
        The names.
    known : collection of str
        The names that are known: `REGISTRY`, or `MODEL_PEERS`.

    Raises
    ------
    UserError
        One of them is unknown.
    """
    for name in names:
        if name not in known:
            raise UserError("peers", "no such peer", got=repr(name), expected=", ".join(known))
    return tuple(dict.fromkeys(names))


def missing(name: str) -> str:
    """Return why a peer cannot take part, or nothing; its packages are not imported."""
    absent = [p for p in PACKAGES[name] if importlib.util.find_spec(p) is None]
    if not absent:
        return ""
    return f'{" and ".join(absent)} not installed; pip install "dlcompiler-lab[peers]"'


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the versions of the packages of the peers that are installed."""
    packages = [p for name in names if not missing(name) for p in PACKAGES[name]]
    return {package: importlib.metadata.version(package) for package in packages}
