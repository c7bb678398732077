"""Commands of `ner-experiments`, one file each, with `add_arguments` and `run`. Nothing imports them."""
