"""What is to happen in a world: its settings, its readers, its faults and changes; drawn before it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.simulation.readers import SPEECHES, STREAMS, Visit
from tests.simulation.servers import SimulatedAuthority, SimulatedModel, SimulatedSolr
from tests.simulation.truth import USERS

HORIZON_S = 60.0
ASKING = (*USERS[:1] * 4, *USERS[1:2] * 2, USERS[2], None)
"""Who asks how often: requests of one user at the same time share most."""

FAULTS = {
    "solr-a": SimulatedSolr.faults,
    "solr-b": SimulatedSolr.faults,
    "authority": SimulatedAuthority.faults,
    "model-a": SimulatedModel.faults,
    "model-b": SimulatedModel.faults,
}


@dataclass(frozen=True)
class Change:
    """One thing that happens at *at_s*: *kind* names who does it in `World`."""

    at_s: float
    kind: str
    what: str = ""
    more: str = ""
    chance: float = 0.0
    lasts_s: float = 0.0
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Plan:
    """All of it."""

    settings: dict[str, str]
    visits: tuple[Visit, ...]
    changes: tuple[Change, ...]
    waits: dict[str, float] = field(default_factory=dict)
    """Constants of the service that a world has shorter, as it lasts a minute: by their names in its groups."""


def planned(random: Random) -> Plan:
    """Draw a plan."""
    moments = tuple(random.uniform(0, HORIZON_S) for _ in range(3))
    changes = [_change(random, moments) for _ in range(random.randint(2, 8))]
    waits: dict[str, float] = {"connect_s": 1.0}
    settings = _settings(random, waits)
    visits = _visits(random, moments, float(settings["security.cache_s"]))
    return Plan(settings, tuple(visits), tuple(changes), waits)


def _settings(random: Random, waits: dict[str, float]) -> dict[str, str]:
    """Draw what the file says, and into *waits* what it cannot say."""
    nodes = ["http://solr-a:8983/solr/FileShare", "http://solr-b:8983/solr/FileShare"]
    fallbacks = ("", "http://model-b/v1/chat/completions", "builtin:extractive")
    solr_url = ",".join(nodes[: random.randint(1, 2)])
    waits["solr_retries"] = random.randint(0, 1)
    settings = {
        "solr.url": solr_url,
        "solr.limits.wait_s": "3",
        "security.identity": "header",
        "security.header": "X-Remote-User",
        "security.anonymous": random.choice(("public", "refuse")),
        "security.tokens": "authority",
        "security.authority.url": "http://authority:8080/mcf",
        "security.cache_s": random.choice(("0", "1", "5", "30")),
        "rag.api.endpoint": "http://model-a/v1/chat/completions",
        "llm.fallback": random.choice(fallbacks),
        "llm.limits.retries": str(random.randint(0, 2)),
        "llm.limits.first_token_s": "4",
        "llm.limits.stall_s": "4",
        "llm.limits.total_s": "15",
        "llm.limits.breaker_failures": str(random.choice((0, 2, 3))),
    }
    waits["breaker_reset_s"] = random.choice((5, 10))
    return settings | {
        "server.limits.streams": str(random.randint(2, 4)),
        "server.rate.user": random.choice(("0", "0", "4")),
        "server.secret": "a secret of the simulated world, long enough",
        "audit.folder": "audit",
    }


def _visits(random: Random, moments: tuple[float, ...], cache_s: float) -> list[Visit]:
    """Draw readers, most of them in crowds: what comes at the same time is what goes wrong."""
    visits = []
    for number in range(random.randint(6, 12)):
        at_s = random.choice(moments) + random.choice((0.0, 0.0, 0.01, 0.2, 0.6, 1.0, cache_s + 0.9))
        speech = random.choice((*SPEECHES, *STREAMS))
        wanted = f"doc{random.randint(0, 5)}" if speech.name == "document" else f"qx{number}k?"
        visit = Visit(number, random.choice(ASKING), speech, f"What is the budget in report {wanted}")
        visit.began = at_s
        visit.write_s = random.choice((0.0, 0.0, 0.0, 0.1, 3.0, 5.0))
        if random.random() < 0.2:
            visit.leaves_after_s = random.choice((0.0, 0.005, 0.1, 0.5, 1.2, 3.0))
        visits.append(visit)
    return visits


def _change(random: Random, moments: tuple[float, ...]) -> Change:
    lasts_s = random.choice((0.5, 3.0, 10.0, 25.0))
    # Most things happen while somebody asks, or a little before.
    at_s = random.choice(
        (random.uniform(0, HORIZON_S), random.choice(moments) + random.choice((-3.0, -0.5, 0.005, 0.1, 0.4, 0.8, 1.5)))
    )
    kind = random.choice(("weather",) * 4 + ("tokens",) * 4 + ("rights",) * 3 + ("settings", "disk", "clock"))
    if kind == "weather":
        server = random.choice((*FAULTS, "authority", "model-a", "model-a"))
        return Change(at_s, kind, server, random.choice(FAULTS[server]), random.choice((0.3, 1.0)), lasts_s)
    if kind == "settings":
        changed = random.choice(
            (("security.cache_s", "2"), ("llm.limits.retries", "1"), ("server.limits.streams", "3"))
        )
        return Change(at_s, kind, changed[0], random.choice(("", "broken")), 0.0, lasts_s, (changed,))
    what = random.choice(ASKING[:-1]) if kind == "tokens" else ""
    more = {"rights": ("", "deleted"), "disk": ("full", "slow")}.get(kind, ("",))
    jump_s = random.choice((-3600.0, -1.0, 7200.0)) if kind == "clock" else 0.0
    return Change(at_s, kind, what, random.choice(more), jump_s, lasts_s)
