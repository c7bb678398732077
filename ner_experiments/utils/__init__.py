"""Files, locks and text, without any knowledge of the suite."""
