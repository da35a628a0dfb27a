"""Cases of attention and of recurrent cells."""

from tests.graph.operators.operator_cases import Given, case

_Q, _K = (2, 4, 3, 5), (2, 2, 6, 5)

ATTENTION = {
    "nn.scaled_dot_product_attention": [
        case((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2)), case(_Q, _K, _K, is_causal=True),
        case((3, 5), (4, 5), (4, 1), scale=0.5), case(_Q, _K, _K, Given((3, 6), "bool")),
        case(_Q, _K, _K, (2, 1, 1, 6)), case((1, 2, 3), (1, 0, 3), (1, 0, 2)),
        case(_Q, _Q, _Q, Given((4, 3, 1), "bool"), is_causal=True),
        case((0, 2, 3), *2 * [(0, 4, 3)]),
    ],
}  # fmt: skip
