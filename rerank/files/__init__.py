"""Bytes in, bytes out: lines, encodings, compression, whole output files, interrupts."""
