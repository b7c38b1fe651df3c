"""The policies, a file each."""
