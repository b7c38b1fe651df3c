"""The door for clients of a knowledge base's chat, which read named lines of server-sent events."""
