"""Tuners by name: MERT, MIRA, PRO and expected BLEU on one pool."""
