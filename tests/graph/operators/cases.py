"""All cases of the operators, by name."""

from tests.graph.operators import elementwise_cases as elementwise
from tests.graph.operators import image_cases as images
from tests.graph.operators import indexing_cases as indexing
from tests.graph.operators import quantized_cases as quantized
from tests.graph.operators import rearranging_cases as rearranging
from tests.graph.operators import sequence_cases as sequence

CASES = {
    **elementwise.ELEMENTWISE,
    **elementwise.VIEWS,
    **indexing.CREATION,
    **indexing.SLICING,
    **indexing.INDEXING,
    **indexing.SORTING,
    **rearranging.REARRANGING,
    **rearranging.RESIZE,
    **rearranging.CONTRACTION,
    **sequence.ATTENTION,
    **sequence.RECURRENT,
    **sequence.LOSSES,
    **rearranging.SAMPLING,
    **rearranging.ANNOTATIONS,
    **images.PRODUCTS,
    **images.CONVOLUTIONS,
    **quantized.QUANTIZED,
    **images.POOLING,
    **images.NORMS,
    **images.REDUCTIONS,
}
"""Name of an operator -> its cases."""
