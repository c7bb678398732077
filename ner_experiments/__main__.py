"""Entry point of `python -m ner_experiments`, which is the same as the command `ner-experiments`."""

import sys

from ner_experiments.main import cli

if __name__ == "__main__":
    sys.exit(cli())
