"""Views of memory on a machine with caches.

`footprints` counts the elements that the loops of a state touch. `metrics` computes from them the
numbers by which states are compared. `scopes` places the buffers in the levels of memory, and
`scene` draws that. `caches` compares simulated misses with predicted ones, and `cache_scene` draws
both. The memories of a GPU are in `dlcompiler.views.device.memory`.
"""
