"""Import what commands use, in a process that is going to fork: they share its objects, which are not collected."""

import gc

import ner_experiments.launch.summary
import ner_experiments.train  # noqa: F401

gc.freeze()
