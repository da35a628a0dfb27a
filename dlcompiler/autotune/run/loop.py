"""The search of a run: propose, measure, record, observe, round after round."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dlcompiler.autotune.near_ties import fastest_of, near_ties
from dlcompiler.autotune.pools.measure_pool import MeasurePool
from dlcompiler.autotune.proposal import Proposal, Tuner
from dlcompiler.autotune.records.record import Record
from dlcompiler.autotune.records.store import RecordStore
from dlcompiler.autotune.run.clock import Clock
from dlcompiler.autotune.run.control import Control
from dlcompiler.autotune.run.events import EventKind
from dlcompiler.autotune.run.plan import Plan
from dlcompiler.autotune.run.progress import RunProgress
from dlcompiler.autotune.run.rounds import Round
from dlcompiler.autotune.trial import Result, Trial
from dlcompiler.errors import InternalError, MeasurementError, TuningError

_COMPARING_S = 1.0
_COMPARING_SHARE = 0.03
"""Limits of the time for measuring near ties again: in seconds, and as a share of the run."""

Tell = Callable[[EventKind, Trial | None, Round | None], None]
"""Called with the kind of an event and what it is about."""


@dataclass(slots=True)
class Search:
    """The search loop, which the thread of a run executes.

    The tuner cannot access a clock, and the pool cannot access the tuner. A trial is in the store
    before listeners are called. If an earlier process was killed in the middle of the same run, the
    tuner proposes the same points again, and those with records are not measured again.
    """

    plan: Plan
    tuner: Tuner
    pool: MeasurePool
    control: Control
    store: RecordStore
    progress: RunProgress
    clock: Clock
    name: str
    """Name of the run in the records; that of an earlier process if this run continues it."""
    tell: Tell
    _known: dict[int, Record] = field(default_factory=dict)
    """Records of an earlier process by point, until the tuner proposes the point again."""
    _observed: int = 0

    def run(self) -> None:
        """Search until the plan's end, or until it is stopped; then choose between near ties."""
        self._look_into_records()
        self._search()
        self._settle_near_ties()

    def _search(self) -> None:
        tried = {trial.point for trial in self.progress.prior}
        proposals: Sequence[Proposal] = [p for p in self.plan.first if p.point not in tried]
        if proposals:
            self._round(proposals[: self._left()], 0.0)
        while not self.is_over():
            start = time.perf_counter()
            proposals = self.tuner.propose(self._left(self.plan.batch))
            self._take_notes()
            if not proposals:
                self._note("space", "every config that may be tried was tried")
                return
            self._round(proposals, time.perf_counter() - start)

    def is_over(self) -> bool:
        """Return whether no further trial may begin."""
        plan, progress = self.plan, self.progress
        if self.control.is_stopping or self._left() <= 0:
            return True
        if plan.seconds is not None and self.clock.elapsed_s >= plan.seconds:
            return True
        rest = plan.early_stopping
        if rest is None or progress.count - progress.last_better < rest:
            return False
        self._note("early", f"ended early: no faster config in {rest} trials")
        return True

    def _left(self, most: int = 1 << 62) -> int:
        trials = self.plan.trials
        return most if trials is None else min(most, trials - self.progress.count)

    # -- records of earlier runs -------------------------------------------------------------

    def _look_into_records(self) -> None:
        """Read the records of this workload on this machine, and observe them."""
        self._take_notes()
        plan = self.plan
        claim = self.store.claim(self.name, plan.identity())
        self.name = claim.run
        prior: dict[int, Trial] = {}
        strange = other = 0
        for record in self.store.records(plan.workload, plan.machine):
            point = self._point_of(record)
            if record.provenance.kind != plan.kind:
                other += 1
            elif point is None:
                strange += 1
            elif record.run == self.name:
                self._known[point] = record
            elif claim.goes_on and record.measured_at > claim.began_at:
                continue  # of another run that began after this one
            else:
                prior[point] = self._trial_of(record, point, record.trial)
        self.progress.learn(tuple(prior.values()))
        for trial in prior.values():
            self._observe(trial)
        self.clock.go_on_from(max((r.elapsed_s for r in self._known.values()), default=0.0))
        self._note("records", self._about_records(len(prior), strange, other))

    def _point_of(self, record: Record) -> int | None:
        """Return the point of a record; None if it belongs to another version of the space."""
        if record.config.fingerprint != self.plan.space.fingerprint:
            return None
        try:
            return self.plan.space.index_of(record.config)
        except TuningError:
            return None

    def _about_records(self, prior: int, strange: int, other: int) -> str:
        parts = []
        if self._known:
            parts.append(
                f"goes on with run {self.name}, which ended without its end after"
                f" {len(self._known)} trials"
            )
        if prior:
            parts.append(
                f"starts warm: {_records(prior)} of {self.store.path} are known and not measured"
                " again"
            )
        if strange:
            parts.append(f"{_records(strange)} left out: they are of another space of configs")
        if other:
            parts.append(f"{_records(other)} left out: their times are not {self.plan.kind}")
        return "; ".join(parts)

    def _trial_of(self, record: Record, point: int, index: int) -> Trial:
        result = replace(record.result, provenance=record.provenance)
        return Trial(
            index, point, record.config, result, record.elapsed_s, self.plan.flops,
            record.round, record.origin, record.predicted_s, record.spread,
        )  # fmt: skip

    # -- rounds ------------------------------------------------------------------------------

    def _round(self, proposals: Sequence[Proposal], searching_s: float) -> None:
        """Measure the proposed points, except those with records."""
        begun = Round(
            number=len(self.progress.rounds),
            first=self.progress.count,
            count=len(proposals),
            searching_s=searching_s,
            walkers=tuple(map(int, self.tuner.walkers)),
            trained_on=self._observed if self.tuner.model is not None else 0,
        )
        self.progress.begin_round(begun)
        self.tell("round", None, begun)
        left = self._answer_from_records(list(proposals), begun.number)
        while left and not self.is_over():
            left = self._measure(left, begun.number)
            self._take_notes()
            self._wait_while_paused()
        self.tell("round", None, self.progress.complete_round())

    def _wait_while_paused(self) -> None:
        if self.control.is_paused:
            with self.clock.during("paused"):
                self.control.wait_while_paused()

    def _answer_from_records(self, proposals: list[Proposal], number: int) -> list[Proposal]:
        """Report proposals that an earlier process recorded; return those without records."""
        if not self._known:
            return proposals
        known = [proposal for proposal in proposals if proposal.point in self._known]
        if not known:  # the tuner proposes other points than then: its code has changed
            for point, record in self._known.items():
                self._observe(self._trial_of(record, point, record.trial))
            rest = tuple(self._trial_of(r, p, r.trial) for p, r in self._known.items())
            self.progress.learn((*self.progress.prior, *rest))
            self._known.clear()
            return proposals
        for proposal in sorted(known, key=lambda p: self._known[p.point].trial):
            record = self._known.pop(proposal.point)
            self._take_in(self._trial_of(record, proposal.point, self.progress.count))
        return [proposal for proposal in proposals if proposal not in known]

    def _measure(self, proposals: list[Proposal], number: int) -> list[Proposal]:
        """Measure a batch; return the proposals that were not measured."""
        plan = self.plan
        configs = [plan.space.at(proposal.point) for proposal in proposals]
        reported: set[int] = set()

        def report(place: int, result: Result) -> None:
            with self.clock.during("searching"):
                result = self._labelled(result)
                reported.add(place)
                self.clock.add(result)
                proposal = proposals[place]
                trial = Trial(
                    self.progress.count, proposal.point, configs[place], result,
                    self.clock.elapsed_s, plan.flops, number, proposal.origin,
                    proposal.predicted_s, proposal.spread,
                )  # fmt: skip
                self.store.add([self._record(trial)])
                self._take_in(trial)
                if self.is_over():
                    self.control.enough()

        best = self.progress.best
        with self.clock.during("measuring"):
            is_whole = self.control.measure(configs, best.seconds if best else None, report)
        left = [p for place, p in enumerate(proposals) if place not in reported]
        if left and is_whole:
            raise InternalError(
                f"tune {plan.workload}", "the pool did not report the result of each config",
                got=f"{len(reported)} reports", expected=f"{len(proposals)}",
            )  # fmt: skip
        return left

    def _labelled(self, result: Result) -> Result:
        """Add the provenance to a result; refuse a time of another kind than the run's."""
        result = self.pool.devices[0].labelled(result)
        if result.provenance is not None and result.provenance.kind != self.plan.kind:
            raise TuningError(
                f"tune {self.plan.workload}", "the pool reported a time of another kind",
                got=str(result.provenance), expected=self.plan.kind,
                because="measured and simulated times cannot be compared",
            )  # fmt: skip
        return result

    def _take_in(self, trial: Trial) -> None:
        self.progress.add(trial)
        self._observe(trial)
        self.tell("trial", trial, None)

    def _observe(self, trial: Trial) -> None:
        self.tuner.observe(trial.point, None if trial.seconds is None else 1 / trial.seconds)
        self._observed += 1

    def _record(self, trial: Trial) -> Record:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        plan = self.plan
        return Record.of(trial, plan.workload, plan.machine, self.name, now)

    def _settle_near_ties(self) -> None:
        """Measure the near ties of the best trial in turn with it; the fastest becomes the best."""
        self._wait_while_paused()
        best = self.progress.best
        if best is None or self.control.is_stopping:
            return
        near = near_ties((*self.progress.prior, *self.progress.trials), best)
        if len(near) < 2:
            return
        budget_s = min(_COMPARING_S, _COMPARING_SHARE * self.clock.elapsed_s)
        try:
            with self.clock.during("measuring"):
                configs = [trial.config for trial in near]
                compared = self.control.compare(configs, budget_s, self.plan.seed)
        except MeasurementError as error:
            self._note("ties", f"near ties could not be measured again: {error.problem}")
            return
        if compared is None:
            return
        for item in compared:
            self.clock.add(item.result)
        chosen = fastest_of(near, compared)
        self.progress.settle(chosen)
        if chosen is not best:
            self._note(
                "ties",
                f"of {len(compared)} near ties, trial {chosen.index} was the fastest when they were"
                " measured in turn",
            )

    # -- notes -------------------------------------------------------------------------------

    def _take_notes(self) -> None:
        self._note("tuner", self.tuner.note)
        self._note("pool", self.pool.note)

    def _note(self, source: str, text: str) -> None:
        if self.progress.note(source, text):
            self.tell("note", None, None)


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
