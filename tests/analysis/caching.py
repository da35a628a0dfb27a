"""Simulate a cache of lines with LRU replacement on the accesses of a program."""

from collections import OrderedDict

from dlcompiler import dtypes
from dlcompiler.ir import Store
from tests.analysis.touching import TooLongError, Touching

LINE_BYTES = 64


class Cache(Touching):
    """Runs a program: ``moved_bytes`` came in and went out.

    What is written without being read is not fetched; of buffers that the program allocates, only
    what has no room goes out.
    """

    def __init__(self, func, size, max_steps=2_000_000):
        self.held = OrderedDict()
        self.most = size // LINE_BYTES
        self.moved = 0
        super().__init__(func, max_steps)
        outside = set(func.buffers)
        self.moved += sum(dirty for (buffer, _), dirty in self.held.items() if buffer in outside)
        self.moved_bytes = self.moved * LINE_BYTES

    def loop(self, loop):
        for n in range(self.value(loop.extent)):
            self.values[loop.var] = n
            self.run(loop.body)

    def run(self, stmt):
        if not isinstance(stmt, Store):
            super().run(stmt)
            return
        self.left -= 1
        if self.left < 0:
            raise TooLongError
        for expr in (*stmt.indices, stmt.value):
            self.loads(expr)
        self.access(stmt.buffer, stmt.indices, True)

    def touch(self, buffer, indices):
        self.access(buffer, indices, False)

    def access(self, buffer, indices, is_store):
        at = zip(map(self.value, indices), buffer.static_strides, strict=True)
        place = sum(index * stride for index, stride in at) * dtypes.bytes_of(buffer.dtype)
        key = buffer, place // LINE_BYTES
        if key in self.held:
            self.held.move_to_end(key)
            self.held[key] |= is_store
            return
        self.moved += not is_store
        self.held[key] = is_store
        if len(self.held) > self.most:
            _, dirty = self.held.popitem(last=False)
            self.moved += dirty
