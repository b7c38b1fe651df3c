"""The letters of texts, and the form in which texts and queries are compared."""
