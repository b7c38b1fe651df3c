"""Chat completions and models, as OpenAI's clients know them."""
