"""A tuning run that is killed again and again: the program that the tests start.

It imports once and forks a child for each life of the run, so that a hundred lives cost seconds.
Usage: ``killed_runs.py DATABASE JOURNAL LIVES SEED TRIALS``. The journal gets a line for each
measurement (``m POINT``), and for each trial that a listener heard of (``h POINT``), at once.
Half of the lives end at a random moment after they began, the others at one after they have
measured something, which also holds on a busy machine.
"""

import os
import random
import signal
import sys
import time

from dlcompiler.autotune import Device, Result, tune
from dlcompiler.space import Workload

BATCH = 8
WORKLOAD = Workload.of("matmul", m=64, n=64, k=64)


class Pool:
    """A pool that reports a batch only when all of it is measured, so a kill loses the most."""

    note = ""
    devices = (Device("x86:test"),)

    def __init__(self, write):
        self.write = write

    def measure(self, configs, best_s, report):
        for config in configs:
            time.sleep(0.002)
            self.write("m", str(sorted(config.values.items())))
        for number, config in enumerate(configs):
            report(number, Result("ok", (cost(config),) * 3))

    def interrupt(self):
        pass

    def close(self):
        pass


def cost(config):
    """Return seconds: shortest for tiles of 4 by 16 that are packed."""
    far = abs(config.tile_m - 4) + abs(config.tile_n - 16) / 8
    return 1e-4 * (1 + far + (not config.pack) + 0.1 * config.unroll_k)


def start(db, trials, write=lambda *_: None):
    """Begin the run, or go on with it."""

    def heard(event):
        if event.trial is not None:
            write("h", str(sorted(event.trial.config.values.items())))

    return tune(
        WORKLOAD, "x86-64-avx2", trials=trials, batch=BATCH, tuner="random", seed=5, db=db,
        pool=Pool(write), listeners=[heard],
    )  # fmt: skip


def live(db, journal, trials):
    handle = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    start(db, trials, lambda kind, text: os.write(handle, f"{kind} {text}\n".encode())).wait()
    os._exit(0)


def main(db, journal, lives, seed, trials):
    generator = random.Random(seed)
    for number in range(lives):
        size = size_of(journal)
        child = os.fork()
        if child == 0:
            live(db, journal, trials)
        while number % 2 == 0 and size_of(journal) == size:
            time.sleep(0.001)
        time.sleep(generator.uniform(0.0, 0.05))
        os.kill(child, signal.SIGKILL)  # one that has ended is still to be waited for
        if os.waitpid(child, 0)[1] != signal.SIGKILL:
            raise SystemExit("the run ended before it was killed: it needs more trials")


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
