"""Evaluation runs of a folder: their figures, reports, questions, comparisons and search trees."""
