"""Files, locks and text: helpers that know nothing of the suite."""
