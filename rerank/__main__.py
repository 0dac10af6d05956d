"""`python -m rerank`."""

from rerank.cli import main

main()
