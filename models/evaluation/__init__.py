"""What ``query-intent evaluate`` and ``query-intent compare`` share: what is judged, on what, by which statistics."""
