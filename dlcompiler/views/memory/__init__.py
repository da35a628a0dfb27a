"""Views of memory on a machine with caches.

`footprints` counts what the loops of a state touch, `metrics` makes numbers of it that states are
compared by. `scopes` places the buffers in the levels of memory, and `scene` draws that. The
memories of a GPU are in `dlcompiler.views.device.memory`.
"""
