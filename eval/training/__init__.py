"""Search trees as training data: judgements, sub-questions, answers from evidence, preferences."""
