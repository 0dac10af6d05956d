"""The files of Moses' extractor and mert as a tuning set."""
