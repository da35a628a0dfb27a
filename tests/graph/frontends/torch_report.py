"""Write which operators of PyTorch's own tests pass, as a page."""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter, defaultdict
from itertools import islice

import torch

from tests.graph.frontends.torch_samples import Outcome, operators, samples, try_sample

HEAD = """# Operators of PyTorch

This page is written by `make torch-operators`. PyTorch has a collection of operators with sample
arguments, `op_db`, for its own tests. Each sample of float32 is imported as `graph.from_torch`
does, computed by the meaning of the graph's operators (`graph.evaluate`), and compared with
PyTorch; one in ten is compiled for the CPU instead.

- torch {version}, at most {most} samples of an operator
- an operator is **known** if at least one sample passes
- of the known operators, **{passed} of {count} samples pass ({rate:.1%})**, {refused} are refused
  with a reason, **{wrong} are wrong**
- {known} operators are known, {unknown} are not; {skipped} samples are not counted, because
  PyTorch itself cannot run or trace them
"""


def outcomes(most: int) -> dict[str, list[Outcome]]:
    """Return what became of the samples of each operator."""
    found: dict[str, list[Outcome]] = defaultdict(list)
    number = 0
    for info in operators():
        for sample in islice(samples(info), most):
            number += 1
            found[info.name].append(try_sample(info, sample, compiled=number % 10 == 0))
    return found


def page(found: dict[str, list[Outcome]], most: int) -> str:
    """Return the page about outcomes."""
    known = {name: each for name, each in found.items() if any(one.kind == "pass" for one in each)}
    totals = Counter(one.kind for each in known.values() for one in each)
    count = sum(totals.values()) - totals["skip"]
    everything = Counter(one.kind for each in found.values() for one in each)
    lines = [
        HEAD.format(
            version=torch.__version__.split("+")[0], most=most, passed=totals["pass"], count=count,
            rate=totals["pass"] / max(count, 1), refused=totals["refused"],
            wrong=totals["wrong"] + totals["crash"],
            known=len(known), unknown=len(found) - len(known), skipped=everything["skip"],
        ),
        "## Known operators of which all samples pass\n",
        ", ".join(f"`{name}`" for name, each in sorted(known.items()) if _is_whole(each)) + "\n",
        "## Known operators of which some samples are refused\n",
        "| operator | pass | refused | reason |",
        "|---|---|---|---|",
    ]  # fmt: skip
    for name, each in sorted(known.items()):
        if not _is_whole(each):
            kinds = Counter(one.kind for one in each)
            others = kinds["refused"] + kinds["wrong"] + kinds["crash"]
            lines.append(f"| `{name}` | {kinds['pass']} | {others} | {_reason(each)} |")
    lines += ["", "## Operators that are not known\n", "| operator | reason |", "|---|---|"]
    lines += [
        f"| `{name}` | {_reason(each)} |" for name, each in sorted(found.items())
        if name not in known and each
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _is_whole(each: list[Outcome]) -> bool:
    return all(one.kind in ("pass", "skip") for one in each)


def _reason(each: list[Outcome]) -> str:
    """Return the reason of the first sample that does not pass, on one line."""
    failed = [f"{one.kind}: {one.reason}" for one in each if one.kind not in ("pass", "skip")]
    text = (failed or [one.reason for one in each if one.kind == "skip"] or [""])[0]
    text = text.removeprefix("refused: ").removeprefix("import a PyTorch model: ")
    text = re.sub(r"\s+", " ", re.split(r"\n\s+(?:expected|hint|excerpt)\b", text)[0])
    return text.replace("|", "\\|")[:140]


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=12, help="most samples of an operator")
    most = parser.parse_args().most
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(page(outcomes(most), most), end="")


if __name__ == "__main__":
    main()
