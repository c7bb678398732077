"""`python tools/diagrams.py [FOLDER]`: draws every architecture of conf/model as docs/diagrams/NAME.svg.

The architecture is built as `python run.py paper=... model=NAME` builds it, but small, and run: what is drawn
is what it does. On top stand the layer that scores the tags and the decoder, as in `Tagger`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from diagram_blocks import INPUT_SIZE, Block, trace
from diagram_svg import svg
from hydra import compose, initialize_config_dir
from hydra.utils import get_class, instantiate
from omegaconf import DictConfig

from ner_experiments.config.compose import CONF, CONFIG_NAME, HYDRA_VERSION, architectures

FOLDER = CONF.parent / "docs/diagrams"
SMALL = {"hidden_size": 4, "dense_size": 8, "unit_size": 2, "num_units": 3}
"""In place of the paper's, where a model has them: few units can be seen at once, and sizes are not drawn."""
LAYERS = {"yang2020": 3}
"""As many as show what a model does again and again; 2 if not named here."""
PAPERS = {"Huang": "huang2015", "Zukov-Gregoric": "zukov2018", "Yang": "yang2020", "Li": "li2020"}
DECODERS = {"CRF": "CRF", "Softmax": "softmax"}


def paper(name: str) -> str:
    """The setting of the paper that the first line of the YAML names; `none` if it names none."""
    first = (CONF / f"model/{name}.yaml").read_text(encoding="utf-8").partition("\n")[0]
    words = first.replace(",", " ").split()
    return next((setting for author, setting in PAPERS.items() if author in words), "none")


def config(name: str) -> DictConfig:
    setting = paper(name)
    overrides = [f"paper={setting}", f"model={name}", f"layers={LAYERS.get(setting, 2)}"]
    with initialize_config_dir(str(CONF), version_base=HYDRA_VERSION):
        cfg = compose(CONFIG_NAME, overrides=overrides)
    for key in SMALL.keys() & cfg.model.keys():
        cfg.model[key] = SMALL[key]
    return cfg


def blocks(name: str) -> list[Block]:
    """From the words' vectors to the decoder."""
    cfg = config(name)
    found = trace(instantiate(cfg.model)(input_size=INPUT_SIZE))
    decoder = get_class(cfg.decoder._target_).__name__
    scores = Block("dense", "dense\na score for each tag", (len(found) - 1,))
    return [*found, scores, Block("decoder", DECODERS.get(decoder, decoder), (len(found),))]


def main(folder: Path = FOLDER) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name in architectures():
        (folder / f"{name}.svg").write_text(svg(name, blocks(name)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
