"""Tuners by name: MERT, PRO and expected BLEU on one pool."""
