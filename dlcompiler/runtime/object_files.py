"""Read the format, machine and undefined symbols of an object file from its bytes.

**Source:** System V ABI, gABI 4.1, chapter 4 (ELF); WebAssembly specification 2.0, section 5.5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dlcompiler.errors import InternalError

#: ELF's numbers of machines.
MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv"}

_SYMBOL_TABLE = 2
_IMPORTS = 2
_FUNCTION = 0


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """Format, machine and undefined symbols of an object file."""

    format: str
    """``"elf"`` or ``"wasm"``."""
    machine: str
    """``"aarch64"``, ``"wasm"``, …"""
    bits: int
    """Width of an address: 32 or 64."""
    needs: tuple[str, ...]
    """Undefined symbols: functions and data that the linker must find elsewhere."""


def read_facts(image: bytes) -> ObjectFacts | None:
    """Return the facts of an object file; None for a format that is not read here.

    Raises
    ------
    InternalError
        The file is damaged: LLVM wrote it a moment ago.
    """
    try:
        if image.startswith(b"\x7fELF"):
            return _elf(image)
        if image.startswith(b"\0asm"):
            return ObjectFacts("wasm", "wasm", 32, tuple(sorted(set(_wasm_imports(image)))))
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise InternalError("read an object file", "it is damaged", got=error) from error
    return None


# -- ELF ------------------------------------------------------------------------------------------


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


def _elf(image: bytes) -> ObjectFacts:
    is_wide, order = image[4] == 2, "<" if image[5] == 1 else ">"
    (machine,) = struct.unpack_from(f"{order}H", image, 18)
    sections = list(_sections(image, order, is_wide))
    needs = set[str]()
    for section in sections:
        if section.kind == _SYMBOL_TABLE:
            names = sections[section.link]
            needs.update(_undefined(image, order, is_wide, section, names))
    name = MACHINES.get(machine, f"machine {machine}")
    return ObjectFacts("elf", name, 64 if is_wide else 32, tuple(sorted(needs - {""})))


def _sections(image: bytes, order: str, is_wide: bool) -> Iterator[_Section]:
    (start,) = struct.unpack_from(f"{order}{'Q' if is_wide else 'I'}", image, 40 if is_wide else 32)
    size, count = struct.unpack_from(f"{order}HH", image, 58 if is_wide else 46)
    layout = f"{order}IIQQQQI" if is_wide else f"{order}IIIIIII"
    for number in range(count):
        fields = struct.unpack_from(layout, image, start + number * size)
        yield _Section(fields[1], fields[4], fields[5], fields[6])


def _undefined(
    image: bytes, order: str, is_wide: bool, table: _Section, names: _Section
) -> Iterator[str]:
    """Yield the names of symbols that no section of the file defines."""
    size = 24 if is_wide else 16
    for place in range(table.offset, table.offset + table.size, size):
        (name,) = struct.unpack_from(f"{order}I", image, place)
        (section,) = struct.unpack_from(f"{order}H", image, place + (6 if is_wide else 14))
        if section == 0:
            start = names.offset + name
            yield image[start : image.index(b"\0", start)].decode()


# -- WebAssembly ----------------------------------------------------------------------------------


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        """Read an unsigned LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        self.at += size
        return piece

    def limits(self) -> None:
        flags = self.number()
        self.number()
        if flags & 1:
            self.number()


def _wasm_imports(image: bytes) -> Iterator[str]:
    """Yield the functions that a module imports; memory and table come from the linker."""
    module = _Reader(image[8:])
    while module.at < len(module.data):
        section, size = module.number(), module.number()
        body = _Reader(module.take(size))
        if section != _IMPORTS:
            continue
        for _ in range(body.number()):
            body.take(body.number())  # the module's name
            name, kind = body.take(body.number()).decode(), body.number()
            if kind == _FUNCTION:
                yield name
            _skip_import(body, kind)


def _skip_import(body: _Reader, kind: int) -> None:
    """Read past the description of an import."""
    match kind:
        case 0:  # a function: its type
            body.number()
        case 1:  # a table: its element type and limits
            body.number()
            body.limits()
        case 2:  # a memory
            body.limits()
        case 3 | 4:  # a global or a tag
            body.take(1)
            body.number()
        case _:
            raise ValueError(f"an import of kind {kind}")
