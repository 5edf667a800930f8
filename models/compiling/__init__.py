"""From a checkpoint to a bundle's target: calibration, the engines' formats, and the proof that they agree."""
