"""The training of language models: settings, optimisers, and the run itself."""
