"""Collections of documents: what they hold, searched side by side, and filled by uploads."""
