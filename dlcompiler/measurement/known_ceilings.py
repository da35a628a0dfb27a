"""Keep the measured ceilings of this machine in the user's cache folder.

They are stored beside the cached objects (`dlcompiler.runtime.object_cache`), in one file for each
number of threads and each dtype. A file that is damaged, was taken on another processor, does not
hold a measurement, or is older than `KEPT_S` is not used: the ceilings are measured again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from dlcompiler.json_text import JsonError, parse
from dlcompiler.measurement.ceilings import Ceilings, remote_ceilings
from dlcompiler.runtime import object_cache
from dlcompiler.runtime.timing import measured_here
from dlcompiler.runtime.workers import MEASUREMENT_WORKER, Worker
from dlcompiler.target import resolve
from dlcompiler.target.detect import cpu_model

KEPT_S = 30 * 86400.0
"""How long ceilings are used [s]: a virtual machine may move to another processor."""
_VERSION = 1


def ceilings_here(threads: int, worker: Worker | None = None) -> Ceilings:
    """Return the ceilings of this machine for float32: those that were kept, or else measured now.

    Parameters
    ----------
    threads : int
        Number of threads.
    worker : Worker, optional
        A process that measures; by default one that ends after it.

    Raises
    ------
    MeasurementError
        If they cannot be measured.
    """
    known = known_ceilings(threads)
    if known is None:
        with contextlib.ExitStack() as stack:
            if worker is None:
                worker = stack.enter_context(contextlib.closing(Worker(MEASUREMENT_WORKER)))
            known = remote_ceilings(worker, threads)
        keep_ceilings(known)
    return known


def known_ceilings(
    threads: int, dtype: str = "float32", now: Callable[[], float] = time.time
) -> Ceilings | None:
    """Return the ceilings that were kept for a number of threads and a dtype, or None.

    Parameters
    ----------
    threads : int
        Number of threads.
    dtype : str
        Dtype of the multiply-adds.
    now : callable
        The time since 1970 [s].
    """
    cache = object_cache.current()
    text = None if cache is None else cache.load_text(_name(threads, dtype))
    return None if text is None else read_ceilings(text, threads, dtype, now())


def keep_ceilings(ceilings: Ceilings, now: Callable[[], float] = time.time) -> None:
    """Keep ceilings for later processes; without a usable cache folder, do nothing."""
    cache = object_cache.current()
    if cache is not None:
        name = _name(ceilings.threads, ceilings.dtype)
        cache.store_text(name, ceilings_text(ceilings, now()))


def ceilings_text(ceilings: Ceilings, taken_s: float) -> str:
    """Return the text of a file, for ceilings that were taken at a time since 1970 [s].

    Its first line is a digest of the rest, because a damaged digit would be a wrong rate.
    """
    facts = {"version": _VERSION, "machine": _machine(), "taken_s": taken_s}
    body = json.dumps({**facts, "ceilings": ceilings.to_json()})
    return f"{_digest(body)}\n{body}"


def read_ceilings(text: str, threads: int, dtype: str, now_s: float) -> Ceilings | None:
    """Return the ceilings in the text of a file; None if they are not to be used."""
    digest, _, body = text.partition("\n")
    if digest != _digest(body):
        return None
    try:
        data = parse(body)
        ceilings = Ceilings.from_json(data["ceilings"])
        age_s = now_s - data["taken_s"]
        is_ours = data["version"] == _VERSION and data["machine"] == _machine()
        is_ours &= ceilings.provenance == measured_here()
    except (JsonError, ValueError, KeyError, TypeError):
        return None
    levels = [level.name for level in resolve("cpu").caches]
    fits = [name for name, _ in ceilings.reads[:-1]] == levels
    is_asked = (ceilings.threads, ceilings.dtype) == (threads, dtype)
    return ceilings if is_ours and is_asked and fits and 0 <= age_s < KEPT_S else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _machine() -> dict[str, Any]:
    """Return the facts that another machine would differ in."""
    target = resolve("cpu")
    return {
        "model": cpu_model(), "cpu": target.cpu, "vector_bits": target.vector_bits,
        "cores": target.cores,
        "caches": [[level.name, level.bytes, level.shared_by] for level in target.caches],
    }  # fmt: skip


def _name(threads: int, dtype: str) -> str:
    key = json.dumps([_VERSION, _machine(), threads, dtype])
    return f"machine-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
