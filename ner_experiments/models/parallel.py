"""The parallel BiLSTMs of Zukov-Gregoric, Bachrach & Coope (2018), and the pooling of their states."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.units import BiLSTMUnits, Init


class Concat(nn.Module):
    """h_t = [h_{1,t} ; h_{2,t} ; ... ; h_{K,t}] (section 3)."""

    def __init__(self, num_units: int, state_size: int):
        super().__init__()
        self.output_size = num_units * state_size

    def forward(self, states: Float[Tensor, "batch time units size"]) -> Float[Tensor, "batch time out"]:
        return states.flatten(2)


class Mean(nn.Module):
    """h_t = (h_{1,t} + h_{2,t} + ... + h_{K,t}) / K (table 5), of the size of one unit."""

    def __init__(self, num_units: int, state_size: int):
        super().__init__()
        self.output_size = state_size

    def forward(self, states: Float[Tensor, "batch time units size"]) -> Float[Tensor, "batch time size"]:
        return states.mean(2)


class ParallelBiLSTM(nn.Module):
    """h_t = [h_{1,t} ; ... ; h_{K,t}], where h_k = BiLSTM_k(x): small units instead of one large one.

    Zukov-Gregoric et al. (2018), section 3. `pool(num_units, state_size)` has `output_size`; for `dropout` and `init`
    see `BiLSTMUnits`. Reading: `unit_size` is per direction, so table 3 has 2 x 1024 states. `ends_dropout` is the rate
    of variational dropout on x and on the pooled states, which the paper's text leaves open.
    """

    def __init__(
        self,
        *,
        input_size: int,
        num_units: int,
        unit_size: int,
        dropout: float,
        pool: type[Concat] | type[Mean] = Concat,
        init: Init = nn.init.xavier_uniform_,
        ends_dropout: float = 0.0,
    ):
        super().__init__()
        self.ends_dropout = VariationalDropout(ends_dropout)
        self.units = BiLSTMUnits(
            input_size=input_size, num_units=num_units, unit_size=unit_size, dropout=dropout, init=init
        )
        self.pool = pool(num_units, 2 * unit_size)
        self.output_size = self.pool.output_size

    def recurrent_candidates(self) -> Float[Tensor, "directions units size"]:
        """Weights that `OrthogonalityPenalty` makes orthogonal."""
        return self.units.recurrent_candidates()

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        return self.ends_dropout(self.pool(self.units(self.ends_dropout(x), lengths)))
