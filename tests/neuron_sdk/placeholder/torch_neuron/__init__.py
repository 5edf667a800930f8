"""What PyPI has under this name: nothing, so that nobody else can take it."""
