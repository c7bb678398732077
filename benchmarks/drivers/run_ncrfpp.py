"""Trains and decodes with NCRF++: runs its unchanged main.py from a clone in any folder, and reads the times it prints.

    python run_ncrfpp.py FOLDER OUTPUT --ncrfpp CLONE

Its code of 2020 runs unpatched with torch 2.13. Training seconds are those of whole epochs. Decoding seconds are those
of dev, without the scoring of its tags. NCRF++ requires a test file, which gets two sentences.
"""

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import outcome

CONFIG = """
### use # to comment out the configure item
train_dir={train}
dev_dir={decode}
test_dir={few}
model_dir={model}
word_emb_dir={vectors}
norm_word_emb=False
number_normalized=False
seg=True
word_emb_dim={word_dim}
char_emb_dim={char_dim}
use_crf=True
use_char=True
word_seq_feature=LSTM
char_seq_feature=LSTM
status=train
optimizer=SGD
ave_batch_loss=True
iteration={epochs}
batch_size={batch}
hidden_dim={hidden}
char_hidden_dim={char_hidden}
dropout={dropout}
lstm_layer=1
bilstm=True
learning_rate={lr}
lr_decay=0
momentum=0
l2=0
gpu={gpu}
"""


def main() -> None:
    parser = outcome.parser()
    parser.add_argument("--ncrfpp", type=Path, required=True)
    arguments = parser.parse_args()
    task = outcome.task(arguments)
    settings = write_config(task)
    printed = run(arguments.ncrfpp.absolute(), task.folder.absolute() / "ncrfpp.config")
    epochs = re.findall(r"Epoch: \d+ training finished\. Time: ([\d.]+)s", printed)
    speeds = re.findall(r"Dev: time: [\d.]+s, speed: ([\d.]+)st/s", printed)
    sentences = len(outcome.read(task.decode))
    outcome.write(
        task,
        train=[float(seconds) for seconds in epochs],
        decode=[sentences / float(speed) for speed in speeds],
        version=commit(arguments.ncrfpp),
        settings=settings,
    )


def write_config(task: outcome.Task) -> dict[str, str]:
    """Write the configuration of NCRF++, whose widths count both directions together."""
    folder = task.folder.absolute()
    few = folder / "few.conll"
    few.write_text("\n\n".join(task.decode.read_text(encoding="utf-8").split("\n\n")[:2]), encoding="utf-8")
    places = {
        "train": task.train.absolute(),
        "decode": task.decode.absolute(),
        "vectors": task.vectors.absolute(),
        "few": few,
        "model": folder / "ncrfpp",
    }
    widths = {name: 2 * task.settings[name] for name in ("hidden", "char_hidden")}
    gpu = task.settings.get("device", "cpu") != "cpu"
    text = CONFIG.format(**{**task.settings, **widths, **places, "gpu": gpu})
    (folder / "ncrfpp.config").write_text(text, encoding="utf-8")
    items = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name: value for name, value in items.items() if not name.endswith("_dir")}


def run(clone: Path, config: Path) -> str:
    """The text that NCRF++ prints."""
    printed = io.StringIO()
    os.chdir(clone)
    sys.path.insert(0, str(clone))
    sys.argv = ["main.py", "--config", str(config)]
    with contextlib.redirect_stdout(printed):
        runpy.run_path("main.py", run_name="__main__")
    return printed.getvalue()


def commit(clone: Path) -> str:
    command = ["git", "-C", str(clone), "rev-parse", "--short", "HEAD"]
    finished = subprocess.run(command, capture_output=True, text=True)
    return finished.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
