"""A model server that knows the answers to the example questions and fails on request."""
