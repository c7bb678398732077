"""Report of everything that was measured: a folder of HTML pages that opens from disk, without a network."""
