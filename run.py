"""`python run.py ...` is `ner-experiments train ...`: one experiment, or with -m a sweep of them."""

import sys

from ner_experiments.main import cli

if __name__ == "__main__":
    sys.exit(cli(["train", *sys.argv[1:]]))
