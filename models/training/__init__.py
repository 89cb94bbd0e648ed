"""Making a draft head for a target: texts, the target's features of them, training, evaluation."""
