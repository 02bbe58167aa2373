"""Who may ask: the names the server is called by, the pages that may speak to it, and the token.

A browser lets any web page send requests here, under its own name if its name is made to lead to this computer (DNS
rebinding). So Host and Origin are read as they came and compared with a list; nothing stands in for what is odd.
"""

import ipaddress
import re
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from psal.app.refusals import RefusedError

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::([0-9]{1,5}))?")
PAGES = ("/", "/inside", "/api")
OTHER_NAME = "this server is not called by that name: use the address that psal app printed"
OTHER_PAGE = "requests of other pages are not served"
NO_TOKEN = "open the address with the token that psal app printed"
ONE_YEAR = 31_536_000  # seconds that cookies are kept; what they stand for ends long before


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches a server that listens there.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Access:
    """The rules of one server.

    Args:
        host: that it listens on.
        port: that it listens on.

    Attributes:
        token: required with every request if other computers reach the server; else None.
    """

    def __init__(self, host: str, port: int) -> None:
        self._port = port
        self.cookie = f"psal-session-{port}"  # cookies don't tell ports apart
        self._token_cookie = f"psal-token-{port}"
        self.token = None if is_loopback(host) else secrets.token_urlsafe(24)
        self._names = {"localhost", "127.0.0.1", "[::1]", _bracketed(host)}
        self._any_address = self.token is not None
        if self.token is not None:
            own = socket.gethostname().lower()
            self._names |= {own, f"{own}.local", socket.getfqdn().lower()}

    def check(self, scope: Scope) -> Response | None:
        """Check a request.

        Returns:
            A redirect to the same address without the token, if it had one; else None.

        Raises:
            RefusedError: if it must not be served.
        """
        host = self._only(scope, b"host")
        if host is None or not self._is_own_name(host):
            raise RefusedError(421, OTHER_NAME)
        origins = self._all(scope, b"origin")
        if any(origin.lower() != f"http://{host.lower()}" for origin in origins):
            raise RefusedError(403, OTHER_PAGE)
        if any(site not in ("same-origin", "none") for site in self._all(scope, b"sec-fetch-site")) and not (
            scope["method"] == "GET" and scope["path"] in PAGES and self._all(scope, b"sec-fetch-mode") == ["navigate"]
        ):
            raise RefusedError(403, OTHER_PAGE)
        return self._check_token(scope) if self.token is not None else None

    def cookie_of(self, scope: Scope, name: str | None = None) -> str | None:
        """Value of a cookie; the session's by default."""
        try:
            found = SimpleCookie("; ".join(self._all(scope, b"cookie"))).get(name or self.cookie)
        except CookieError:
            return None
        return found.value if found else None

    def _check_token(self, scope: Scope) -> Response | None:
        assert self.token is not None
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=50)
        given = query.pop("token", [])
        bearer = [value[7:] for value in self._all(scope, b"authorization") if value.lower().startswith("bearer ")]
        kept = self.cookie_of(scope, self._token_cookie)
        if not any(_equal(value, self.token) for value in [*given, *bearer, *([kept] if kept else [])]):
            raise RefusedError(401, NO_TOKEN)
        if given and scope["method"] == "GET" and scope["path"] in PAGES:
            rest = urlencode(query, doseq=True)
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(self._token_cookie, self.token, max_age=ONE_YEAR, httponly=True, samesite="strict")
            return answer
        return None

    def _is_own_name(self, host: str) -> bool:
        found = HOST.fullmatch(host.lower())
        if found is None or int(found[2] or 80) != self._port:
            return False
        return found[1] in self._names or (self._any_address and _is_address(found[1]))

    @staticmethod
    def _all(scope: Scope, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in scope["headers"] if key == name]

    def _only(self, scope: Scope, name: bytes) -> str | None:
        found = self._all(scope, name)
        return found[0] if len(found) == 1 else None


def _is_address(name: str) -> bool:
    """Whether a name is an IP address, which no foreign name server can make lead here."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _bracketed(host: str) -> str:
    plain = host.strip("[]").lower()
    return f"[{plain}]" if ":" in plain else plain


def _equal(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), expected.encode())
