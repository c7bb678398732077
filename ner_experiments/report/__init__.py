"""Everything that was measured as a folder of HTML pages that need nothing else, not even a network."""
