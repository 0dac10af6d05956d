"""Feature weights from a tuning set: `rerank.tuning.run.tune` is the whole of it in memory.

`objectives` says what is maximised, `pools` on which candidates, `mert`, `exact` and `tuners` how.
"""
