"""Import torchmetrics and seqeval without the optional libraries that the suite does not use.

For commands only, in which torchmetrics' plots and text metrics are then missing, also for the user's own modules. A
program that uses the suite as a library imports all of torchmetrics.
"""

import re
import sys
from types import ModuleType
from unittest.mock import patch

OPTIONAL = ("matplotlib", "scipy", "transformers")
"""Libraries that torchmetrics imports for plots, audio and texts, if they are installed."""


class UndefinedMetricWarning(UserWarning):
    """Stand-in for scikit-learn's warning, which seqeval issues."""


def import_metrics() -> None:
    """Import torchmetrics and seqeval, which takes 2 s less this way on an AMD EPYC.

    Call it before importing Lightning, which imports torchmetrics.
    """
    if "torchmetrics" not in sys.modules:
        import_torchmetrics()
    if not {"seqeval", "sklearn"} & {*sys.modules}:
        import_seqeval()


def import_torchmetrics() -> None:
    """Import torchmetrics as if its optional libraries were not installed."""
    from lightning_utilities.core import imports

    is_available, is_met = imports.package_available, imports.RequirementCache.__bool__

    def package_available(name: str) -> bool:
        return name not in OPTIONAL and is_available(name)

    def requirement_met(self: imports.RequirementCache) -> bool:
        name, *_ = re.split(r"\W", self.requirement or "", maxsplit=1)
        if name in OPTIONAL:  # for good: torchmetrics refuses what it then lacks
            self.available, self.message = False, f"{name} is not used by the suite's commands"
        return is_met(self)

    with (
        patch.object(imports, "package_available", package_available),
        patch.object(imports.RequirementCache, "__bool__", requirement_met),
    ):
        import torchmetrics  # noqa: F401


def import_seqeval() -> None:
    """Import seqeval without scikit-learn, of which it uses the class of a warning."""
    exceptions = ModuleType("sklearn.exceptions")
    exceptions.UndefinedMetricWarning = UndefinedMetricWarning  # type: ignore[attr-defined]
    stand_ins = {"sklearn": ModuleType("sklearn"), "sklearn.exceptions": exceptions}
    sys.modules.update(stand_ins)
    try:
        import seqeval.metrics  # noqa: F401
    finally:
        for name in stand_ins:
            del sys.modules[name]
