"""Run a function kernel by kernel; all values between kernels lie in one arena, as planned."""

from dataclasses import replace

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph import evaluate, infer_types, plan_memory, types_of
from dlcompiler.graph.ir import Call, Constant, Tuple, TupleGetItem, Var
from dlcompiler.graph.memory.values import program_of

UNUSED = 0xAB
"""What the arena holds where nothing was stored."""


class Arena:
    """The memory of a module's function ``main``.

    Parameters
    ----------
    module : Module
        After `fuse_ops`.
    """

    def __init__(self, module):
        module = infer_types(module)
        self.function, self.types = module["main"], types_of(module)
        self.plan = plan_memory(module)
        self.program = program_of(self.function, self.types)
        self.places = {(each.first, each.name): each for each in self.plan.placements}
        self.bytes = np.full(self.plan.bytes, UNUSED, np.uint8)

    def view(self, value):
        """Return the array of a value."""
        place = self.places[value.made_at, value.name]
        dtype = dtypes.to_numpy(value.type.dtype)
        assert place.bytes == value.bytes
        raw = self.bytes[place.offset : place.offset + value.bytes]
        return raw.view(dtype).reshape(value.type.shape)

    def run(self, *inputs):
        """Return the results of a call."""
        known = {
            param: np.asarray(x) for param, x in zip(self.function.params, inputs, strict=True)
        }
        aliases = dict(self.program.aliases)
        stored = {kernel.call: kernel for kernel in self.program.kernels}

        def value_of(node):
            if node in known:
                return known[node]
            match node:
                case Constant():
                    return node.value
                case Tuple(fields):
                    return tuple(value_of(each) for each in fields)
                case TupleGetItem(whole, index):
                    return value_of(whole)[index]
                case Call() if node in stored:
                    views = tuple(self.view(value) for value in stored[node].outputs)
                    return views if len(views) > 1 else views[0]
                case Call():  # it only reshapes a value, which its name tells
                    return self.view(aliases[node.name]).reshape(self.types[node].shape)
            raise AssertionError(type(node))

        for kernel in self.program.kernels:
            call = kernel.call
            params = [Var(f"p{n}", self.types[arg]) for n, arg in enumerate(call.args)]
            found = evaluate(replace(call, args=tuple(params)), *map(value_of, call.args))
            results = found if isinstance(found, tuple) else (found,)
            for value, result in zip(kernel.outputs, results, strict=True):
                self.view(value)[...] = result
        return value_of(self.function.body)
