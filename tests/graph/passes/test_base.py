"""Settings of passes are checked before the first one runs."""

import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import op, optimize, var
from dlcompiler.graph.ir import Module
from dlcompiler.graph.passes import FusionOptions, PassContext, fuse_ops

MODULE = Module.from_expr(op.exp(op.exp(var("x", (2,)))))


@pytest.mark.parametrize(
    ("context", "words"),
    [
        *(
            (PassContext(level), "no such optimisation level")
            for level in ("3", None, True, 2.0, -1, 5, 10**400)
        ),
        (PassContext(3, disabled_pass=("fuse_op",)), "a pass that is not there"),
        (PassContext(3, required_pass=("FuseOps",)), "a pass that is not there"),
        (PassContext(3, config={"fuse_op": {}}), "a pass that is not there"),
        (PassContext(3, config={"fuse_ops": {"depth": 1}}), "wrong options of fuse_ops"),
        (PassContext(3, config={"fuse_ops": 3}), "wrong options of fuse_ops"),
    ],
)
def test_a_wrong_context_is_refused(context, words):
    with pytest.raises(GraphError, match=words):
        optimize(MODULE, context=context)


@pytest.mark.parametrize("depth", [0, -1, 2.5, "a", None])
def test_a_wrong_depth_of_fusion_is_refused(depth):
    with pytest.raises(GraphError, match="max_depth is no positive integer"):
        fuse_ops(MODULE, max_depth=depth)


@pytest.mark.parametrize(
    "options", [{"max_live": 0}, {"max_row_bytes": float("nan")}, {"rows": "yes"}]
)
def test_wrong_options_of_fusion_are_refused(options):
    with pytest.raises(GraphError, match="options of fusion"):
        FusionOptions(**options)
    with pytest.raises(GraphError, match="not options of fusion"):
        fuse_ops(MODULE, options=options)
