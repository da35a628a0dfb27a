"""The target of the workbench: which there are, and what a switch to another one keeps.

Targets of one kind of device share the state of the schedule. Each kind has a state of its own: a
switch to another kind repeats the steps that are legal there, and a switch back returns to the
state that was left.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.measurement.loading import runs_in_worker
from dlcompiler.pipeline import device_of
from dlcompiler.pipeline.devices import check_available
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import measured_here
from dlcompiler.schedule.moves.retargeting import Retargeted, retargeted
from dlcompiler.target import Target, resolve
from dlcompiler.target import names as target_names
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]

MOST_LEFT_OUT = 6
"""Steps that the status line names; it counts the others."""
LONGEST_NAME = 200
CANNOT_BE_LOADED = "cannot be loaded"
"""Label of the group of targets whose entry in the registry cannot be read."""
_KINDS = {"cpu": "CPU", "gpu": "GPU", "accelerator": "Accelerator"}


@dataclass(frozen=True)
class Place:
    """A target that the workbench switched away from, and the state that was left."""

    target: Target
    node: str
    """Id of the state."""


@dataclass(frozen=True)
class Places:
    """What a session knows of its switches between targets."""

    given: tuple[Target, ...] = ()
    """Targets that the caller gave as objects; the registry may not have them."""
    left: tuple[Place, ...] = ()
    """The targets on the way to the current one, the first one first."""
    onward: Mapping[tuple[str, str, str], Place] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Device and state that a switch began at, and the other device -> where that was left."""


def targets_of(session: Session) -> list[Json]:
    """Return the targets to choose from: ``name``, ``text``, and the kind of device as ``group``.

    Where the device of a target is not here, ``about`` is the reason.

    Those that the caller gave come first in their groups.
    """
    given = {target.name: target for target in (session.target, *session.places.given)}
    groups: dict[str, list[Json]] = {}
    for name in dict.fromkeys([*given, *target_names()]):
        group = _kind(given.get(name) or name)
        item = {"name": name, "text": name, "group": group}
        if reason := _why_not_here(given.get(name) or name):
            item |= {"text": f"{name} (not here)", "about": reason}
        groups.setdefault(group, []).append(item)
    return [item for items in groups.values() for item in items]


def _why_not_here(target: Target | str) -> str:
    """Return why code for a target can only be read here; '' if it runs here, or is simulated."""
    try:
        return device_of(resolve(target)).why_unavailable() or ""
    except DLCompilerError:
        return ""


def _kind(target: Target | str) -> str:
    try:
        device = resolve(target).device
    except DLCompilerError:
        return CANNOT_BE_LOADED
    return _KINDS.get(device, device)


def retarget(session: Session, args: Mapping[str, Any]) -> Session:
    """Return a session for another ``target``, on the same schedule.

    The steps that the target refuses are left out, and the status says which and why. A switch back
    to a kind of device that was left returns to the state where it was left.
    """
    target = _wanted(session, args.get("target"))
    schedule, here = session.schedule, Place(session.target, session.schedule.node.id)
    back = _way_back(session, target)
    start = here if back is None else session.places.left[back]
    if back is None and target.device != here.target.device:
        start = session.places.onward.get((here.target.device, here.node, target.device), here)
    schedule.jump(start.node)
    try:
        before = start.target if start.target.device == target.device else None
        found = retargeted(schedule, target, before)
        schedule.jump(found.node.id)
        made = session.another(target=target)
    except DLCompilerError:
        schedule.jump(here.node)
        raise
    made.places = _places(session.places, here, target, back, is_changed=bool(found.left_out))
    made.status = _status(found, target, here.target, is_return=start.node != here.node)
    if missing := made.missing_picture():
        made.status = replace(made.status, details=(("not shown", missing), *made.status.details))
    return made


def _wanted(session: Session, name: object) -> Target:
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        raise ScheduleError(
            "choose a target", "this is not the name of a target", got=f"{name!r:.80}",
            expected=", ".join(target_names()),
        )  # fmt: skip
    given = (session.target, *session.places.given)
    return next((target for target in given if target.name == name), None) or resolve(name)


def _way_back(session: Session, target: Target) -> int | None:
    """Return which of the places that were left a switch to a target returns to; None: to none."""
    left = session.places.left
    for number in reversed(range(len(left))):
        if left[number].target.name == target.name:
            return number
    if target.device == session.target.device:
        return None
    same = (n for n in reversed(range(len(left))) if left[n].target.device == target.device)
    return next(same, None)


def _places(
    known: Places, here: Place, target: Target, back: int | None, *, is_changed: bool
) -> Places:
    """Return what the next session knows of the switches; ``here`` is left."""
    way, given = (*known.left, here), known.given
    if here.target not in given and _is_given(here.target):
        given = (*given, here.target)
    if back is not None:
        onward = {
            (a.target.device, a.node, b.target.device): b
            for a, b in itertools.pairwise(way[back:])
            if a.target.device != b.target.device
        }
        return Places(given, known.left[:back], {**known.onward, **onward})
    is_shared = target.device == here.target.device and not is_changed
    return Places(given, known.left if is_shared else way, known.onward)


def _is_given(target: Target) -> bool:
    """Tell whether the registry has another target, or none, under the name of a target."""
    try:
        return resolve(target.name) is not target
    except DLCompilerError:
        return True


def _status(found: Retargeted, target: Target, before: Target, *, is_return: bool) -> Status:
    """Return what a switch from the target `before` has kept, left out, or returned to."""
    name, old = target.name, before.name
    if is_return:
        text = f"Texts and pictures are now for {name}, at the state where it was left."
        more = f"the steps that were made for {old} stay in the history"
    else:
        text, more = f"Texts and pictures are now for {name}.", ""
    if found.left_out:
        total = len(found.kept) + len(found.left_out)
        text += f" Steps kept: {len(found.kept)} of {total}."
        more = f"choose {old} again to return to the state with all steps"
    named = found.left_out[:MOST_LEFT_OUT]
    details = [("left out", str(each)) for each in named]
    if others := len(found.left_out) - len(named):
        details.append(("left out", f"{others} more"))
    return Status(text, "info", (*details, *((("hint", more),) if more else ())))


def times_of(target: Target) -> Provenance | None:
    """Return the provenance of times on a target; None if it has none, or no such device."""
    try:
        return device_of(target).times(target)
    except DLCompilerError:
        return None


def runs_on_processor(target: Target) -> bool:
    """Tell whether times on a target are those of this processor, whose ceilings are measured."""
    return times_of(target) == measured_here()


def _why_no_times(target: Target) -> str:
    """Return why programs for a target are not timed by a worker of this machine; '' if they are.

    Whether this processor has all instructions of a target is not looked at.
    """
    found = times_of(target)
    if found is None:
        return f"Programs for {target.name} run on a device without a clock ({target.runs_on})."
    try:
        check_available(target, "measure")
    except DLCompilerError as error:
        return f"The device of {target.name} is not here: {error.because}."
    if found.kind != "measured":
        where = f"programs for {target.name} run on the {target.runs_on}"
        return f"Only devices of this machine are measured; {where}."
    if not runs_in_worker(target):
        return f"Code in {target.language.upper()} is not measured here."
    return ""


def why_not_measured(session: Session) -> str:
    """Return why code for a session's target cannot be measured here; '' if it can."""
    host, target = resolve("cpu"), session.target
    if why := _why_no_times(target):
        return why
    if target.runs_on != host.runs_on:
        return ""
    ours, theirs = (each.triple.partition("-")[0] for each in (host, target))
    if ours != theirs:
        return f"Kernels are measured on this machine ({ours}); {target.name} is code for {theirs}."
    missing = {f for f in target.features if f.startswith("+")} - set(host.features)
    if missing:
        return f"This machine cannot run code for {target.name}: it lacks {min(missing)[1:]}."
    return ""
