"""A tagger from named tensors to tags, traced for any number of sentences and tokens."""

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from ner_experiments.data.encoder import Batch
from ner_experiments.export.formats import quiet
from ner_experiments.export.forms import traceable
from ner_experiments.tagger import Tagger

LENGTHS = "lengths"
NO_TENSOR = torch.empty(0)


def tensors(batch: Batch) -> dict[str, Tensor]:
    """A batch as the exported tagger reads it: `lengths`, and each input at every token."""
    spread = {name: batch.spread(name, rows) for name, rows in batch.inputs.items()}
    return {LENGTHS: batch.lengths, **{name: x.long() for name, x in spread.items()}}


class Traced(nn.Module):
    """The tagger's tags and scores, from what `tensors` makes of a batch. What is at padding is not read."""

    def __init__(self, tagger: Tagger) -> None:
        super().__init__()
        self.tagger = copy.deepcopy(tagger).eval()
        self.tagger.requires_grad_(
            False
        )  # for gradients `scan` is computed in another way, which has no ONNX
        traceable(self.tagger)

    def forward(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        lengths = given[LENGTHS]
        inputs = {name: x for name, x in given.items() if name != LENGTHS}
        batch, time = next(iter(inputs.values())).shape[:2]
        mask = torch.arange(time, device=lengths.device) < lengths[:, None]
        places = torch.arange(batch * time, device=lengths.device).view(batch, time)
        scores = self.tagger(
            Batch(
                sentences=NO_TENSOR,
                lengths=lengths,
                mask=mask,
                tags=NO_TENSOR,
                inputs={name: without_padding(x, mask).flatten(0, 1) for name, x in inputs.items()},
                places=dict.fromkeys(inputs, places),
            )
        )
        tags = self.tagger.decoder.decode(scores, mask)
        return {"tags": tags, "scores": scores.masked_fill(~mask[:, :, None], 0)}


def without_padding(x: Tensor, mask: Tensor) -> Tensor:
    """Padding repeats the first token of its sentence, as in the batches that the tagger was trained on."""
    return torch.where(mask.view(*mask.shape, *[1] * (x.ndim - 2)), x, x[:, :1])


def trace(tagger: Tagger, example: Mapping[str, Tensor]) -> ExportedProgram:
    """For any number of sentences, tokens, and numbers a token; `example` has two of each at least."""
    batch, time = Dim("batch"), Dim("time")
    dims = {name: dict(enumerate((batch, time, Dim.AUTO)[: x.ndim])) for name, x in example.items()}
    with torch.no_grad(), quiet():
        return torch.export.export(Traced(tagger), (dict(example),), dynamic_shapes=(dims,))
