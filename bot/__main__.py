"""`python -m bot` is `omoide`."""

from bot.cli import main

raise SystemExit(main())
