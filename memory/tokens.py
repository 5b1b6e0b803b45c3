"""How many tokens a text will be, learned from what the server counts; nothing is ever downloaded.

A tokenizer's yield depends on the script far more than on the words, so a text is reduced to how many
characters of each script it has, and each model has a price per character of each. The server's own
count of a prompt corrects the prices, each by the share it had in the estimate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CJK = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_OTHER = re.compile(r"[^\x00-\x7f]")

_MOST_CORRECTION = 2.0  # one count moves the estimate by at most this factor
_LEAST_PRICE, _MOST_PRICE = 0.02, 8.0


@dataclass(frozen=True, slots=True)
class Measure:
    """What the price of a text is made of: characters by script, and how many messages they come in."""

    ascii: int = 0
    cjk: int = 0
    other: int = 0
    messages: int = 0

    def __add__(self, more: Measure) -> Measure:
        return Measure(
            self.ascii + more.ascii,
            self.cjk + more.cjk,
            self.other + more.other,
            self.messages + more.messages,
        )

    def __sub__(self, less: Measure) -> Measure:
        return Measure(
            self.ascii - less.ascii,
            self.cjk - less.cjk,
            self.other - less.other,
            self.messages - less.messages,
        )


def measure(text: str, *, messages: int = 0) -> Measure:
    """Count the characters of a text by script."""
    if text.isascii():
        return Measure(ascii=len(text), messages=messages)
    cjk = len(_CJK.findall(text))
    other = len(_OTHER.findall(text)) - cjk
    return Measure(ascii=len(text) - cjk - other, cjk=cjk, other=other, messages=messages)


@dataclass(frozen=True, slots=True)
class Prices:
    """Tokens per character of each script, and per message; the defaults rather count too many."""

    ascii: float = 0.3
    cjk: float = 1.2
    other: float = 0.9
    messages: float = 5.0

    def tokens(self, size: Measure) -> int:
        """Estimate the tokens of a text of this measure, rounded up."""
        exact = (
            size.ascii * self.ascii
            + size.cjk * self.cjk
            + size.other * self.other
            + size.messages * self.messages
        )
        return int(exact + 0.999)

    def corrected(self, size: Measure, counted: int) -> Prices:
        """Return prices that would have come nearer to what the server counted for this measure."""
        estimate = self.tokens(size)
        if estimate <= 0 or counted <= 0:
            return self
        factor = min(max(counted / estimate, 1 / _MOST_CORRECTION), _MOST_CORRECTION)

        def move(price: float, amount: int) -> float:
            share = price * amount / estimate
            return float(min(max(price * factor**share, _LEAST_PRICE), _MOST_PRICE))

        return Prices(
            ascii=move(self.ascii, size.ascii),
            cjk=move(self.cjk, size.cjk),
            other=move(self.other, size.other),
            messages=self.messages,
        )


class TokenEstimator:
    """The prices of the model in use, corrected by every count its server reports.

    One per model: what one tokenizer teaches says nothing about another.
    """

    def __init__(self, prices: Prices | None = None) -> None:
        self._prices = prices or Prices()

    def tokens(self, size: Measure) -> int:
        """Estimate the tokens of this measure."""
        return self._prices.tokens(size)

    def count(self, text: str) -> int:
        """Estimate the tokens of a text."""
        return self._prices.tokens(measure(text))

    def learn(self, size: Measure, counted: int) -> None:
        """Take in what the server counted for a prompt of this measure."""
        self._prices = self._prices.corrected(size, counted)
