"""All cases of the operators, by name."""

from tests.graph.operators import elementwise_cases as elementwise
from tests.graph.operators import image_cases as images

CASES = {
    **elementwise.ELEMENTWISE,
    **elementwise.VIEWS,
    **images.PRODUCTS,
    **images.CONVOLUTIONS,
    **images.POOLING,
    **images.NORMS,
    **images.REDUCTIONS,
}
"""Name of an operator -> its cases."""
