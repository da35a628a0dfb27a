"""A helper module with the names that the notebooks of "Dive into Deep Learning Compiler" import.

This is our own implementation. Where the book's module compares with MXNet, this one compares with
NumPy: the functions whose names end in ``_mxnet`` measure NumPy.
"""

from dlcompiler.compat.d2ltvm.baselines import (
    batch_norm_mxnet,
    bench_bn_mxnet,
    bench_conv_mxnet,
    bench_depthwise_conv_mxnet,
    bench_matmul_mxnet,
    bench_pooling_mxnet,
    bn_timer_mxnet,
    conv_mxnet,
    conv_timer_mxnet,
    depthwise_conv_mxnet,
    depthwise_conv_timer_mxnet,
    get_bn_data_mxnet,
    get_conv_data_mxnet,
    get_pool_data_mxnet,
    matmul_timer_mxnet,
    np_matmul_timer,
    pool_mxnet,
    pooling_timer_mxnet,
)
from dlcompiler.compat.d2ltvm.benchmarks import (
    bench_bcast_add_tvm,
    bench_bn_tvm,
    bench_conv_tvm,
    bench_depthwise_conv_tvm,
    bench_matmul_tvm,
    bench_pooling_tvm,
    bench_vector_add_tvm,
    bench_workload,
    conv_gflop,
    depthwise_conv_gflop,
)
from dlcompiler.compat.d2ltvm.data import (
    get_abc,
    get_bcast_data,
    get_bn_data,
    get_conv_data,
    image_preprocessing,
)
from dlcompiler.compat.d2ltvm.expressions import (
    batch_norm,
    broadcast_add,
    conv,
    conv_out_size,
    depthwise_conv,
    matmul,
    padding,
    pool,
    split_axis,
    vector_add,
)
from dlcompiler.compat.d2ltvm.plot import plot, plot_gflops, use_svg_display
from dlcompiler.compat.missing import reporter, watch_imports

watch_imports()

__getattr__ = reporter(__name__)
__all__ = [
    "batch_norm",
    "batch_norm_mxnet",
    "bench_bcast_add_tvm",
    "bench_bn_mxnet",
    "bench_bn_tvm",
    "bench_conv_mxnet",
    "bench_conv_tvm",
    "bench_depthwise_conv_mxnet",
    "bench_depthwise_conv_tvm",
    "bench_matmul_mxnet",
    "bench_matmul_tvm",
    "bench_pooling_mxnet",
    "bench_pooling_tvm",
    "bench_vector_add_tvm",
    "bench_workload",
    "bn_timer_mxnet",
    "broadcast_add",
    "conv",
    "conv_gflop",
    "conv_mxnet",
    "conv_out_size",
    "conv_timer_mxnet",
    "depthwise_conv",
    "depthwise_conv_gflop",
    "depthwise_conv_mxnet",
    "depthwise_conv_timer_mxnet",
    "get_abc",
    "get_bcast_data",
    "get_bn_data",
    "get_bn_data_mxnet",
    "get_conv_data",
    "get_conv_data_mxnet",
    "get_pool_data_mxnet",
    "image_preprocessing",
    "matmul",
    "matmul_timer_mxnet",
    "np_matmul_timer",
    "padding",
    "plot",
    "plot_gflops",
    "pool",
    "pool_mxnet",
    "pooling_timer_mxnet",
    "split_axis",
    "use_svg_display",
    "vector_add",
]
