"""Results of measured works, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.bench.intervals import Ratio, paired_ratio
from dlcompiler.bench.works import GRAMMAR, Work
from dlcompiler.runtime.timing import Timing

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class PeerResult:
    """The result of a peer."""

    timing: Timing
    """Times of its calls [s]."""
    way: str
    """The way in which it computed."""
    ratio: Ratio
    """Its time divided by ours."""


@dataclass(frozen=True)
class Contest:
    """The measurements of one contest: our kernel and the peers, in alternation."""

    ours: Timing
    """Times of our calls [s]."""
    peers: Mapping[str, PeerResult]
    """Results of the peers by name."""
    of_peak: Ratio
    """Our rate as a fraction of the FMA peak, on as many threads, in alternation with ours."""
    peak_gflops: float
    """That peak [GFLOP/s]."""
    worst: float
    """Our largest difference from the right result, as a fraction of the bound."""
    operator: str = ""
    """Name of our operator."""
    config: str = ""
    """The choices of its schedule."""
    alone: Timing | None = None
    """Times of our calls on one thread [s]; None if `ours` has one thread."""
    peak_speedup: float | None = None
    """How much faster the FMA peak is on all threads than on one."""

    @property
    def best_peer(self) -> str | None:
        """Name of the fastest peer."""
        return min(self.peers, key=lambda name: self.peers[name].timing.median_s, default=None)

    @property
    def speedup(self) -> Ratio | None:
        """Our time on one thread divided by our time on all."""
        if self.alone is None:
            return None
        return paired_ratio(self.alone.samples_s, self.ours.samples_s)


@dataclass(frozen=True)
class Result:
    """One row of a work."""

    work: Work
    row: str
    """``plain`` or ``prepacked``."""
    threads: int
    verified: bool | None
    """Whether our result was right; ``None``: there is none, for the reason given."""
    reason: str = ""
    """Why it was not measured, or what was wrong."""
    contest: Contest | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    """Peers that did not take part, and why."""

    @property
    def ratio(self) -> Ratio | None:
        """The best peer's time divided by ours."""
        return self.ratio_to(None)

    def ratio_to(self, names: tuple[str, ...] | None) -> Ratio | None:
        """Return the ratio to the fastest of the given peers, by default of all peers."""
        if self.contest is None:
            return None
        peers = {
            name: peer
            for name, peer in self.contest.peers.items()
            if names is None or name in names
        }
        if not peers:
            return None
        return min(peers.values(), key=lambda peer: peer.timing.median_s).ratio

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; times in seconds."""
        head = {
            "work": self.work.text,
            "row": self.row,
            "judged": self.row == self.work.judged,
            "threads": self.threads,
            "verified": self.verified,
            "reason": self.reason,
            "absent": dict(self.absent),
        }
        return {**head, **_measured(self.work, self.contest, self.ratio)}


def _measured(work: Work, contest: Contest | None, ratio: Ratio | None) -> dict[str, Any]:
    if contest is None:
        return {"ours_seconds": None, "peers": {}, "ratio": None, "interval": None}
    ours = contest.ours
    speedup = contest.speedup
    return {
        "ours_seconds": ours.median_s,
        "ours_spread_seconds": ours.spread_s,
        "rounds": ours.n,
        "peers": {name: peer.timing.median_s for name, peer in contest.peers.items()},
        "ratio": None if ratio is None else ratio.median,
        "interval": None if ratio is None else [ratio.low, ratio.high],
        "best_peer": contest.best_peer,
        "peer_details": {
            name: {
                "spread_seconds": peer.timing.spread_s,
                "way": peer.way,
                "ratio": peer.ratio.median,
                "interval": [peer.ratio.low, peer.ratio.high],
            }
            for name, peer in contest.peers.items()
        },
        "bound_by": GRAMMAR[work.family].bound_by,
        "gflops": work.flops / ours.median_s / 1e9,
        "gigabytes_per_second": work.nbytes / ours.median_s / 1e9,
        "of_fma_peak": contest.of_peak.median if work.flops else None,
        "fma_peak_gflops": contest.peak_gflops,
        "worst_of_bound": contest.worst,
        "operator": contest.operator,
        "config": contest.config,
        "speedup": None if speedup is None else speedup.median,
        "fma_peak_speedup": contest.peak_speedup,
    }
