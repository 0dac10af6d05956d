"""File formats of k-best lists, one module each: the grammar of a line, read and written."""
