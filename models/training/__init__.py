"""Fine-tuning: the task, the loop, what it is scored by, and the confidence that holds on validation."""
