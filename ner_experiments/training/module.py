"""The tagger as a LightningModule: steps of training and evaluation, and the metric."""

from typing import Any

from jaxtyping import Float
from lightning.pytorch import LightningModule
from torch import Tensor

from ner_experiments.data.encoder import Batch
from ner_experiments.metrics import SpanF1, TagAccuracy
from ner_experiments.tagger import Tagger
from ner_experiments.training.graphs import Graphs


class LightningTagger(Tagger, LightningModule):
    """A tagger with what a Lightning trainer calls. Its weights have the names of the tagger's.

    Dev and test share one metric, which is reset before each evaluation.
    """

    def __init__(self, *, metric: SpanF1 | TagAccuracy, **parts: Any) -> None:
        super().__init__(**parts)
        self.metric = metric
        self.graphs: Graphs | None = None

    def training_step(self, batch: Batch, _: int) -> dict[str, Tensor]:
        return self.losses(batch) if self.graphs is None else self.graphs.step(batch)

    def losses(self, batch: Batch) -> dict[str, Float[Tensor, ""]]:
        """The loss, and the part of it that is the penalty, if the config has one."""
        loss = self.decoder.loss(self(batch), batch.tags, batch.mask, batch.real)
        if self.penalty is None:
            return {"loss": loss}
        penalty = self.penalty(self.model)
        return {"loss": loss + penalty, "penalty": penalty.detach()}

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Compute the gradients, unless a replayed graph has."""
        if self.graphs is not None and not loss.requires_grad:
            self.graphs.set_gradients()
        else:
            super().backward(loss, *args, **kwargs)

    def start_evaluation(self) -> None:
        self.metric.reset()

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Decode a batch and add it to the metric; return its tag scores, and the `ids` of the predicted tags."""
        scores = self(batch)
        predicted = self.decoder.decode(scores, batch.mask)
        self.metric.update(predicted, batch.tags, batch.mask, batch.unreachable)
        return {"scores": scores, "ids": predicted}

    def finish_evaluation(self) -> dict[str, Any]:
        """Return the report of the metric at the end of an evaluation."""
        with self.sharing():
            return self.metric.compute()

    def on_validation_epoch_start(self) -> None:
        self.start_evaluation()

    def on_test_epoch_start(self) -> None:
        self.start_evaluation()

    def validation_step(self, batch: Batch, _: int) -> dict[str, Tensor]:
        return self.evaluate_batch(batch)

    def test_step(self, batch: Batch, number: int) -> dict[str, Tensor]:
        return self.evaluate_batch(batch)

    def on_validation_epoch_end(self) -> None:
        self.report = self.finish_evaluation()
        self.log(f"dev/{self.metric.primary_metric}", self.report[self.metric.primary_metric])

    def on_test_epoch_end(self) -> None:
        self.report = self.finish_evaluation()

    def transfer_batch_to_device(self, batch: Batch, *_: Any) -> Batch:
        """Return the batch unchanged: batches are assembled on the device."""
        return batch
