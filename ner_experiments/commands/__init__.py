"""One command of `ner-experiments` a file: `main(argv)` and its parser. Nothing imports them."""
