"""The operator of a workload, and the parameters that the workload leaves out."""

from __future__ import annotations

import inspect

from dlcompiler.errors import TuningError
from dlcompiler.ops import Operator, operator
from dlcompiler.space import Workload


def completed(item: Operator, workload: Workload) -> Workload:
    """Return a workload with the default values of the parameters that were left out.

    Operators take some parameters together, such as the kernel of a convolution, and list them one
    by one in the workload. A workload that lists them was made by the operator: it is complete.
    """
    given = workload.as_dict()
    known = inspect.signature(item.make_workload).parameters
    return item.workload(**given) if all(name in known for name in given) else workload


def operator_of(workload: Workload, template: Operator | None) -> Operator:
    """Return the operator of a workload: `template` if it is given, otherwise the library's."""
    if template is None:
        return operator(workload.op)
    if template.name != workload.op:
        raise TuningError(
            "tune", "the workload is not one of the template", got=workload.op,
            expected=template.name, hint=f"{template.name}.workload(…)",
        )  # fmt: skip
    return template
