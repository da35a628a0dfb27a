"""Classic TVM's ``tvm.relay.analysis``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.analysis import (
    all_vars,
    bound_vars,
    count_layers,
    free_type_vars,
    free_vars,
    list_op_freqs,
    list_op_names,
    post_order_visit,
    well_formed,
)

__getattr__ = reporter(__name__)
__all__ = [
    "all_vars",
    "bound_vars",
    "count_layers",
    "free_type_vars",
    "free_vars",
    "list_op_freqs",
    "list_op_names",
    "post_order_visit",
    "well_formed",
]
