"""Other servers with the same model on the same machine, each in an environment of its own."""
