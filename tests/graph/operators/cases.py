"""All cases of the operators, by name."""

from tests.graph.operators import elementwise_cases as elementwise
from tests.graph.operators import image_cases as images
from tests.graph.operators import indexing_cases as indexing

CASES = {
    **elementwise.ELEMENTWISE,
    **elementwise.VIEWS,
    **indexing.CREATION,
    **indexing.SLICING,
    **indexing.INDEXING,
    **indexing.SORTING,
    **images.PRODUCTS,
    **images.CONVOLUTIONS,
    **images.POOLING,
    **images.NORMS,
    **images.REDUCTIONS,
}
"""Name of an operator -> its cases."""
