"""A simulated hierarchy of set-associative caches, driven by the accesses of a lowered program.

- `tracing`: the program that makes only the accesses, in order, each by a call;
- `inputs`: arrays on which indices and conditions depend;
- `sampling`: the first iterations of a program that makes too many accesses;
- `model`: the caches, as LLVM IR (``*.ll``), and the array that holds their state;
- `result`: hits and misses by loop, tensor and level.

Nothing here generates code or runs it: `dlcompiler.pipeline.cache_simulation` does.
"""

from dlcompiler.simulate.cache.result import CacheSimulation, Counts
from dlcompiler.simulate.cache.sampling import Sample
from dlcompiler.simulate.cache.tracing import Site

__all__ = ["CacheSimulation", "Counts", "Sample", "Site"]
