"""Work of the commands that are not yet modules of `rerank.commands`."""
