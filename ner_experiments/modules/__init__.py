"""Building blocks of architectures: recurrent layers, the CRF, dropout, characters, words."""
