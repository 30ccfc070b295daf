"""`python -m morok` is the `morok` command."""

import sys

from morok.tools.cli import main

sys.exit(main())
