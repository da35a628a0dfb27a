"""What movements read and write, in terms that fit NumPy's arrays and PyTorch's tensors."""

from __future__ import annotations

from dlcompiler.bench.peers.job import Absent, Job

Shape = tuple[int, ...]
BLOCKS = ("depth_to_space", "space_to_depth")


def slices_of(job: Job) -> tuple[slice, ...]:
    """Return the part that ``strided_slice`` reads."""
    parts = zip(job.sizes["begin"], job.sizes["size"], strides_of(job), strict=True)
    return tuple(
        slice(first, last if last >= 0 else None, step)
        for first, last, step in ((b, b + n * step, step) for b, n, step in parts)
    )


def strides_of(job: Job) -> Shape:
    """Return the step along each dimension."""
    given = job.sizes["strides"]
    return tuple(given) if isinstance(given, list | tuple) else (given,) * len(job.sizes["begin"])


def reps_of(job: Job) -> tuple[Shape, Shape]:
    """Return the shape of ``data`` and how often it is repeated, of as many dimensions."""
    shape, reps = tuple(job.sizes["shape"]), tuple(job.sizes["reps"])
    ndim = max(len(shape), len(reps))
    return (1,) * (ndim - len(shape)) + shape, (1,) * (ndim - len(reps)) + reps


def blocks_of(job: Job) -> tuple[Shape, Shape, Shape]:
    """Return how blocks of images move: split shape, order of dimensions, shape of the result.

    The result, seen in the last shape, is the data in the first shape with its dimensions in the
    new order.

    Raises
    ------
    Absent
        The layout is not NCHW.
    """
    if job.layout != "NCHW":
        raise Absent(f"no movement of blocks in the layout {job.layout} is written here")
    n, c, h, w = job.sizes["shape"]
    block = job.sizes["block"]
    if job.family == "space_to_depth":
        split = (n, c, h // block, block, w // block, block)
        return split, (0, 3, 5, 1, 2, 4), (n, block, block, c, h // block, w // block)
    inner = c // block**2
    seen = (n, inner, h, block, w, block)
    if job.sizes["mode"] == "DCR":
        return (n, block, block, inner, h, w), (0, 3, 4, 1, 5, 2), seen
    return (n, inner, block, block, h, w), (0, 1, 4, 2, 5, 3), seen
