"""The useful operations of a training step: multiplications and additions of its matrix products.

A recurrent layer takes two operations for each weight, token and direction forward, and twice as many
backward, by its input and by its weights: 3 x 2 x 4n(n + m) for an LSTM of n units that reads m numbers. All
else is what PyTorch's counter sees; it sees nothing in compiled kernels, so the CRF counts as nothing.
"""

import copy
from typing import Any

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ner_experiments.data.encoder import Batch
from ner_experiments.modules.peephole import PeepholeLSTM
from ner_experiments.modules.units import BiLSTMUnits
from ner_experiments.modules.variational import VariationalLSTMs
from ner_experiments.tagger import Tagger

RECURRENT = (nn.LSTM, nn.GRU, PeepholeLSTM, BiLSTMUnits, VariationalLSTMs)


def operations(tagger: Tagger, batch: Batch) -> int:
    """Of a batch without padding; padded tokens would count."""
    tagger = copy.deepcopy(tagger).train()
    layers = outermost(tagger)
    of_layers = [replace(layer) for layer in layers]
    tagger(batch)
    with FlopCounterMode(display=False) as counter:
        tagger.decoder.loss(tagger(batch), batch.tags, batch.mask).backward()
    return sum(of_layer["operations"] for of_layer in of_layers) + counter.get_total_flops()


def outermost(module: nn.Module) -> list[nn.Module]:
    """The recurrent layers that are in no other."""
    if isinstance(module, RECURRENT):
        return [module]
    return [layer for child in module.children() for layer in outermost(child)]


def replace(layer: nn.Module) -> dict[str, int]:
    """From its second call on the layer returns what it returned first, at no cost; what one call takes."""
    compute, about = layer.forward, {}
    weights = sum(weight.numel() for name, weight in layer.named_parameters() if "weight" in name)

    def forward(x: Tensor, *lengths: Tensor, **ways: bool) -> Any:
        if not about:
            found = compute(x, *lengths, **ways)
            about["states"] = (found[0] if isinstance(found, tuple) else found).detach()
            directions = len(x) if isinstance(layer, VariationalLSTMs) else 1
            about["operations"] = 3 * 2 * weights * (x.numel() // x.shape[-1] // directions)
        states = about["states"] + 0 * x.sum()  # of x, so that what stands before is derived, too
        return (states, None) if isinstance(layer, nn.RNNBase) else states

    layer.forward = forward
    return about
