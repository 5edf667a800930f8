"""From raw data sets to one labelled table: readers, our own wording, the split, and the probe for shortcuts."""
