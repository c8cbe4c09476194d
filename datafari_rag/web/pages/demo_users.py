"""
The demo's users: the one way in which a page may say who its reader is (contract §8).

They exist only with `demo.users=true`, which is refused unless the server listens to this machine alone. The cookie is
signed, and believed only from this machine (`adapters/identity/demo.py`).
"""

from __future__ import annotations

DEMO_USERS = ("alice", "bob", "admin")
"""The users in the menu, besides the anonymous user; the demo's users.json has their rights."""

QUESTIONS = (
    "How do I copy a file in Python?",
    "How are Enums and Flags different?",
    "What does VACUUM do?",
)
"""What the demo's first page proposes."""

COOKIE = "datafari_rag_demo_user"
PURPOSE = "demo user"
LIFE_S = 12 * 3600
