"""Which weights hold on new documents: cross-validation on the tuning set."""

CV, NONE = SELECTIONS = ("cv", "none")
