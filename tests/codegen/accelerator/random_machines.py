"""Random accelerators of a user: odd elements, shared engines, intrinsics that are no products."""

from __future__ import annotations

import random

from dlcompiler import te
from dlcompiler.target.accelerators import (
    Accelerator,
    Engine,
    Instruction,
    Memory,
    TokenQueue,
    copy,
    tensor_op,
)
from tests.codegen.accelerator import random_programs
from tests.codegen.accelerator.random_programs import Case

OPERATIONS = ("add", "mul", "max", "min")


def case(seed: int) -> Case:
    """Return a random program for a random accelerator; the same one for the same seed."""
    rng = random.Random(seed)
    block = rng.choice(((3, 5), (7,), (2, 2, 3), (1, 4), (8,), (1,)))
    name = f"user{seed}"
    mixing = _intrinsic(seed, block)
    machine, homes = _machine(rng, name, block, mixing)
    draft = random_programs.Draft(rng, machine=name, rank=len(block))
    outer = tuple(rng.randrange(1, 5) for _ in range(rng.choice((1, 1, 2, 3))))
    shape = (*outer, *block)
    loaded = [
        draft.loaded(outer, block, "int32", memory, can_pad=False)
        for memory in [homes["mixed from"], *rng.choices(["m0", "m1"], k=rng.randrange(2))]
    ]
    known = [*loaded]
    for _ in range(rng.randrange(1, 4)):
        source = [t for t in known if draft.scopes[t] == homes["mixed from"]]
        kind = rng.choice(("mix", "mix", "sum", "chain"))
        if kind == "mix":
            a, b = rng.choice(source), rng.choice(source)
            made = draft.stage(
                shape, lambda *i, a=a, b=b: a[i] * b[i] + a[i], "mixed", homes["mixed to"]
            )
            draft.intrinsics[made] = mixing
        elif kind == "sum":
            wide = draft.loaded((*outer, 3), block, "int32", homes["summed from"], can_pad=False)
            k = te.reduce_axis((0, 3), "k")
            made = draft.stage(
                shape,
                lambda *i, w=wide, k=k: te.sum(w[(*i[: len(outer)], k, *i[len(outer) :])], axis=k),
                "summed", homes["mixed to"],
            )  # fmt: skip
            draft.reductions.append(made)
        else:
            mine = [t for t in known if draft.scopes[t] == homes["chains"]]
            if not mine:
                continue
            made = _chain(draft, rng, shape, mine)
        known.append(made)
    outputs = [
        te.compute(shape, lambda *i, t=t: t[i], name=f"out{n}")
        for n, t in enumerate(dict.fromkeys((known[-1], rng.choice(known))))
    ]
    s = te.create_schedule([tensor.op for tensor in outputs])
    steps = random_programs.scheduled(draft, s, outputs)
    used = random_programs.reached(outputs)
    return Case(machine, s, [t for t in draft.inputs if t in used], outputs, steps)


def _chain(draft, rng: random.Random, shape, mine):
    operations = {
        "add": lambda a, b: a + b, "mul": lambda a, b: a * b,
        "max": te.maximum, "min": te.minimum,
    }  # fmt: skip
    picked = [(rng.choice(OPERATIONS), rng.choice(mine)) for _ in range(rng.randrange(1, 4))]
    first = rng.choice(mine)

    def value(*index):
        total = first[index]
        for name, tensor in picked:
            other = tensor[index] if rng.random() < 0.7 else te.const(rng.randrange(-9, 9), "int32")
            total = operations[name](total, other)
        return total

    return draft.stage(shape, value, "chain", draft.scopes[first])


def _intrinsic(seed: int, block: tuple[int, ...]):
    """Return the intrinsic of an element from two others, which is no product."""
    a, b = (te.placeholder(block, "int32", name=name) for name in "ab")
    mixed = te.compute(block, lambda *i: a[i] * b[i] + a[i], name="mixed")
    return te.decl_tensor_intrin(mixed.op, lambda ins, outs: f"mix{seed}", f"mix{seed}")


def _machine(rng: random.Random, name: str, block: tuple[int, ...], mixing):
    """Return an accelerator, and which memories its instructions use."""
    engines = rng.sample(("a", "b", "c", "d"), rng.randrange(1, 5))

    def pick() -> str:
        return rng.choice(engines)

    memories = ["m0", "m1"]
    homes = {
        "mixed from": rng.choice(memories), "mixed to": rng.choice(memories),
        "chains": rng.choice(memories),
    }  # fmt: skip
    homes["summed from"] = homes["mixed to"]
    instructions = []
    for memory in memories:
        instructions += [copy(pick(), into=memory, cycles=lambda n: n + 2)]
        instructions += [copy(pick(), out_of=memory)]
    mix = tensor_op(
        pick(), mixing, cycles=lambda n: 2 * n,
        memories=(homes["mixed to"], homes["mixed from"], homes["mixed from"]),
    )  # fmt: skip
    instructions.append(mix)
    for memory in dict.fromkeys((homes["chains"], homes["mixed to"])):
        instructions.append(
            Instruction(
                f"alu {memory}", pick(), "elementwise", operands={"dst": memory, "src": memory},
                operations=OPERATIONS, cycles=lambda n: n,
            )
        )  # fmt: skip
    used = [e for e in engines if any(i.engine == e for i in instructions)]
    depth = rng.choice((16, 64, 1024))
    queues = None
    if len(used) > 2 and rng.random() < 0.4:
        # A ring: tokens between engines that are no neighbours pass through others.
        ring = [*used[1:], used[0]]
        depth_of_queue = random.Random(name).choice((2, 3, 8, 255))
        queues = [TokenQueue(x, y, depth=depth_of_queue) for x, y in zip(used, ring, strict=True)]
    parts = {
        "memories": [Memory(m, block, "int32", depth) for m in memories],
        "engines": [Engine(e, rng.choice((1, 4, 512))) for e in used],
        "instructions": instructions,
    }
    return Accelerator(name, **parts, queues=queues, word_bits=192), homes
