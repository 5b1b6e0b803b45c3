"""/forget: what will go in numbers, a question, the erasure, and what went."""

from __future__ import annotations

from typing import get_args

from bot.commands.command import Answer, Call
from bot.commands.offers import Action
from bot.texts import Texts
from memory import Holdings, Plan, Scope

_SCOPES: tuple[Scope, ...] = get_args(Scope)


async def ask_what_to_forget(call: Call) -> Answer:
    """Offer what can be forgotten, or ask for certainty at once when that was said."""
    wanted = call.arguments.casefold()
    if not wanted:
        return await _offer_scopes(call)
    for scope in _SCOPES:
        if scope == wanted:
            return await _ask_if_sure(call, scope)
    return Answer(call.texts("forget.usage"))


async def _offer_scopes(call: Call) -> Answer:
    options: list[tuple[str, Action]] = []
    for scope in _SCOPES:
        plan = await call.memory.plan_forgetting(call.memory_id, call.audience, scope)
        if plan is not None:
            label = call.texts(f"forget.{scope}", counts=counts_text(plan.holdings, call.texts))
            options.append((label, _asking(scope)))
    if not options:
        return Answer(call.texts("forget.nothing"))
    options.append((call.texts("forget.no"), _keep))
    return Answer(call.texts("forget.which"), call.offers.make(call.memory_id, options))


def _asking(scope: Scope) -> Action:
    async def ask(call: Call) -> Answer:
        return await _ask_if_sure(call, scope)

    return ask


async def _ask_if_sure(call: Call, scope: Scope) -> Answer:
    plan = await call.memory.plan_forgetting(call.memory_id, call.audience, scope)
    if plan is None:
        return Answer(call.texts("forget.nothing"))
    options = [(call.texts("forget.yes"), _forgetting(plan)), (call.texts("forget.no"), _keep)]
    text = call.texts("forget.sure", counts=counts_text(plan.holdings, call.texts))
    return Answer(text, call.offers.make(call.memory_id, options))


def _forgetting(plan: Plan) -> Action:
    async def forget(call: Call) -> Answer:
        erased = await call.memory.forget(plan)
        gone = counts_text(erased.gone, call.texts)
        if erased.left:
            return Answer(call.texts("forget.left", counts=gone, left=counts_text(erased.left, call.texts)))
        return Answer(call.texts("forget.done", counts=gone))

    return forget


async def _keep(call: Call) -> Answer:
    return Answer(call.texts("forget.kept"))


def counts_text(holdings: Holdings, texts: Texts) -> str:
    """Write counts as "3 turns, 1 session"; what there is none of is left out, but for turns."""
    parts = [texts.counted("count.turns", holdings.turns)]
    for kind in ("sessions", "summaries", "people"):
        if count := getattr(holdings, kind):
            parts.append(texts.counted(f"count.{kind}", count))
    return texts("list.separator").join(parts)
