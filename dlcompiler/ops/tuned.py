"""Look up configs that were found by measuring and are shipped as data.

``tuned/<class of targets>.json`` is a list of workloads with values of knobs. Other knobs, such as
whether to use several cores, have the value of the default config. An entry is used only if the
space still has these knobs and values; otherwise the default config is used. ``dlcompiler tune
--into FILE`` writes such a file.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

from dlcompiler.errors import TuningError
from dlcompiler.json_text import parse
from dlcompiler.ops.base import Operator
from dlcompiler.space import Config, Workload
from dlcompiler.space.knob import as_value, is_value
from dlcompiler.target import Target

SCHEMA_VERSION = 1
Tuned: TypeAlias = Mapping[Workload, Mapping[str, Any]]
"""Values of the knobs by workload."""

_VECTORS = ("avx512f", "avx2", "sse2", "sse4.1")


def target_class(target: Target) -> str:
    """Return the class of targets that share configs: device, processor family, vectors.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> target_class(resolve("x86-64-avx2"))
    'cpu-x86_64-avx2'
    """
    family = target.triple.partition("-")[0]
    widest = next((name for name in _VECTORS if target.has(name)), f"{target.vector_bits}")
    return f"{target.device}-{family}-{widest}"


def config_for(
    operator: Operator, workload: Workload, target: Target, tuned: Tuned | None = None
) -> Config:
    """Return the config to build an operator with.

    Parameters
    ----------
    operator, workload, target
        What is built.
    tuned : mapping, optional
        Values by workload, found on one core; by default those that are shipped for the target's
        class. With an empty one, the default config is returned. On several cores the knobs that
        depend on their number (`Knob.is_by_cores`) keep the default's values.

    Returns
    -------
    Config
    """
    default = operator.default_config(workload, target)
    found = (shipped(target_class(target)) if tuned is None else tuned).get(anchor(workload))
    if found is not None:
        choices = operator.space(workload, target)
        if target.cores > 1:
            by_cores = {knob.name for knob in choices.knobs if knob.is_by_cores}
            found = {name: value for name, value in found.items() if name not in by_cores}
        try:
            return choices.config(**{**default.values, **found})
        except TuningError:  # the entry is for another version of the space
            pass
    return default


def anchor(workload: Workload) -> Workload:
    """Return the workload without epilogue and zero point, which configs do not depend on."""
    left_out = ("epilogue", "zero_point")
    params = {name: value for name, value in workload.params if name not in left_out}
    return Workload.of(workload.op, **params)


@cache
def shipped(name: str) -> Tuned:
    """Return the configs shipped for a class of targets; empty where there are none."""
    path = importlib.resources.files("dlcompiler.ops") / "tuned" / f"{name}.json"
    if not path.is_file():
        return {}
    return read(parse(path.read_bytes()))


def read(document: Any) -> Tuned:
    """Read what `write` wrote.

    Raises
    ------
    TuningError
        If it is something else.
    """
    match document:
        case {"version": 1, "configs": list(entries)}:
            return dict(map(_entry, entries))
    raise TuningError(
        "read tuned configs", "not a document of this version",
        expected=f'{{"version": {SCHEMA_VERSION}, "configs": […]}}',
    )  # fmt: skip


def _entry(data: Any) -> tuple[Workload, Mapping[str, Any]]:
    match data:
        case {"workload": workload, "values": dict(values)} if all(
            is_value(as_value(value)) for value in values.values()
        ):
            return Workload.from_json(workload), values
    raise TuningError(
        "read tuned configs", "not an entry of such a document", got=repr(data)[:200],
        expected='{"workload": {…}, "values": {knob: value}}',
    )  # fmt: skip


def write(tuned: Tuned) -> dict[str, Any]:
    """Return the document of some configs as JSON values."""
    entries = [
        {"workload": anchor(workload).to_json(), "values": dict(values)}
        for workload, values in sorted(tuned.items(), key=lambda entry: str(entry[0]))
    ]
    return {"version": SCHEMA_VERSION, "configs": entries}
