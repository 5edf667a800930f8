"""One module per target: how the packed graph becomes what that engine runs."""
