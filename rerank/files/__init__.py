"""Input and output of bytes: lines, encodings, compression, atomic output files, interrupts."""
