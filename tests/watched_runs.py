"""Simulated tuning runs for the views: results are computed from the config, not measured."""

import math
import random
import time

import numpy as np

from dlcompiler import ops
from dlcompiler.autotune import RecordStore, Result
from dlcompiler.autotune.pools.measure_pool import Device
from dlcompiler.autotune.proposal import Proposal
from dlcompiler.autotune.run.clock import Phases
from dlcompiler.autotune.run.plan import Plan
from dlcompiler.autotune.run.rounds import Round
from dlcompiler.autotune.run.tuning_run import TuningRun
from dlcompiler.target import resolve
from dlcompiler.views.tuning import TrialRow, Watched

HOSTILE = "<img src=x onerror=\"window.broken=1\"> & 'quoted'"
MATMUL = ops.operator("matmul")
WORKLOAD = MATMUL.workload(m=64, n=64, k=64)
FLOPS = 2.0 * 64**3


def space():
    return MATMUL.space(WORKLOAD, resolve("cpu"))


def seconds_of(values):
    """Seconds of a config: shortest for tiles of 4 by 16 that are packed."""
    far = abs(math.log2(values["tile_m"] / 4)) + abs(math.log2(values["tile_n"] / 16))
    return 2e-5 * (1 + far) * (1 if values["pack"] else 1.7)


class Model:
    """A linear model of knob positions whose predictions differ from the results by a wave."""

    name = "linear"

    def __init__(self, of):
        self.space = of
        self.columns = tuple(knob.name for knob in of.knobs)
        self.calls = []

    def contributions(self, points):
        self.calls.append(tuple(int(point) for point in points))
        digits = np.asarray(self.space.digits(points), float)
        weights = np.linspace(0.4, -0.2, digits.shape[1])
        return np.hstack([digits * weights, np.full((len(digits), 1), 14.0)])

    def predict(self, points):
        return self.contributions(points).sum(axis=1)

    def spread(self, points):
        return np.zeros(len(points))

    def importance(self):
        self.calls.append("importance")
        shares = np.arange(len(self.columns), 0, -1.0)
        return dict(zip(self.columns, shares / shares.sum(), strict=True))

    def fit(self, points, rates):
        pass


class Tuner:
    """Draws points; from the second round on it predicts them, and has two walkers."""

    note = ""

    def __init__(self, of, seed=0, has_model=True):
        self.space = of
        self.model = Model(of) if has_model else None
        self.walkers = ()
        self.seen = []
        self.random = random.Random(seed)

    def propose(self, count):
        points = self.space.sample(count, self.random, self.seen)
        self.walkers = points[:2] if self.model else ()
        if not self.model or len(self.seen) < 8:
            return tuple(Proposal(point) for point in points)
        times = [seconds_of(self.space.at(p).values) * (1 + 0.3 * (p % 3)) for p in points]
        return tuple(
            Proposal(point, "model", expected, 0.1)
            for point, expected in zip(points, times, strict=True)
        )

    def observe(self, point, rate):
        self.seen.append(point)


class Pool:
    """Measures as many as there are permits; every seventh is wrong, every ninth crashes."""

    note = ""
    devices = (Device("fake"),)

    def __init__(self, permits=10**9, message=HOSTILE):
        self.permits = permits
        self.message = message
        self.count = 0
        self.is_interrupted = False

    def measure(self, configs, best_s, report):
        self.is_interrupted = False
        for number, config in enumerate(configs):
            while self.count >= self.permits and not self.is_interrupted:
                time.sleep(0.002)
            if self.is_interrupted:
                return
            self.count += 1
            report(number, self.result(config))

    def result(self, config):
        if self.count % 7 == 0:
            return Result("wrong answer", message=self.message, build_s=0.02, run_s=0.01)
        if self.count % 9 == 0:
            return Result("crashed", message="SIGSEGV", build_s=0.02)
        found = seconds_of(config.values)
        return Result("ok", (found, found * 1.01, found * 0.99), build_s=0.02, run_s=0.03)

    def interrupt(self):
        self.is_interrupted = True

    def close(self):
        pass


def start(trials=40, permits=10**9, has_model=True, seed=0, batch=8, pool=None, first=()):
    """Start a run; `run.pool` and `run.tuner` are what it is made of."""
    target = resolve("cpu")
    found = space()
    plan = Plan(MATMUL, WORKLOAD, target, found, 1, trials, None, batch, FLOPS, first=first)
    pool = pool or Pool(permits)
    tuner = Tuner(found, seed, has_model)
    run = TuningRun(plan, tuner, pool, RecordStore(":memory:"))
    run.pool, run.tuner = pool, tuner
    run.start()
    return run


def ended(trials=40, **options):
    return start(trials, **options).wait(30)


def seen(count=60, most=100, state="running", model=True, seed=0, note=""):
    """What is watched of a run that never was, by an exact clock."""
    found = space()
    rows = []
    for n, point in enumerate(found.sample(count, seed)):
        values = found.at(point).values
        outcome = "wrong answer" if n % 7 == 5 else "refused" if n % 11 == 4 else "ok"
        measured = seconds_of(values) * (1 + 0.1 * (point % 5))
        origin = "default" if n == 0 else "random" if n < 8 or n % 4 == 0 else "model"
        predicted = seconds_of(values) if model and n >= 8 else None
        ok = outcome == "ok"
        rows.append(
            TrialRow(
                n, point, outcome, measured if ok else None, FLOPS / measured / 1e9 if ok else None,
                0.5 * (n + 1), n // 8, origin, predicted, 0.2, 0.1,
            )
        )  # fmt: skip
    rounds = [
        Round(n, 8 * n, 8, 0.05, tuple(row.point for row in rows[8 * n : 8 * n + 3]), 8 * n, True,
              0.5 + 0.05 * n if n and model else None, 0.5 if n and model else None)
        for n in range(count // 8)
    ]  # fmt: skip
    phases = Phases(0.1 * count, 0.2 * count, 0.1 * count, 0.1 * count, 0.0)
    left = 0.5 * (most - count) if state == "running" else None
    return Watched("matmul(m=64)", state, found, most, tuple(rows), (), rounds, phases,
                   0.5 * count, left, note)  # fmt: skip
