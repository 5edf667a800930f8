"""From raw rows to a served bundle: one script a stage (prepare, train, compile), shared nouns beside them."""
