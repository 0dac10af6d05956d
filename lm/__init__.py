"""Language models that read documents: vocabulary, compositions, training, scoring."""
