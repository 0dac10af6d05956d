"""Experiments with language models alone, `rerank lm-eval`: one module an experiment."""
