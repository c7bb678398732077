"""What architectures share: recurrent layers, the CRF, dropout, characters, words."""
