"""Programs of accelerators in files, with what a runtime of the real machine needs.

A file has, one after another:

1. a line ``dlcompiler accelerator program 1`` and the SHA-256 of all that follows;
2. a line with the number of bytes of the description;
3. the description, a JSON object: ``machine`` (its name, parameters and the fields of its
   instructions), ``instructions`` and ``micro_ops`` (count and address in DRAM), ``buffers`` (name,
   address, shape, dtype, role), ``dram_bytes``;
4. the words of the instructions, as they lie in memory;
5. the words of the micro-ops, 4 bytes each, the lowest byte first.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes, input_files, json_text
from dlcompiler.errors import UserError
from dlcompiler.output_files import write_file
from dlcompiler.simulate.accelerators.functional.micro_ops import micro_op_bits, unpacked
from dlcompiler.simulate.accelerators.images import micro_op_words, problem_of_places
from dlcompiler.simulate.accelerators.program import DramBuffer, InstructionProgram
from dlcompiler.simulate.accelerators.words import encoding_of
from dlcompiler.target.accelerators import Accelerator
from dlcompiler.target.accelerators.vta import VtaConfig, config_of, vta

MAGIC = b"dlcompiler accelerator program 1 "
LARGEST_DRAM = 1 << 32
"""Largest memory that a program may name; [byte]."""
_DIGEST = 64
_DTYPES = tuple(name for name in dtypes.SCALARS if name not in ("index", "bfloat16"))
_ROLES = ("input", "output", "temporary", "micro-ops", "zeros")


def save_program(program: InstructionProgram, path: str | os.PathLike[str]) -> None:
    """Write a program into a file, which is replaced if it exists.

    Parameters
    ----------
    program : InstructionProgram
        The program. Where its instructions come from is not written.
    path : path
        The file.

    Raises
    ------
    UserError
        The file cannot be written, or an instruction does not fit its word.
    """
    words = encoding_of(program.accelerator).encode_all(program.steps)
    micro_ops = micro_op_words(program.accelerator, program.micro_ops).astype("<u4").tobytes()
    described = {
        "machine": description(program.accelerator),
        "instructions": {"count": len(program.steps), "address": program.instruction_address},
        "micro_ops": {"count": len(program.micro_ops), "address": program.micro_op_address},
        "buffers": [
            {
                "name": each.name, "address": each.address, "shape": list(each.shape),
                "dtype": each.dtype, "role": each.role,
            }
            for each in program.buffers
        ],
        "dram_bytes": program.dram_bytes,
        "is_partial": program.is_partial,
    }  # fmt: skip
    text = json.dumps(described).encode()
    body = b"%d\n%b%b%b" % (len(text), text, words, micro_ops)
    digest = hashlib.sha256(body).hexdigest().encode()
    write_file(path, MAGIC + digest + b"\n" + body)


def load_program(
    path: str | os.PathLike[str], accelerator: Accelerator | None = None
) -> InstructionProgram:
    """Read a program that `save_program` wrote.

    Parameters
    ----------
    path : path
        The file.
    accelerator : Accelerator, optional
        Its machine; it is needed for one that is no VTA.

    Raises
    ------
    UserError
        The file cannot be read, is damaged, or is for another machine.
    """
    try:
        data = input_files.read_regular(Path(path))
    except OSError as error:
        raise _error(path, "the file cannot be read", because=str(error)) from error
    end = len(MAGIC) + _DIGEST
    if not data.startswith(MAGIC) or data[end : end + 1] != b"\n":
        raise _error(path, "it is no program of an accelerator")
    body = data[end + 1 :]
    if hashlib.sha256(body).hexdigest().encode() != data[len(MAGIC) : end]:
        raise _error(path, "the file is damaged: its digest differs")
    length, _, rest = body.partition(b"\n")
    if not length.isdigit() or len(length) > 9 or int(length) > len(rest):
        raise _error(path, "the size of its description is wrong")
    try:
        described = json_text.parse(rest[: int(length)])
        return _Document(path, described).program(rest[int(length) :], accelerator)
    except json_text.JsonError as error:
        raise _error(path, "its description is no JSON", because=str(error)) from error


def description(accelerator: Accelerator) -> dict[str, Any]:
    """Return an accelerator as JSON: what the words of its programs mean."""
    config = config_of(accelerator)
    assert accelerator.queues is not None
    return {
        "name": accelerator.name,
        "vta": None if config is None else config.to_json(),
        "word_bits": accelerator.word_bits,
        "memories": [
            {"name": m.name, "shape": list(m.shape), "dtype": m.dtype, "depth": m.depth}
            for m in accelerator.memories
        ],
        "queues": [queue.name for queue in accelerator.queues],
        "instructions": [
            {
                "name": each.name, "engine": each.engine, "kind": each.kind,
                "fixed": dict(each.fixed),
                "fields": [[f.name, f.offset, f.bits, f.signed] for f in each.fields],
            }
            for each in accelerator.instructions
        ],
    }  # fmt: skip


class _Document:
    """The description of a program, with the checks of its values."""

    def __init__(self, path: str | os.PathLike[str], described: object) -> None:
        self._path = path
        self._described = self._object(described, "the description")

    def program(self, data: bytes, accelerator: Accelerator | None) -> InstructionProgram:
        machine = self._object(self._described.get("machine"), "machine")
        accelerator = self._accelerator(machine, accelerator)
        instructions = self._object(self._described.get("instructions"), "instructions")
        micro_ops = self._object(self._described.get("micro_ops"), "micro_ops")
        size = accelerator.word_bits // 8 * self._integer(instructions, "count")
        count = self._integer(micro_ops, "count")
        if size + 4 * count != len(data):
            raise _error(
                self._path, "it has not as many bytes as it says", got=str(len(data)),
                expected=str(size + 4 * count),
            )  # fmt: skip
        steps = encoding_of(accelerator).decode_all(data[:size])
        words = np.frombuffer(data[size:], dtype="<u4").astype(np.int64)
        found = InstructionProgram(
            accelerator, steps, self._buffers(), self._micro_ops(accelerator, words),
            self._integer(micro_ops, "address"), self._integer(instructions, "address"),
            self._integer(self._described, "dram_bytes"),
            self._described.get("is_partial", False) is not False,
        )  # fmt: skip
        if problem := problem_of_places(found):
            raise _error(self._path, problem, got=f"{found.dram_bytes} bytes of DRAM")
        return found

    def _accelerator(self, machine: Mapping[str, Any], given: Accelerator | None) -> Accelerator:
        found = given
        if found is None:
            config = machine.get("vta")
            name = machine.get("name")
            if not isinstance(config, dict) or not isinstance(name, str):
                raise _error(
                    self._path, "its machine is no VTA", got=repr(name)[:80],
                    hint="load_program(path, accelerator) gives the machine",
                )  # fmt: skip
            try:
                found = vta(name, VtaConfig(**config))
            except TypeError as error:
                raise _error(
                    self._path, "the parameters of its VTA cannot be used", because=str(error)
                ) from error
        if json.loads(json.dumps(description(found))) != machine:
            raise _error(
                self._path, "it is for another machine", got=repr(machine.get("name"))[:80],
                expected=found.name, because="names, sizes or fields of instructions differ",
            )  # fmt: skip
        return found

    def _micro_ops(
        self, accelerator: Accelerator, words: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        memory = next((i.micro_ops for i in accelerator.instructions if i.micro_ops), "")
        if not len(words) or not memory:
            return np.zeros((0, 3), dtype=np.int64)
        return unpacked(words, micro_op_bits(accelerator, memory))

    def _buffers(self) -> tuple[DramBuffer, ...]:
        listed = self._described.get("buffers")
        if not isinstance(listed, list):
            raise _error(self._path, "buffers is no list", got=repr(listed)[:80])
        return tuple(self._buffer(self._object(each, "a buffer")) for each in listed)

    def _buffer(self, each: Mapping[str, Any]) -> DramBuffer:
        name, dtype, role = (each.get(key) for key in ("name", "dtype", "role"))
        shape = each.get("shape")
        is_named = isinstance(name, str) and role in _ROLES
        if not is_named or not isinstance(dtype, str) or dtype not in _DTYPES:
            raise _error(self._path, "a buffer cannot be used", got=repr(each)[:80])
        if not isinstance(shape, list) or not all(
            type(n) is int and 0 < n < 1 << 32 for n in shape
        ):
            raise _error(self._path, "the shape of a buffer cannot be used", got=repr(shape)[:80])
        return DramBuffer(str(name), self._integer(each, "address"), tuple(shape), dtype, str(role))

    def _object(self, value: object, name: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise _error(self._path, f"{name} is no object", got=repr(value)[:80])
        return value

    def _integer(self, described: Mapping[str, Any], name: str) -> int:
        value = described.get(name)
        if type(value) is not int or not 0 <= value <= LARGEST_DRAM:
            raise _error(self._path, f"{name} is no size", got=repr(value)[:80])
        return value


def _error(path: str | os.PathLike[str], problem: str, **parts: str) -> UserError:
    return UserError(f"load the program in {os.fspath(path)}", problem, **parts)
