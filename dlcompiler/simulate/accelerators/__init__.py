"""Programs of accelerators: their instructions, what they compute, and how long they take.

`run_program` computes the values of a program and finds what is wrong with it; `time_program` says
when each instruction runs. Both read the same `InstructionProgram`.
"""

from dlcompiler.simulate.accelerators.assembler import assemble
from dlcompiler.simulate.accelerators.containers import load_program, save_program
from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.functional.run import FunctionalRun, run_program
from dlcompiler.simulate.accelerators.listing import disassemble, instruction_text
from dlcompiler.simulate.accelerators.program import DramBuffer, InstructionProgram, Step
from dlcompiler.simulate.accelerators.timing.run import TimedRun, Wait, time_program
from dlcompiler.simulate.accelerators.words import Encoding, encoding_2019, encoding_of

__all__ = [
    "DramBuffer",
    "Encoding",
    "FunctionalRun",
    "InstructionError",
    "InstructionProgram",
    "Step",
    "TimedRun",
    "Wait",
    "assemble",
    "disassemble",
    "encoding_2019",
    "encoding_of",
    "instruction_text",
    "load_program",
    "run_program",
    "save_program",
    "time_program",
]
