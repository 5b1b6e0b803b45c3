"""The settings: `load` makes a Config from the settings file and the environment; only it reads them."""

from bot.config.describe import settings_table
from bot.config.reading import load
from bot.config.secret import Secret, hosts_of
from bot.config.settings import (
    Config,
    LlmSettings,
    LogSettings,
    MemorySettings,
    MongoSettings,
    PersonaSettings,
    SessionSettings,
    ShutdownSettings,
    WindowSettings,
)

__all__ = [
    "Config",
    "LlmSettings",
    "LogSettings",
    "MemorySettings",
    "MongoSettings",
    "PersonaSettings",
    "Secret",
    "SessionSettings",
    "ShutdownSettings",
    "WindowSettings",
    "hosts_of",
    "load",
    "settings_table",
]
