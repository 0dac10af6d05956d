"""Minimum error rate training: exact line searches on a pool of candidates."""
