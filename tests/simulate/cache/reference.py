"""A hierarchy of LRU caches in a few lines, which the compiled one must equal."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.simulate.cache.model import sets_of
from dlcompiler.simulate.interpreter import interpret


class Caches:
    """The lines of each set, the latest first; `misses` of each level."""

    def __init__(self, levels):
        self.levels = levels
        self.sets = [[[] for _ in range(sets_of(level))] for level in levels]
        self.dirty = [set() for _ in levels]
        self.misses = [0] * len(levels)
        self.written = [0] * len(levels)

    def access(self, address, is_write):
        """Look for the line of an address, nearest level first; return how many missed."""
        for n, level in enumerate(self.levels):
            line = address // level.line
            own = self.sets[n][line % len(self.sets[n])]
            is_hit = line in own
            if is_hit:
                own.remove(line)
            own.insert(0, line)
            if is_write and n == 0:
                self.dirty[0].add(line)
            if is_hit:
                return n
            self.misses[n] += 1
            if len(own) > level.ways:
                self.leave(n, own.pop())
        return len(self.levels)

    def leave(self, n, line):
        """A line leaves a level; if it was written, a farther level notes it."""
        if line not in self.dirty[n]:
            return
        self.dirty[n].discard(line)
        address = line * self.levels[n].line
        for farther in range(n, len(self.levels)):
            self.written[farther] += 1
            if farther + 1 < len(self.levels):
                line = address // self.levels[farther + 1].line
                if any(line in own for own in self.sets[farther + 1]):
                    self.dirty[farther + 1].add(line)
                    return

    def written_in_all(self):
        """Return the lines that each level has written back if all are flushed at the end."""
        found, passing = [], set()
        for n, level in enumerate(self.levels):
            passing = {address // level.line * level.line for address in passing}
            passing |= {line * level.line for line in self.dirty[n]}
            found.append(self.written[n] + len(passing))
        return found


class Watch:
    """Observer of the interpreter that writes down each access: ``(buffer, offset, is_write)``."""

    def __init__(self):
        self.trace = []

    def access(self, buffer, offsets, task, *, is_write):
        self.trace += [(buffer, offset, is_write) for offset in offsets]

    def synchronise(self, site):
        pass


def trace_of(func, arrays):
    """Return the accesses of a program, as the interpreter makes them."""
    watch = Watch()
    interpret(func, arrays, observer=watch)
    return watch.trace


def replayed(trace, placements, levels):
    """Return the caches after a trace, and for each access how many levels missed."""
    caches, found = Caches(levels), []
    for buffer, offset, is_write in trace:
        address = placements[buffer].base + offset * dtypes.bytes_of(buffer.dtype)
        found.append(caches.access(address, is_write))
    return caches, found
