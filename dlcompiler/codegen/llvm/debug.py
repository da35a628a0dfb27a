"""Write debug information: line tables that map machine code to the printed loop IR."""

from __future__ import annotations

from dlcompiler.codegen.llvm.types import identifier


class DebugInfo:
    """The metadata of one module.

    The source file is the text that `dlcompiler.ir.print_func` returns. Line 0 is for code that
    belongs to no single line, as in DWARF.
    """

    _FILE, _UNIT, _TYPE = 0, 1, 2

    def __init__(self, function_name: str, emission: str = "LineTablesOnly") -> None:
        self.file_name = _quoted(f"{function_name}.loop-ir")
        self._nodes = [
            f'!DIFile(filename: "{self.file_name}", directory: "")',
            f"distinct !DICompileUnit(language: DW_LANG_C99, file: !{self._FILE}, "
            'producer: "dlcompiler", isOptimized: true, runtimeVersion: 0, '
            f"emissionKind: {emission})",
            "!DISubroutineType(types: !{})",
        ]
        self._locations: dict[tuple[int, int], int] = {}
        self._notes: dict[str, int] = {}

    def subprogram(self, symbol: str, line: int) -> int:
        """Add a function that starts at `line` and return its number."""
        name = _quoted(symbol)
        return self._add(
            f'distinct !DISubprogram(name: "{name}", linkageName: "{name}", scope: !{self._FILE}, '
            f"file: !{self._FILE}, line: {line}, type: !{self._TYPE}, scopeLine: {line}, "
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self._UNIT})"
        )

    def location(self, scope: int, line: int) -> int:
        """Return the number of the location of `line` in the function `scope`."""
        number = self._locations.get((scope, line))
        if number is None:
            number = self._add(f"!DILocation(line: {line}, scope: !{scope})")
            self._locations[scope, line] = number
        return number

    def note(self, node: str) -> int:
        """Return the number of a metadata node, added at its first use."""
        if node not in self._notes:
            self._notes[node] = self._add(node)
        return self._notes[node]

    def loop(self, hint: str) -> int:
        """Return the number of a new node for a loop, with a hint such as ``llvm.loop.…``."""
        of_hint = self.note(f'!{{!"{hint}"}}')
        return self._add(f"distinct !{{!{len(self._nodes)}, !{of_hint}}}")

    def _add(self, node: str) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def finished(self) -> list[str]:
        """Return the lines of metadata that end the module."""
        flags = len(self._nodes)
        return [
            f"!llvm.dbg.cu = !{{!{self._UNIT}}}",
            f"!llvm.module.flags = !{{!{flags}, !{flags + 1}}}",
            *(f"!{number} = {node}" for number, node in enumerate(self._nodes)),
            f'!{flags} = !{{i32 2, !"Debug Info Version", i32 3}}',
            f'!{flags + 1} = !{{i32 7, !"Dwarf Version", i32 4}}',
        ]


def _quoted(name: str) -> str:
    return identifier(name).strip('"')
