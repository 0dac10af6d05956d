"""`python -m rerank`."""

from rerank.commands import main

main()
