"""`omoide run`: every platform that has a token."""

from __future__ import annotations

import argparse

from bot.config import Config
from bot.errors import UserError
from bot.texts import Texts


async def run(arguments: argparse.Namespace, config: Config, texts: Texts) -> int:
    """Say what this version can do: the terminal is the only platform so far."""
    raise UserError("this version talks in the terminal only: omoide chat")
