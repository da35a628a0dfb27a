"""The inner loops of machine code of x86-64, found by their debug lines.

Each instruction belongs to a line of the printed function; a loop is a block that jumps to its own
label::

    for loop in inner_loops(func, assembly, "matmul.sums"):
        assert loop.stack_accesses == ()
"""

import re
from dataclasses import dataclass

from dlcompiler.ir import print_func


@dataclass(frozen=True)
class InnerLoop:
    """A loop without loops inside."""

    instructions: tuple[str, ...]
    """Each as ``"vmovups (%rax), %ymm0"``."""

    def count(self, mnemonic):
        """Return how many instructions begin with a mnemonic."""
        return sum(text.startswith(mnemonic) for text in self.instructions)

    has_frame: bool
    """Whether the function keeps where its stack begins in a register, not free for other use."""

    @property
    def stack_accesses(self):
        """Vector instructions with an operand on the stack: registers that were spilled."""
        stack = re.compile(r"\(%r[sb]p[,)]" if self.has_frame else r"\(%rsp[,)]")
        return tuple(
            text
            for text in self.instructions
            if stack.search(text) and re.search(r"%[xyz]mm", text)
        )


def inner_loops(func, assembly, buffer):
    """Return the inner loops that update a buffer: what adds to it, ``buffer[…] += …``."""
    lines = print_func(func).text.splitlines()
    start = re.compile(rf"\s*{re.escape(buffer)}\[.*\] \+= ")
    wanted = {number for number, line in enumerate(lines, 1) if start.match(line)}
    assert wanted, f"no line adds to {buffer}"
    found = [
        InnerLoop(tuple(text for _, text in block), "%rsp, %rbp" in assembly)
        for label, block in _blocks(assembly)
        if block[-1][1].endswith(f" {label}") and any(line in wanted for line, _ in block)
    ]
    assert found, f"no loop adds to {buffer}"
    return found


def _blocks(assembly):
    """Yield label and instructions, as (line, text), of what runs up to a jump or a label."""
    label, block, line = "", [], 0
    for text in assembly.splitlines():
        if match := re.match(r"\t\.loc\t\d+ (\d+) ", text):
            line = int(match[1])
        elif match := re.match(r"(\.LBB\w+):", text):
            if block:
                yield label, block
            label, block = match[1], []
        elif re.match(r"\t[a-z]", text):
            block.append((line, " ".join(text.split("#")[0].split())))
            if block[-1][1].startswith("j"):
                yield label, block
                label, block = "", []
