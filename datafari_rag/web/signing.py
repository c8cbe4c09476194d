"""
Signed texts: a form's token, the cookie of the demo's menu. What is signed for one purpose is nothing for another.

Signing proves that we wrote it; it hides nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping

from itsdangerous import BadData, URLSafeTimedSerializer

FORM_LIFE_S = 12 * 3600
"""How long a form may lie open."""

TOKEN_FIELD = "csrf_token"  # noqa: S105 - the field's name
TOKEN_HEADER = "x-csrf-token"  # noqa: S105 - the header's name, for scripts


class UserSigning:
    """Signs texts for one purpose and one user (`core.answer.session_state.Signing`)."""

    def __init__(self, serializer: URLSafeTimedSerializer) -> None:
        """Sign with *serializer*."""
        self._serializer = serializer

    def signed(self, text: str) -> str:
        """Return *text* with a signature and the time."""
        return str(self._serializer.dumps(text))

    def opened(self, signed: str, *, max_age_s: int | None = None) -> str | None:
        """Return the text that was signed so, at most *max_age_s* ago where that is given, else None."""
        try:
            text = self._serializer.loads(signed, max_age=max_age_s)
        except (BadData, UnicodeError):
            return None
        return text if isinstance(text, str) else None


class LazySigning:
    """A `UserSigning` that is made when it is first used: what it is made of may cost a look-up."""

    def __init__(self, make: Callable[[], UserSigning]) -> None:
        """Make nothing yet."""
        self._make = make

    def signed(self, text: str) -> str:
        """Return *text* as `UserSigning` does. Raises: what making it raises."""
        return self._make().signed(text)

    def opened(self, signed: str) -> str | None:
        """Return the text as `UserSigning` does. Raises: what making it raises."""
        return self._make().opened(signed)


class Signer:
    """One secret for all workers: `server.secret`, else one made before the workers are."""

    def __init__(self, secret: str = "") -> None:
        """Take *secret*; an empty one is replaced by a random one of this process."""
        self._secret = secret or secrets.token_urlsafe(32)

    def signed(self, purpose: str, text: str) -> str:
        """Return *text* with a signature for *purpose* and the time."""
        return UserSigning(self._for(purpose)).signed(text)

    def opened(self, purpose: str, signed: str | None, *, max_age_s: int) -> str | None:
        """Return the text that was signed for *purpose* at most *max_age_s* ago, else None."""
        return UserSigning(self._for(purpose)).opened(signed or "", max_age_s=max_age_s)

    def digest(self, purpose: str, data: bytes) -> str:
        """Return a word for *data* that only this service can make, so that it cannot be guessed."""
        return hmac.new(f"{purpose} {self._secret}".encode(), data, hashlib.sha256).hexdigest()

    def for_user(self, purpose: str, user_name: str | None) -> UserSigning:
        """Return what signs for *purpose* and one user, None the anonymous: no text of another user opens."""
        if user_name is None:
            return UserSigning(self._for(purpose))
        return UserSigning(self._for(f"{purpose} {self.digest('user', user_name.encode('utf-8', 'surrogatepass'))}"))

    def form_token(self, user_name: str) -> str:
        """Return the token that a form of this user carries."""
        return self.signed("form", user_name)

    def is_own_form(self, user_name: str, token: str | None, headers: Mapping[str, str]) -> bool:
        """
        Say whether a POST comes from a page of this service that this user opened.

        The token must be theirs, and the browser must not say that another site sent it. *headers* have lower-case
        names.
        """
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        return self.opened("form", token, max_age_s=FORM_LIFE_S) == user_name

    def _for(self, purpose: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._secret, salt=f"datafari-rag {purpose}")
