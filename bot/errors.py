"""The errors of the bot, one tree.

BotError
├── ConfigError            a setting is wrong; the text names the key, where it stands and the mend
├── UserError              what a person asked cannot be done; the text is shown as it is
├── LocalServerError       the embedded database or the bundled model cannot be started
└── ModelError             the model did not answer as it should
    ├── ModelUnreachable   no connection
    ├── ModelUnauthorized  the key is missing, wrong or not allowed, or its account is empty
    ├── ModelMissing       the server does not have this model
    ├── RateLimited        too many requests; retry_after in seconds where the server said so
    ├── ModelBroken        the server answered with an error of its own
    ├── ModelTooSlow       nothing came within the time allowed
    ├── ModelInterrupted   the reply broke off before its end
    ├── ModelMalformed     what came is not what the protocol says
    ├── ModelSilent        the reply is empty
    ├── ModelRefused       the server declined to answer this prompt
    └── PromptTooLong      the prompt does not fit; limit and counted in tokens where known

Foreign errors are translated in the file that owns their library. Whether to try again is told by the type.
"""


class BotError(Exception):
    """Anything the bot could not do."""


class ConfigError(BotError):
    """A setting is wrong; the text names the key, where it stands and how to mend it."""


class UserError(BotError):
    """What a person asked cannot be done; the text is meant for them."""


class LocalServerError(BotError):
    """The embedded database or the bundled model cannot be started; the text says how to mend it."""


class ModelError(BotError):
    """The model did not answer as it should."""


class ModelUnreachable(ModelError):
    """No connection to the model's server."""


class ModelUnauthorized(ModelError):
    """The key is missing, wrong, or not allowed to do this, or its account is empty."""


class ModelMissing(ModelError):
    """The server does not have this model, or not this address."""


class RateLimited(ModelError):
    """Too many requests."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelBroken(ModelError):
    """The server answered with an error of its own."""


class ModelTooSlow(ModelError):
    """Nothing came within the time allowed."""


class ModelInterrupted(ModelError):
    """The reply broke off before its end."""


class ModelMalformed(ModelError):
    """What came is not what the protocol says."""


class ModelSilent(ModelError):
    """The reply is empty."""


class ModelRefused(ModelError):
    """The server declined to answer this prompt."""


class PromptTooLong(ModelError):
    """The prompt does not fit into the model's context."""

    def __init__(self, message: str, *, limit: int | None = None, counted: int | None = None) -> None:
        super().__init__(message)
        self.limit = limit
        self.counted = counted
