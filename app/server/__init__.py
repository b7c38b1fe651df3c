"""The HTTP server: OpenAI's chat completions, conversations, search trees, collections, runs and the web page."""
