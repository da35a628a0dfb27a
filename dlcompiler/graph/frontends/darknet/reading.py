"""Read Darknet's two files, which somebody else wrote: the text of a network, and its weights."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.files import bytes_of
from dlcompiler.graph.operators.base import Array

OPERATION = "import a Darknet network"
MOST_TEXT = 1 << 20
"""Longest text of a network; [byte]."""
MOST_LAYERS = 2_000
"""Most layers of a network, and most numbers in an option; [1]."""
MOST_COMMAS = 10_000
"""Most commas in a text: each joins numbers of a list, and each layer in a list takes time; [1]."""


@dataclass(frozen=True)
class Section:
    """A layer in the text, such as ``convolutional``, or the network itself, with its options."""

    kind: str
    line: int
    options: dict[str, str] = field(default_factory=dict)


def read_sections(source: Any) -> list[Section]:
    """Return the sections of a network, of which the first is ``net`` or ``network``.

    As in Darknet, space is left out, and the first of equal options counts. Text after a ``#`` is
    left out, where Darknet knows comments only as whole lines.

    Raises
    ------
    GraphError
        It cannot be read, or is no such text.
    """
    sections: list[Section] = []
    text = bytes_of(source, OPERATION, MOST_TEXT).decode("utf-8", "replace")
    if (commas := text.count(",")) > MOST_COMMAS:
        raise GraphError(OPERATION, "the text has too many numbers", got=f"{commas:,} commas",
                         expected=f"at most {MOST_COMMAS:,}")  # fmt: skip
    for number, whole in enumerate(text.split("\n"), 1):
        line = "".join(whole.partition("#")[0].split())
        if not line or line.startswith(";"):
            continue
        key, equals, value = line.partition("=")
        if line.startswith("[") and line.endswith("]"):
            sections.append(Section(line[1:-1], number))
        elif sections and key and equals and value:
            sections[-1].options.setdefault(key, value)
        else:
            raise GraphError(
                OPERATION, f"line {number} is no section and no option of one",
                got=repr(whole.strip()[:100]), expected="[layer], or key=value",
            )  # fmt: skip
    if not sections or sections[0].kind not in ("net", "network"):
        raise GraphError(
            OPERATION, "the text does not begin with the network",
            got=f"[{sections[0].kind[:100]}]" if sections else "no sections", expected="[net]",
        )  # fmt: skip
    if not 1 < len(sections) <= MOST_LAYERS + 1:
        raise GraphError(OPERATION, "another number of layers", got=f"{len(sections) - 1:,}",
                         expected=f"1 to {MOST_LAYERS:,}")  # fmt: skip
    return sections


class Weights:
    """The numbers of a file of weights, which the layers take one after the other.

    **Source:** ``load_weights_upto`` of Darknet: three integers are the version, then comes the
    number of images seen, which has 64 bits since version 0.2.

    Parameters
    ----------
    source : path or bytes
        The file.

    Raises
    ------
    GraphError
        It cannot be read.
    """

    is_transposed: bool
    """Whether matrices are stored the other way, as by early versions: these are above 1000."""

    def __init__(self, source: Any) -> None:
        data = bytes_of(source, OPERATION)
        if len(data) < 16:
            raise GraphError(OPERATION, "the weights have no header", got=f"{len(data)} bytes",
                             expected="at least 16")  # fmt: skip
        major, minor, _ = struct.unpack_from("<3i", data)
        self.is_transposed = major > 1000 or minor > 1000
        start = 20 if major * 10 + minor >= 2 and not self.is_transposed else 16
        body = memoryview(data)[start:]
        self._stray = len(body) % 4
        self._numbers: Array = np.frombuffer(body[: len(body) - self._stray], "<f4")
        self._taken = 0

    @property
    def left(self) -> int:
        """How many numbers no layer has taken yet."""
        return len(self._numbers) - self._taken

    def take(self, count: int) -> Array:
        """Return the next numbers, as a part of the file that is not copied."""
        first, self._taken = self._taken, self._taken + count
        return self._numbers[first : self._taken]

    def finish(self) -> None:
        """Refuse numbers that no layer has taken.

        Raises
        ------
        GraphError
            There are some.
        """
        if self.left or self._stray:
            stray = f" and {self._stray} bytes" if self._stray else ""
            raise GraphError(
                OPERATION, "weights are left over", got=f"{self.left:,} floats{stray} of "
                f"{len(self._numbers):,}", hint="they belong to another network",
            )  # fmt: skip


_ANY = "clip truth onlyforward stopbackward dontsave learning_rate smooth dont_update " \
    "burnin_update train_only_bn stream wait_stream"  # fmt: skip
_BOXES = "anchors map max jitter resize random focal_loss label_smooth_eps"
_SCALES = "rescore sqrt coord_scale object_scale noobject_scale mask_scale class_scale"

UNUSED: Mapping[str, frozenset[str]] = {
    kind: frozenset(f"{_ANY} {names}".split())
    for kind, names in {
        "": "",
        "net": "batch subdivisions time_steps momentum decay adam B1 B2 eps policy power step "
        "scale steps scales seq_scales gamma burn_in max_batches learning_rate_min sgdr_cycle "
        "sgdr_mult max_crop min_crop max_ratio min_ratio center flip angle aspect saturation "
        "exposure hue blur gaussian_noise mixup cutmix mosaic mosaic_bound letter_box random "
        "notruth label_smooth_eps resize_step attention adversarial_lr max_chart_loss contrastive "
        "contrastive_jit_flip contrastive_color unsupervised track augment_speed "
        "sequential_subdivisions try_fix_nan weights_reject_freq equidistant_point "
        "badlabels_rejection_percentage num_sigmas_reject_badlabels ema_alpha use_cuda_graph "
        "loss_scale dynamic_minibatch optimized_memory workspace_size_limit_MB "
        "show_receptive_field",
        "convolutional": "dot angle grad_centr reverse assisted_excitation",
        "maxpool": "out_channels",
        "dropout": "probability dropblock dropblock_size_rel dropblock_size_abs",
        "softmax": "noloss",
        "cost": "type scale ratio noobj thresh",
        "yolo": f"{_BOXES} ignore_thresh truth_thresh iou_thresh iou_normalizer obj_normalizer "
        "cls_normalizer delta_normalizer max_delta iou_loss iou_thresh_kind beta_nms nms_kind "
        "counters_per_class objectness_smooth show_details track_history_size sim_thresh "
        "dets_for_track dets_for_show track_ciou_norm embedding_layer",
        "region": f"{_BOXES} {_SCALES} log thresh classfix absolute bias_match",
        "detection": f"{_BOXES} {_SCALES} forced reorg",
    }.items()
}
"""Layer ("": any other) -> options that change only training, and what is done with the boxes."""
