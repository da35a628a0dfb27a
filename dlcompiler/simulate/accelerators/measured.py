"""Programs of VTA with what real hardware took and computed for them: files of JSON lines.

A line has ``instructions`` (16 bytes each as hexadecimal digits), ``uops`` and where both lie in
memory, ``dram`` (what lies in memory at the start), and what was measured: ``outputs`` (SHA-256 of
ranges of memory afterwards), ``cycles_2019``, ``cycles_2021`` and ``trace_2019``, ``trace_2021``.
docs/VTA.md describes the fields. A file may be compressed by gzip.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from dlcompiler import input_files, json_text
from dlcompiler.errors import UserError
from dlcompiler.simulate.accelerators.functional.run import run_program
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.timing.run import TimedRun, time_program
from dlcompiler.simulate.accelerators.words import Encoding, encoding_of
from dlcompiler.target.accelerators.vta import VtaConfig, vta

YEARS = MappingProxyType({"A": "2019", "B": "2021"})
"""Profile -> the year in the names of what was measured for it."""
LONGEST_LINE = 1 << 26
"""Longest line that is read; [byte]."""
LARGEST_DRAM = 1 << 28
"""Largest memory of a program; [byte]."""
_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_ENGINES = ("load", "compute", "store")


@dataclass(frozen=True)
class Output:
    """A range of memory after a program."""

    address: int
    """Where it begins [byte]."""
    size: int
    """Its size [byte]."""
    sha256: str


@dataclass(frozen=True, eq=False)
class MeasuredProgram:
    """A program, its memory, and what was measured."""

    id: str
    program: InstructionProgram
    dram: npt.NDArray[np.uint8]
    outputs: tuple[Output, ...]
    cycles: int | None
    """What the hardware of the profile took; None if the file does not say it; [clock]."""
    trace: dict[str, list[list[int]]] | None
    """Engine -> start and end of each of its instructions on the hardware; [clock]."""


@dataclass(frozen=True)
class Comparison:
    """What a program does here beside what was measured; None: there is nothing to compare."""

    id: str
    cycles: int | None = None
    """Simulated; None if it could not be timed; [clock]."""
    measured_cycles: int | None = None
    outputs_equal: bool | None = None
    trace_equal: bool | None = None
    problem: str | None = None
    """What is wrong with the program, in one line."""

    @property
    def is_equal(self) -> bool:
        """Tell whether it ran, and nothing differs from what was measured."""
        if self.cycles is None or False in (self.outputs_equal, self.trace_equal):
            return False
        return self.measured_cycles in (None, self.cycles)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "id": self.id, "cycles": self.cycles, "outputs_equal": self.outputs_equal,
            "trace_equal": self.trace_equal, "problem": self.problem,
        }  # fmt: skip


def compare_file(path: str | Path, profile: str) -> Iterator[Comparison]:
    """Run all programs of a file, one after another.

    A line that cannot be read or run gives a comparison with its problem.

    Parameters
    ----------
    path : path
        A file of JSON lines, perhaps compressed by gzip.
    profile : {"A", "B"}
        The hardware: the RTL of 2019 or of 2021.

    Raises
    ------
    UserError
        The file cannot be read.
    """
    for number, line in _lines(path):
        if line is not None and not line.strip():
            continue
        name = f"line {number}"
        try:
            if line is None:
                raise UserError(f"read {name}", f"it is longer than {LONGEST_LINE} bytes")
            record = _record(line, name)
            name = _id(record, name)
            measured = read_program(record, profile)
        except UserError as error:
            yield Comparison(name, problem=_one_line(error))
            continue
        yield compare(measured)


def compare(measured: MeasuredProgram) -> Comparison:
    """Run a program, and compare it with what was measured."""
    problems, cycles, trace_equal = [], None, None
    try:
        timed = time_program(measured.program)
    except UserError as error:
        problems.append(_one_line(error))
    else:
        cycles = timed.cycles
        if measured.trace is not None:
            trace_equal = trace_of(timed) == measured.trace
    outputs_equal: bool | None = None
    try:
        run = run_program(measured.program, measured.dram, collect=True)
    except UserError as error:
        problems.append(_one_line(error))
        outputs_equal = False if measured.outputs else None
    else:
        problems += [_one_line(found) for found in run.findings]
        if measured.outputs:
            outputs_equal = all(_digest(run.dram, each) == each.sha256 for each in measured.outputs)
    return Comparison(
        measured.id, cycles, measured.cycles, outputs_equal, trace_equal,
        problems[0] if problems else None,
    )  # fmt: skip


def trace_of(timed: TimedRun) -> dict[str, list[list[int]]]:
    """Return the start and the end of each instruction, by engine."""
    names = [engine.name for engine in timed.program.accelerator.engines]
    return {
        name: np.stack([timed.start[timed.of(name)], timed.end[timed.of(name)]], axis=1).tolist()
        for name in names
    }


def _digest(dram: npt.NDArray[np.uint8], output: Output) -> str:
    return hashlib.sha256(dram[output.address : output.address + output.size].tobytes()).hexdigest()


def _one_line(error: UserError) -> str:
    kind = getattr(error, "kind", "")
    step = getattr(error, "step", None)
    where = f"instruction {step}: " if step is not None else f"{error.operation}: "
    got = f" (got {error.got})" if error.got is not None else ""
    text = f"{f'{kind}: ' if kind else ''}{where}{error.problem}{got}"
    return " ".join(text.split())[:500]


# Reading


def _lines(path: str | Path) -> Iterator[tuple[int, bytes | None]]:
    try:
        with input_files.open_regular(path) as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if not is_compressed:
                yield from input_files.lines(file, LONGEST_LINE)
                return
            with gzip.GzipFile(fileobj=file) as inside:
                yield from input_files.lines(cast(BinaryIO, inside), LONGEST_LINE)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            "read programs of VTA", "the file cannot be read", got=str(path), because=str(error)
        ) from error


def _record(line: bytes, name: str) -> dict[str, Any]:
    try:
        record = json_text.parse(line)
    except json_text.JsonError as error:
        raise UserError(f"read {name}", "it is no JSON", because=str(error)) from error
    if not isinstance(record, dict):
        raise UserError(f"read {name}", "it is no object", got=type(record).__name__)
    return record


def _id(record: dict[str, Any], otherwise: str) -> str:
    name = record.get("id")
    return name[:200] if isinstance(name, str) and name else otherwise


def read_program(record: dict[str, Any], profile: str) -> MeasuredProgram:
    """Return the program of a record.

    Raises
    ------
    UserError
        A field is missing, or its value cannot be used.
    """
    if profile not in YEARS:
        raise UserError("read a program of VTA", "no such profile", got=profile, expected="A or B")
    config = _config(record.get("config", {}), profile)
    encoding = _encoding(config)
    size = _integer(record, "dram_bytes", 0, LARGEST_DRAM)
    data = b"".join(_words(record.get("instructions")))
    steps = encoding.decode_all(data)
    address = _integer(record, "insn_address", 0, size - len(data))
    uops = _uops(record.get("uops", []))
    uop_address = _integer(record, "uop_address", 0, size - len(uops)) if uops else 0
    dram = np.zeros(size, dtype=np.uint8)
    dram[uop_address : uop_address + len(uops)] = np.frombuffer(uops, dtype=np.uint8)
    dram[address : address + len(data)] = np.frombuffer(data, dtype=np.uint8)
    for number, part in enumerate(_list(record, "dram")):
        _fill(dram, part, f"dram[{number}]")
    program = InstructionProgram(
        encoding.accelerator, steps, micro_op_address=uop_address, instruction_address=address,
        dram_bytes=size,
    )  # fmt: skip
    outputs = tuple(_output(each, size) for each in _list(record, "outputs"))
    year = YEARS[profile]
    cycles = record.get(f"cycles_{year}")
    if cycles is not None:
        cycles = _integer(record, f"cycles_{year}", 0, 1 << 62)
    trace = _trace(record.get(f"trace_{year}"))
    return MeasuredProgram(_id(record, "program"), program, dram, outputs, cycles, trace)


def _config(config: object, profile: str) -> VtaConfig:
    if not isinstance(config, dict):
        raise _wrong("config", config, "an object of LOG_ names")
    known = {name: value for name, value in config.items() if name != "LOG_BLOCK"}
    if "LOG_BLOCK" in config:
        known |= {"LOG_BLOCK_IN": config["LOG_BLOCK"], "LOG_BLOCK_OUT": config["LOG_BLOCK"]}
    fields = VtaConfig.__dataclass_fields__
    for name, value in known.items():
        if not name.startswith("LOG_") or name not in fields:
            raise _wrong("config", name, ", ".join(n for n in fields if n.startswith("LOG_")))
        if type(value) is not int or not 0 <= value <= _LARGEST_LOG:
            raise _wrong(name, value, f"a whole number, 0 to {_LARGEST_LOG}")
    return VtaConfig(profile=profile, **known)


_LARGEST_LOG = 24


@functools.lru_cache(maxsize=16)
def _encoding(config: VtaConfig) -> Encoding:
    """Return the encoding of a machine, the same for the same parameters."""
    return encoding_of(vta("vta-measured", config))


def _words(instructions: object) -> Iterator[bytes]:
    if not isinstance(instructions, list) or not instructions:
        raise _wrong("instructions", instructions, "a list of texts")
    for number, word in enumerate(instructions):
        if not isinstance(word, str) or len(word) != 32 or not word.isascii():
            raise _wrong(f"instructions[{number}]", word, "32 hexadecimal digits")
        try:
            yield bytes.fromhex(word)
        except ValueError as error:
            raise _wrong(f"instructions[{number}]", word, "32 hexadecimal digits") from error


def _uops(uops: object) -> bytes:
    if not isinstance(uops, list):
        raise _wrong("uops", uops, "a list of numbers")
    for number, uop in enumerate(uops):
        if type(uop) is not int or not 0 <= uop < 1 << 32:
            raise _wrong(f"uops[{number}]", uop, "a whole number of 32 bits")
    return np.array(uops, dtype="<u4").tobytes()


def _fill(dram: npt.NDArray[np.uint8], part: object, where: str) -> None:
    """Write what lies in a range of memory at the start."""
    if not isinstance(part, dict):
        raise _wrong(where, part, "an object")
    address = _integer(part, "address", 0, len(dram))
    if "fill" in part:
        count = _integer(part, "count", 0, len(dram) - address)
        dram[address : address + count] = _integer(part, "fill", 0, 255)
        return
    dtype = part.get("dtype")
    if dtype not in _DTYPES:
        raise _wrong(f"{where}.dtype", dtype, ", ".join(_DTYPES))
    facts = np.iinfo(dtype)
    count = _integer(part, "count", 0, (len(dram) - address) // np.dtype(dtype).itemsize)
    low = _integer(part, "low", int(facts.min), int(facts.max))
    high = _integer(part, "high", low + 1, int(facts.max) + 1)
    generator = np.random.default_rng(_integer(part, "seed", 0, 1 << 64))
    values = generator.integers(low, high, count, dtype=dtype)
    data = values.astype(np.dtype(dtype).newbyteorder("<")).view(np.uint8)
    dram[address : address + len(data)] = data


def _output(output: object, size: int) -> Output:
    if not isinstance(output, dict):
        raise _wrong("outputs", output, "an object")
    address = _integer(output, "address", 0, size)
    digest = output.get("sha256")
    if not isinstance(digest, str):
        raise _wrong("outputs.sha256", digest, "a digest")
    return Output(address, _integer(output, "bytes", 0, size - address), digest.lower())


def _trace(trace: object) -> dict[str, list[list[int]]] | None:
    if trace is None:
        return None
    if not isinstance(trace, dict) or not set(trace) <= set(_ENGINES):
        raise _wrong("trace", trace, f"an object of {', '.join(_ENGINES)}")
    return {name: trace.get(name, []) for name in _ENGINES}


def _list(record: dict[str, Any], name: str) -> list[object]:
    value = record.get(name, [])
    if not isinstance(value, list):
        raise _wrong(name, value, "a list")
    return value


def _integer(record: dict[str, Any], name: str, least: int, most: int) -> int:
    value = record.get(name)
    if type(value) is not int or not least <= value <= most:
        raise _wrong(name, value, f"a whole number, {least} to {most}")
    return value


def _wrong(name: str, got: object, expected: str) -> UserError:
    return UserError(
        "read a program of VTA", f"{name} cannot be used", got=repr(got)[:80], expected=expected
    )
