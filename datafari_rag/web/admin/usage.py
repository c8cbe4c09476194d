"""`/admin/costs`: what calls of models cost in the last days, for `security.admins` alone."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.accounts import BY, CostTotal, days_before, money_text, totals
from datafari_rag.core.errors import BadRequest, NotAllowed, NotFound
from datafari_rag.web.api.exchange import Exchange, wants_json
from datafari_rag.web.pages.messages import cost_names
from datafari_rag.web.pages.rendering import page, reader_of
from datafari_rag.web.request_values import number_wanted
from datafari_rag.web.responses import json_response, plain

USUAL_COST_DAYS, MOST_COST_DAYS = 30, 731
MOST_ROWS = 1_000
"""Most rows that are shown; the command prints all."""


def costs(exchange: Exchange) -> Response:
    """Return the totals of the last `days` by `by`, as JSON or as a page. Raises: RagError."""
    worker = exchange.worker
    reader = reader_of(worker)
    if not reader.is_admin:
        raise NotAllowed
    ledger = worker.snapshot().accounts
    if ledger is None:
        raise NotFound("Nothing is counted here: limits.store is empty.")
    days = number_wanted("days", USUAL_COST_DAYS, MOST_COST_DAYS)
    by = next((key for key in BY if key == request.args.get("by", "user")), None)
    if by is None:
        raise BadRequest(f"by must be one of {', '.join(BY)}.", field="by")
    since = days_before(worker.now(), days)
    sums = totals(ledger.costs(since), by)
    if wants_json():
        return json_response(plain({"since": since, "by": by, "totals": [as_json(row) for row in sums]}))
    rows = [(row, money_text(row.money)) for row in sums[:MOST_ROWS]]
    values = {"rows": rows, "by": by, "all_by": BY, "names": cost_names(reader.translate), "days": days}
    return page(worker, reader, "costs.html", {**values, "left_out": len(sums) - len(rows)})


def as_json(total: CostTotal) -> dict[str, object]:
    """Return one total as programs read it; `money` is a decimal text, null where a price is missing."""
    return {
        "name": total.name,
        "calls": total.calls,
        "estimatedCalls": total.estimated,
        "inputTokens": total.use.input,
        "cachedTokens": total.use.cached,
        "outputTokens": total.use.output,
        "money": None if total.money is None else money_text(total.money),
    }
