"""K-best lists, documents and references in memory."""

LARGEST = 1e100  # size of a number that is read: products of three, and their sums, stay finite
