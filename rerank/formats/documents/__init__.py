"""Formats of files that say which sentences are a document, recognised by their content."""
