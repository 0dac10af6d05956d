"""Causal language models in folders of Hugging Face transformers, as scorers of k-best lists."""
