"""Card of an accelerator: its memories, engines, instructions and token queues."""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.accelerators.model import intrinsic_operands
from dlcompiler.te.notation.reader import notation_text
from dlcompiler.views.cards.card import Card, card, card_html
from dlcompiler.views.render.markup import Markup
from dlcompiler.views.render.scene import Table
from dlcompiler.views.render.units import format_bytes


def accelerator_html(accelerator: Accelerator) -> Markup:
    """Return the card of an accelerator."""
    return card_html(accelerator_card(accelerator))


def accelerator_card(accelerator: Accelerator) -> Card:
    """Return the card of an accelerator."""
    port = accelerator.port
    queues = accelerator.queues or ()
    return card(
        accelerator.name,
        f"an accelerator with {_count(len(accelerator.memories), 'memory', 'memories')}, "
        f"{_count(len(accelerator.engines), 'engine')} and "
        f"{_count(len(accelerator.instructions), 'instruction')}",
        facts=[
            ("clock", f"{accelerator.clock_hz / 1e6:g} MHz"),
            ("memory port", f"{_count(port.bytes_per_cycle, 'byte')} a cycle, after a latency of "
             f"{_count(port.latency, 'cycle')}"),
            ("an instruction", f"{accelerator.word_bits} bits"),
            ("cycles", f"by the rules of profile {accelerator.profile}"
             if accelerator.profile else "what each instruction says"),
        ],
        tables=[
            ("Memories: s[stage].set_scope(scope) puts a stage into one", _memories(accelerator)),
            ("Engines, which run at the same time", _engines(accelerator)),
            ("Instructions", _instructions(accelerator)),
            ("Token queues: one engine pushes, the other waits for a token and pops it",
             {"columns": ["from", "to", "tokens at most"],
              "rows": [[queue.source, queue.sink, queue.depth] for queue in queues]}),
        ],
    )  # fmt: skip


def _memories(accelerator: Accelerator) -> Table:
    return {
        "columns": ["scope", "element", "elements", "size", "used by"],
        "rows": [
            [accelerator.scope_of(memory.name), f"{memory.dtype}{list(memory.shape)}",
             memory.depth, format_bytes(memory.bytes),
             ", ".join(accelerator.accessors(memory.name))]
            for memory in accelerator.memories
        ],
    }  # fmt: skip


def _engines(accelerator: Accelerator) -> Table:
    return {
        "columns": ["engine", "instructions that wait at most", "runs"],
        "rows": [
            [engine.name, engine.queue, ", ".join(i.name for i in accelerator.of(engine.name))]
            for engine in accelerator.engines
        ],
    }


def _instructions(accelerator: Accelerator) -> Table:
    return {
        "columns": ["instruction", "engine", "what it does"],
        "rows": [
            [each.name, each.engine, "; ".join(_effects(each))]
            for each in accelerator.instructions
        ],
    }  # fmt: skip


def _effects(instruction: Instruction) -> Iterator[str]:
    """Yield what an instruction does to the memories, in a few words each."""
    if instruction.kind == "load":
        yield f"copies a block from DRAM to {instruction.memory}"
        if instruction.pads:
            yield "can write zeros around it"
    elif instruction.kind == "store":
        yield f"copies a block from {instruction.memory} to DRAM"
    elif instruction.kind == "finish":
        yield "ends the program"
    elif instruction.intrinsic is not None:
        yield notation_text(instruction.intrinsic.output)
        tensors = intrinsic_operands(instruction.intrinsic)
        places = zip(tensors, instruction.operands.values(), strict=False)
        yield ", ".join(f"{tensor.op.name} in {memory}" for tensor, memory in places)
    else:
        result, *inputs = instruction.operands.values()
        what = ", ".join(instruction.operations) or instruction.name
        yield f"{what} of elements of {', '.join(dict.fromkeys(inputs))} into {result}"
    for copy in instruction.also_writes.values():
        yield f"also into {copy}"
    if instruction.micro_ops:
        yield f"its micro-ops are in {instruction.micro_ops}"


def _count(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
