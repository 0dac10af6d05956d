"""The candidates that weights are tuned on, and how one pool follows another."""
