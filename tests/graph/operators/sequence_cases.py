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

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def _weights(kind, size, data, biases):
    gates = _GATES[kind]
    return [
        Given((gates * size, data), low=-0.5, high=0.5),
        Given((gates * size, size), low=-0.5, high=0.5),
        *[(gates * size,)] * biases,
    ]


def _calls(kind, lead):
    more = {"lstm": [{}, {}], "gru": [{}, {"reset_after": False}],
            "rnn": [{}, {"activation": "relu"}]}[kind]  # fmt: skip
    states = 2 if kind == "lstm" else 1
    return [
        case((*lead, 2, 3), *[(2, 4)] * states, *_weights(kind, 4, 3, biases), **attrs)
        for biases in (0, 1, 2)
        for attrs in more[biases == 0 :]
    ] + [case((*lead, 1, 1), *[(1, 1)] * states, *_weights(kind, 1, 1, 2), **more[0])]


RECURRENT = {
    **{f"nn.{kind}_cell": _calls(kind, ()) for kind in _GATES},
    **{f"nn.{kind}": [*_calls(kind, (2,)), *_calls(kind, (0,))[:1]] for kind in _GATES},
}

_CLASS = Given((3,), "int64", 0, 5)
LOSSES = {
    "nn.nll_loss": [
        case((3, 5), _CLASS, Given((5,), low=0.5)), case((5,), Given((), "int32", 0, 5), (5,)),
        case((2, 4, 3), Given((2, 3), "int32", 0, 4), Given((4,), low=0.5), ignore_index=2),
        case((3, 5), _CLASS, (5,), reduction="sum"), case((0, 5), Given((0,), "int32"), (5,),
                                                          reduction="none"),
        case((3, 5), _CLASS, (5,), reduction="none", ignore_index=1),
    ],
    "nn.cross_entropy": [
        case(Given((3, 4), low=0.1), (3, 4)), case(Given((1, 1), low=0.1), (1, 1)),
    ],
    "nn.cross_entropy_with_logits": [case((3, 4), (3, 4)), case((1, 5), (1, 5))],
}  # fmt: skip
