"""Soak and chaos: a real service under a mixed load for a long time, in which no request may end in an unknown way."""
