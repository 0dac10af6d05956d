"""Commands whose options are not records yet (`rerank.options`)."""
