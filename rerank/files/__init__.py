"""Input and output: lines, encodings, compression, atomic files, interrupts, messages."""
