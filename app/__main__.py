"""``python -m judgetree.app`` is the command ``judgetree``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
