"""Field cases whose clock is too long for a test: what users of such servers ran into, tried on a real service."""
