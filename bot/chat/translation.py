"""From a server's error answer to a ModelError: pure, and in one place.

Servers that speak the same protocol disagree about their errors. Status, `code`, `type` and `param` decide
where they say enough; some say what is wrong in their message only, and the patterns for those stand here
and nowhere else. The server's own words never go into our text: they may quote the prompt, or the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from bot.errors import (
    ModelBroken,
    ModelError,
    ModelMalformed,
    ModelMissing,
    ModelRefused,
    ModelTooSlow,
    ModelUnauthorized,
    PromptTooLong,
    RateLimited,
)

_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})
_REFUSED = frozenset(
    {"content_filter", "content_policy_violation", "data_inspection_failed", "ResponsibleAIPolicyViolation"}
)
_NO_MODEL = frozenset({"model_not_found", "model_not_found_error"})
_OUT_OF_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

# Where a server has no code for it. The names of the groups say what the numbers are.
_TOO_LONG_MESSAGES = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"maximum context length (?:is|of) (?P<limit>\d+)(?:.*?(?P<counted>\d+)(?: tokens)? (?:in|from) the "
        r"(?:messages|input|prompt)|.*?(?:requested|has|contains|resulted in)(?: about| at least)? "
        r"(?P<total>\d+))?",
        r"prompt is too long(?:: (?P<counted>\d+) tokens > (?P<limit>\d+))?",
        r"request \((?P<counted>\d+) tokens\) exceeds the available context size \((?P<limit>\d+)",
        r"exceeds? the available context size",
        r"input token count \((?P<counted>\d+)\) exceeds the maximum number of tokens allowed "
        r"\((?P<limit>\d+)",
        r"prompt contains (?P<counted>\d+) tokens.*too large for model with (?P<limit>\d+)",
        r"requested tokens \((?P<counted>\d+)\) exceed context window of (?P<limit>\d+)",
        r"input tokens exceed the configured limit of (?P<limit>\d+) tokens"
        r"(?:.*resulted in (?P<counted>\d+))?",
        r"input length (?:and `max_tokens` )?exceeds?(?: the)? (?:maximum )?context (?:length|limit)",
    )
)
_REFUSED_MESSAGES = re.compile(r"content exists risk|content management policy", re.IGNORECASE)


def mapping_of(value: object) -> Mapping[str, object]:
    """Return the value if it is an object of JSON, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def number_of(value: object) -> int | None:
    """Return a positive whole number, also out of digits; None for anything else."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and value > 0 else None


def error_of(body: object) -> Mapping[str, object]:
    """Return the error object inside a server's answer, whatever it is wrapped in; empty if there is none."""
    if isinstance(body, list) and body:
        return error_of(body[0])
    if not isinstance(body, Mapping):
        return {"message": body} if isinstance(body, str) else {}
    inner = body.get("error")
    return body if inner is None else error_of(inner)


def from_status(status: int, body: object, *, headers: Mapping[str, str], now: datetime) -> ModelError:
    """Translate an answer with an error status; `now` is what an HTTP date in Retry-After counts from."""
    error = error_of(body)
    known = from_error(error, where=f"the server answered {status}")
    if known is not None:
        return known
    told = retry_after(headers, now=now)
    if status == 429:
        return RateLimited("the server has had too many requests (429)", retry_after=told)
    if status in (503, 529) and told is not None:
        return RateLimited(f"the server is overloaded ({status})", retry_after=told)
    if status in (401, 403):
        return ModelUnauthorized(f"the server does not accept the key ({status})")
    if status == 402:
        return ModelUnauthorized("the account has no credit left (402)")
    if status == 404:
        return ModelMissing("the server has no such model or address (404)")
    if status == 413:
        return PromptTooLong("the request is too large for the server (413)")
    if status in (408, 504):
        return ModelTooSlow(f"the server gave up waiting ({status})")
    if status >= 500:
        return ModelBroken(f"the server failed ({status})")
    return ModelMalformed(f"the server does not understand the request ({status}{_details(error)})")


def from_error(error: Mapping[str, object], *, where: str) -> ModelError | None:
    """Translate an error object by what it says itself; None where it says nothing that is known."""
    names = {str(error[key]) for key in ("code", "type", "status") if error.get(key) is not None}
    message = str(error.get("message") or "")
    if names & _TOO_LONG:
        return _too_long(error, message)
    if names & _REFUSED:
        return ModelRefused(f"{where}: the prompt was refused by a content filter")
    if names & _NO_MODEL:
        return ModelMissing(f"{where}: there is no such model")
    if names & _OUT_OF_CREDIT:
        return ModelUnauthorized(f"{where}: the account has no credit left (insufficient_quota)")
    if any(pattern.search(message) for pattern in _TOO_LONG_MESSAGES):
        return _too_long(error, message)
    if _REFUSED_MESSAGES.search(message):
        return ModelRefused(f"{where}: the prompt was refused by a content filter")
    return None


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how many seconds the server asks to wait, never negative; None where it does not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(float(headers[name]) / unit, 0.0)
        except (KeyError, ValueError):
            continue
    try:
        until = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)


def _too_long(error: Mapping[str, object], message: str) -> PromptTooLong:
    limit, counted = number_of(error.get("n_ctx")), number_of(error.get("n_prompt_tokens"))
    for pattern in _TOO_LONG_MESSAGES:
        found = pattern.search(message)
        if found is not None:
            numbers = found.groupdict()
            limit = limit or number_of(numbers.get("limit"))
            counted = counted or number_of(numbers.get("counted")) or number_of(numbers.get("total"))
            break
    of_which = f" ({counted or 'unknown'} tokens, the limit is {limit or 'unknown'})"
    return PromptTooLong("the prompt is too long for the model" + of_which, limit=limit, counted=counted)


def _details(error: Mapping[str, object]) -> str:
    """Name what the server objects to, by identifiers that can be no key and nothing that a person wrote."""
    named = ((key, error.get(key)) for key in ("code", "type", "param"))
    return "".join(
        f", {key} {value}"
        for key, value in named
        if isinstance(value, str) and re.fullmatch(r"[a-z_.]{1,40}", value)
    )
