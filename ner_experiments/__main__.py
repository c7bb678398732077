"""`python -m ner_experiments` is the command `ner-experiments`."""

import sys

from ner_experiments.main import cli

if __name__ == "__main__":
    sys.exit(cli())
