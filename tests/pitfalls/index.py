"""Which of the known pitfalls have a test here, and why the others have none.

TVM's issues stand in the docstrings of the tests; Halide's error tests are listed here by name.
"""

HALIDE_TESTED = (
    "bad_bound",
    "bad_compute_at",
    "bad_rvar_order",
    "buffer_larger_than_two_gigs",
    "fuse_same_var",
    "overflow_during_constant_folding",
    "race_condition",
    "rdom_where_races",
    "reduction_bounds",
    "reused_args",
    "rfactor_inner_dim_non_commutative",
    "round_up_and_blend_race",
    "rvar_fuse_reorder",
    "shift_inwards_and_blend_race",
    "split_inner_wrong_tail_strategy",
    "split_same_var_names",
    "undefined_func_compile",
    "undefined_loop_level",
    "undefined_pipeline_compile",
    "undefined_rdom_dimension",
    "vectorize_dynamic",
    "vectorize_too_little",
    "vectorize_too_much",
)

HALIDE_NOT_HERE = {
    "bad_fold": "there is no storage folding: the buffer of an attached stage holds its region",
    "bad_store_at": "there is no store_at: a stage is stored where it is computed",
    "store_at_without_compute_at": "there is no store_at",
    "five_d_gpu_buffer": "there is no GPU target yet",
    "thread_id_outside_block_id": "there is no GPU target yet",
}
