"""Which addresses of a PostgreSQL database may be kept: those that can hold no secret.

The address stands in every pickle of an estimator and in messages. libpq has many ways to write
a password, and new versions bring new ones; so what is allowed is listed, not what is forbidden.
"""

import re
from urllib.parse import unquote

from skdp.exceptions import LedgerError

_NAME = r"[\w.+-]+"
_HOST = r"(?:[\w.-]*|[0-9A-Fa-f:.]+(?:%\w+)?|/[\w./+-]*)"
_FILE = r"[\w./~+-]+"
# Settings of the server's own have no dot in their names; one with a dot may hold anything.
_SETTING = r"-c ?[a-z_]+=(?:on|off|local|remote_write|remote_apply|\d+(?:ms|s|min)?)"
_HARMLESS = {
    "options": rf"(?: *{_SETTING})* *",
    "user": rf"{_NAME}(?:@[\w.-]+)?",
    "dbname": _NAME,
    "host": rf"{_HOST}(?:,{_HOST})*",
    "hostaddr": rf"{_HOST}(?:,{_HOST})*",
    "port": r"[\d,]*",
    "service": _NAME,
    "application_name": _NAME,
    "sslrootcert": _FILE,
    "sslcrl": _FILE,
    "sslcrldir": _FILE,
    "sslcert": _FILE,
    "sslkey": _FILE,
} | dict.fromkeys(
    (
        "channel_binding client_encoding connect_timeout fallback_application_name "
        "gssdelegation gssencmode gsslib keepalives keepalives_count keepalives_idle "
        "keepalives_interval krbsrvname load_balance_hosts max_protocol_version "
        "min_protocol_version require_auth requirepeer ssl_max_protocol_version "
        "ssl_min_protocol_version sslcertmode sslcompression sslmode sslnegotiation sslsni "
        "target_session_attrs tcp_user_timeout"
    ).split(),
    r"!?[\w.,-]*",
)


def driver():
    """Return the module psycopg."""
    try:
        import psycopg
    except ImportError:
        needs = "a postgresql:// ledger needs psycopg: install skdp[postgres]"
        raise LedgerError(needs) from None
    return psycopg


def check_address(address):
    """Refuse an address in which libpq, or a careless writer, could see a secret.

    Parameters
    ----------
    address : str
        ``postgresql://...``; no part of it is repeated in an error.

    Raises
    ------
    ValueError
        If libpq cannot read it, or reads more in it than words that are known to be harmless.
    LedgerError
        If psycopg is not installed.
    """
    psycopg = driver()
    try:
        found = psycopg.conninfo.conninfo_to_dict(address)
    except (psycopg.Error, ValueError):
        found = None
    # Errors of the driver quote the address; raised here, these are not chained to them.
    if found is None:
        raise ValueError(
            "libpq cannot read the address of the ledger; give "
            "postgresql://user@host:port/database, without a password"
        )
    if _says_twice(address):
        raise ValueError("the address of a ledger must give each keyword once")
    for keyword, value in found.items():
        pattern = _HARMLESS.get(keyword)
        if pattern is None or not re.fullmatch(pattern, str(value)):
            raise ValueError(
                "the address of a ledger must hold no password, and nothing that could be one: "
                f"it is pickled with every estimator; remove or simplify its {keyword!r}; use a "
                "password file, PGPASSWORD or a service file"
            )


def _says_twice(address):
    """Say whether an address has a part that a later one overrides, which libpq does not show."""
    authority, _, query = address.partition("://")[2].partition("?")
    keywords = [pair.partition("=")[0] for pair in unquote(query).split("&") if pair]
    server, _, database = authority.partition("/")
    user, _, host = server.rpartition("@")
    said = {"user": user, "host": host, "port": ":" in host, "dbname": database}
    before = {keyword for keyword, value in said.items() if value}
    return len(set(keywords)) < len(keywords) or bool(before & set(keywords))
