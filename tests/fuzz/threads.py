"""Random schedules for the threads of a device, and the check in the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.ir import Axis
from dlcompiler.schedule.inference.scan_blocks import updates_of
from dlcompiler.schedule.state import StageState, is_scan
from tests.fuzz.walks import SIZES, Walk

BLOCKS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREADS = ("threadIdx.x", "threadIdx.y", "threadIdx.z")


class ThreadWalk(Walk):
    """A random walk on which loops are bound to threads, in the ways that GPU code is written."""

    def run(self, steps: int) -> None:
        """Begin with a grid of threads; then share, reduce and go on as on any walk."""
        self.grid()
        habits = [
            self.grid, self.share, self.accumulate, self.reduce, self.attach, self.bind,
            self.widen, self.fill_ahead,
        ]  # fmt: skip
        if any(map(is_scan, self.schedule.state.stages)):
            habits.append(self.launch)
            self.launch()
        for _ in range(steps // 2):
            if self.rng.random() < 0.7:
                self.rng.choice(habits)()
            else:
                self.move()
        self.settle()

    def computed(self) -> list[StageState]:
        return [s for s in self.schedule.state.stages if not s.is_placeholder and not s.is_inlined]

    def state(self, name: str) -> StageState:
        return self.schedule.state.stage(name)

    def grid(self) -> None:
        """Bind loops of a stage to blocks, virtual threads and threads, from outside to inside."""
        stage = self.rng.choice(self.computed() or [None])
        if stage is None:
            return
        for _ in range(self.rng.randint(0, 2)):
            self.split(stage.name)
        plain = [leaf for leaf in self.state(stage.name).leaves if leaf.kind == "data"]
        tags = [*self.rng.sample(BLOCKS, 2), "vthread", *self.rng.sample(THREADS, 2)]
        chosen = sorted(self.rng.sample(range(5), min(len(plain), self.rng.randint(1, 4))))
        for leaf, n in zip(plain, chosen, strict=False):
            self.apply("bind", stage.name, {"axis": leaf, "thread": tags[n]})

    def split(self, stage: str, leaves: Sequence[Axis] | None = None) -> None:
        choice = leaves if leaves is not None else self.state(stage).leaves
        if choice:
            axis, factor = self.rng.choice(choice), self.rng.choice(SIZES[1:-1])
            self.apply("split", stage, {"axis": axis, "factor": factor})

    def widen(self) -> None:
        """Split a loop by more than its extent, and bind what comes of it to threads."""
        stage = self.rng.choice(self.computed() or [None])
        if stage is None or not stage.leaves:
            return
        leaf = self.rng.choice(stage.leaves)
        extent = leaf.extent if isinstance(leaf.extent, int) else 4
        number = min(extent, 8) + self.rng.choice((1, 2, 5))
        part, tag = self.rng.choice(("factor", "nparts")), self.rng.choice((*THREADS, "vthread"))
        self.apply("split", stage.name, {"axis": leaf, part: number})
        made = [new for new in self.state(stage.name).leaves if not stage.has_leaf(new)]
        if made and self.rng.random() < 0.3:
            self.split(stage.name, made)
            made = [new for new in self.state(stage.name).leaves if not stage.has_leaf(new)]
        for axis in self.rng.sample(made, len(made)):
            self.apply("bind", stage.name, {"axis": axis, "thread": tag})

    def bind(self) -> None:
        """Bind any loop to any axis."""
        stage = self.rng.choice(self.computed() or [None])
        if stage is not None and stage.leaves:
            tag = self.rng.choice((*BLOCKS, *THREADS, "vthread"))
            self.apply("bind", stage.name, {"axis": self.rng.choice(stage.leaves), "thread": tag})

    def share(self) -> None:
        """Keep a part of what a stage reads in shared memory, loaded by the threads of a block."""
        reader = self.rng.choice(self.computed() or [None])
        if reader is None or not reader.op.input_tensors or not reader.leaves:
            return
        source = self.schedule.state.producer_of(self.rng.choice(reader.op.input_tensors))
        before = {stage.name for stage in self.schedule.state.stages}
        scope = self.rng.choice(("shared", "shared", "local", "warp"))
        self.apply("cache_read", source.name, {"scope": scope, "readers": (reader.name,)})
        for made in {stage.name for stage in self.schedule.state.stages} - before:
            place = {"parent": reader.name, "axis": self.rng.choice(self.state(reader.name).leaves)}
            self.apply("compute_at", made, place)
            if scope != "local" and self.rng.random() < 0.7:
                self.load_together(made)
            if self.rng.random() < 0.4:
                self.apply("double_buffer", made, {})

    def load_together(self, stage: str) -> None:
        """Share the elements of a cache out among threads."""
        leaves = self.state(stage).leaves
        if len(leaves) > 1:
            self.apply("fuse", stage, {"axes": leaves})
        for tag in self.rng.sample(THREADS, self.rng.randint(1, 2)):
            leaves = self.state(stage).leaves
            if leaves:
                factor = self.rng.choice(SIZES[1:-1])
                self.apply("split", stage, {"axis": leaves[0], "factor": factor})
                inner = self.state(stage).leaves[1:2]
                if inner:
                    self.apply("bind", stage, {"axis": inner[0], "thread": tag})

    def accumulate(self) -> None:
        """Compute a stage in memory of each thread, and copy it."""
        stage = self.rng.choice(self.computed() or [None])
        if stage is None:
            return
        before = {item.name for item in self.schedule.state.stages}
        self.apply("cache_write", stage.name, {"scope": "local"})
        for made in {item.name for item in self.schedule.state.stages} - before:
            leaves = self.state(stage.name).leaves
            if leaves:
                place = {"parent": stage.name, "axis": self.rng.choice(leaves)}
                self.apply("compute_at", made, place)

    def reduce(self) -> None:
        """Let threads share a reduction."""
        stages = [s for s in self.computed() if any(leaf.kind == "reduce" for leaf in s.leaves)]
        if not stages:
            return
        stage = self.rng.choice(stages)
        if self.rng.random() < 0.6:
            self.split(stage.name, [leaf for leaf in stage.leaves if leaf.kind == "reduce"])
        leaves = [leaf for leaf in self.state(stage.name).leaves if leaf.kind == "reduce"]
        if self.rng.random() < 0.3:
            self.apply("rfactor", stage.name, {"axis": self.rng.choice(leaves)})
            leaves = [leaf for leaf in self.state(stage.name).leaves if leaf.kind == "reduce"]
        data = [leaf for leaf in self.state(stage.name).leaves if leaf.kind == "data"]
        if data:
            self.apply("reorder", stage.name, {"axes": (*data, *leaves)})
        tag = self.rng.choice(THREADS)
        self.apply("bind", stage.name, {"axis": self.rng.choice(leaves), "thread": tag})
        if self.rng.random() < 0.3:
            number = self.rng.choice((0, 1, 2))
            self.apply("set_store_predicate", stage.name, {"predicate": f"{tag} == {number}"})

    def launch(self) -> None:
        """Run all steps of a scan in one launch, and share a step out among its threads."""
        scans = [stage for stage in self.computed() if is_scan(stage)]
        if not scans or self.rng.random() < 0.3:
            return
        scan = self.rng.choice(scans)
        tags = self.rng.sample(BLOCKS, self.rng.randint(0, 1))
        tags += self.rng.sample(THREADS, self.rng.randint(not tags, 2))
        counts = {tag: self.rng.choice(SIZES[1:-1]) for tag in tags}
        text = " ".join(f"{tag}={count}" for tag, count in counts.items())
        self.apply("env_threads", scan.name, {"threads": text})
        for update in updates_of(self.schedule.state, self.state(scan.name)):
            for tag, count in counts.items():
                self.share_rows(update.name, tag, count)

    def share_rows(self, update: str, tag: str, count: int) -> None:
        """Share the elements of a row of a scan out among the threads of an axis."""
        leaves = [leaf for leaf in self.state(update).leaves[1:] if leaf.kind == "data"]
        if not leaves or self.rng.random() < 0.1:
            return
        leaf, part = self.rng.choice(leaves), self.rng.choice(("factor", "nparts", ""))
        if part:
            known = self.state(update).leaves
            self.apply("split", update, {"axis": leaf, part: count})
            made = [new for new in self.state(update).leaves if new not in known]
            leaf = made[part == "factor"] if made else leaf
        self.apply("bind", update, {"axis": leaf, "thread": tag})

    def attach(self) -> None:
        """Compute a stage somewhere inside a reader of it."""
        stage = self.rng.choice(self.computed() or [None])
        places = [] if stage is None else self.attachments(stage.name)
        if places:
            self.apply("compute_at", stage.name, dict(self.rng.choice(places)))
