"""The operators of matrix products: matmul, dense and batch_matmul."""

from dlcompiler.ops.base import DeviceSchedule, Operator, by_device
from dlcompiler.ops.gemm.default import default_config, packed_width
from dlcompiler.ops.gemm.definition import batch_matmul, define, dense, matmul
from dlcompiler.ops.gemm.fours import define_for_cpu
from dlcompiler.ops.gemm.product import (
    batch_matmul_workload,
    dense_workload,
    matmul_workload,
)
from dlcompiler.ops.gemm.reference import prepack, reference
from dlcompiler.ops.gemm.schedule import schedule
from dlcompiler.ops.gemm.space import space

__all__ = ["batch_matmul", "dense", "matmul", "packed_width"]

MATMUL, DENSE, BATCH_MATMUL = (
    Operator(
        name,
        workload,
        define,
        reference,
        by_device(
            {
                "cpu": DeviceSchedule(space, default_config, schedule, define=define_for_cpu),
                "gpu": "dlcompiler.ops.gpu.products:GPU",
            }
        ),
        prepack,
    )
    for name, workload in (
        ("matmul", matmul_workload),
        ("dense", dense_workload),
        ("batch_matmul", batch_matmul_workload),
    )
)
