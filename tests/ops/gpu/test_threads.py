"""The helpers that bind loops to the threads of a GPU."""

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.ops.gpu.threads import Chip, bind, copy_together, share_elements
from dlcompiler.target import names, resolve

GPU = resolve("a100")


def doubled(n, m):
    A = te.placeholder((n, m), name="A")
    C = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="C")
    return A, C, te.create_schedule(C.op)


def test_elements_are_shared_by_blocks_and_threads():
    A, C, s = doubled(64, 1000)
    share_elements(s[C], s[C].op.axis, 128, vector=4, steps=2)
    assert "threadIdx.x(128)" in str(dlc.lower(s, [A, C], target=GPU))
    dlc.verify(s, [A, C], target=GPU)


def test_a_block_copies_a_tile():
    A, C, s = doubled(40, 72)
    AA = s.cache_read(A, "shared", [C])
    rows, columns, row, column = s[C].tile(*C.op.axis, 16, 64)
    column, x = s[C].split(column, 32)
    row, y = s[C].split(row, 8)
    s[C].reorder(rows, columns, y, x, row, column)
    bind(s[C], {"blockIdx.y": rows, "blockIdx.x": columns, "threadIdx.y": y, "threadIdx.x": x})
    s[AA].compute_at(s[C], columns)
    copy_together(s[AA], {"threadIdx.y": 8, "threadIdx.x": 32}, vector=4)
    dlc.verify(s, [A, C], target=GPU)


def test_every_gpu_has_the_numbers_of_a_default_config():
    for name in names():
        target = resolve(name)
        if target.device == "gpu":
            chip = Chip.of(target)
            assert chip.lanes("float32") == 4
            assert chip.warp <= chip.most_threads <= chip.threads_at_once
            assert chip.shared_bytes >= 32 * 1024
