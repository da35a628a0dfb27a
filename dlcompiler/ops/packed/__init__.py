"""Operators of int8 networks on tensors in blocks, as accelerators with matrix units take them.

The channels of a tensor lie in blocks: data is ``(n, c/16, h, w, 1, 16)``, weights are
``(o/16, c/16, kh, kw, 16, 16)`` with 16 outputs of 16 inputs side by side. Sums are int32. A tail
of elementwise operations makes int8 of them: bias, shift, residual, clip. Blocks of other sizes are
a parameter of a workload.

All operators but the largest elements of windows are convolutions: `extents.Extents` says which,
`sums` defines them, `reference` computes them by NumPy, and `schedule` schedules them.
"""
