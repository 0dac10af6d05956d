"""Feature weights from a tuning set: `rerank.tuning.run.tune` is the whole of it in memory.

`objective` says what is maximised, `pool` on which candidates, `tuners` and `rounds` how, and
`selection` which weights hold on other documents.
"""
