"""Secrets stay out of logs, error texts, documentation and everything else that a person or a tool may keep.

A URI may hold secrets in two places: the password of its authority (`//user:password@host`) and query options (`secret-access-key=…`),
where an option may itself be a URI, percent-encoded or not. `redact_uri` blanks them in one URI, `redact` in a longer text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from tidemark.errors import TidemarkError

BLANK = "xxxxx"

# Names that TiCDC, brokers and object stores use for secrets, with - or _ or neither between the words.
_SECRET_WORDS = (
    r"password|passwd|passphrase|pwd|secret|token|credential|signature|private[-_]?key|access[-_]?key|account[-_]?key|api[-_]?key(?!tab)"
    r"|shared[-_]?key|encryption[-_]?key|kms[-_]?key|ssl[-_]?key|key[-_]file|external[-_]?id"
)
_SECRET_NAME = re.compile(rf"key|sig|[\w.-]*(?:{_SECRET_WORDS})[\w.-]*", re.IGNORECASE)
_URI = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# What follows host: when it is a port and the @ comes later, in the query.
_PORT_THEN_QUERY = re.compile(r"[0-9]+[^@?]*\?")
_ASSIGNMENT = re.compile(
    rf"(?P<name>(?<![\w.-])[\w.-]*(?:{_SECRET_WORDS})[\w.-]*)(?P<equals>\s*=\s*)(?P<value>\"[^\"]*\"|'[^']*'|[^&\s'\",;#]+)",
    re.IGNORECASE,
)


_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class MissingVariable(TidemarkError):
    """An environment variable that a URI names is not set."""


def is_secret_name(name: str) -> bool:
    """Whether an option of this name holds a secret. `password-env` does not: it names the variable that does."""
    return _SECRET_NAME.fullmatch(name) is not None and not name.lower().endswith(("-env", "_env"))


def redact_uri(uri: str) -> str:
    """`uri` as it may be shown: the password and secret options blanked."""
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return _ASSIGNMENT.sub(rf"\g<name>\g<equals>{BLANK}", uri)
    body = _redact_authority(uri[scheme.end() :])
    head, question, query = body.partition("?")
    return scheme[0] + head + question + "&".join(map(_redact_option, query.split("&")))


def redact(text: str) -> str:
    """`text` with the secrets of every URI and every option in it blanked."""
    text = _URI.sub(lambda found: redact_uri(found[0]), text)
    return _ASSIGNMENT.sub(rf"\g<name>\g<equals>{BLANK}", text)


def redact_unparsed(text: str) -> str:
    """A text that was meant to be a URI and is none, as it may be shown. Whatever may be a password is blanked, rather too much than too little."""
    plain = unquote(text)
    head, at, tail = plain.rpartition("@")
    if at:
        # The : of a scheme is followed by a slash.
        colon = re.search(r":(?!/)", head)
        head = f"{head[: colon.end()]}{BLANK}" if colon else BLANK
    start, question, query = f"{head}{at}{tail}".partition("?")
    return redact(start + question + "&".join(map(_redact_option, query.split("&"))))


def has_plain_secret(uri: str) -> bool:
    """Whether a secret stands in the URI itself, rather than as `${NAME}` of an environment variable."""
    masked = _PLACEHOLDER.sub(BLANK, uri)
    return redact_uri(masked) != masked


def plain_secrets(uri: str) -> list[str]:
    """Where the secrets of `has_plain_secret` stand: the names of options, and `the password`."""
    scheme = _SCHEME.match(masked := _PLACEHOLDER.sub(BLANK, uri))
    if scheme is None:
        return [found["name"] for found in _ASSIGNMENT.finditer(masked) if found["value"] != BLANK]
    given = masked[scheme.end() :]
    body = _redact_authority(given)
    options = body.partition("?")[2].split("&")
    found = [unquote(option.partition("=")[0]) for option in options if _redact_option(option) != option]
    return ["the password"] * (body != given) + found


def expand_environment(uri: str, environ: Mapping[str, str]) -> str:
    """`uri` with every `${NAME}` replaced by the environment variable, percent-encoded."""
    missing = sorted({found[1] for found in _PLACEHOLDER.finditer(uri) if found[1] not in environ})
    if missing:
        raise MissingVariable(
            f"the sink URI names environment variables that are not set: {', '.join(missing)}"
        )
    return _PLACEHOLDER.sub(lambda found: quote(environ[found[1]], safe=""), uri)


def _redact_authority(body: str) -> str:
    """A password may hold any character where it was not encoded, so it reaches to the last @."""
    user, colon, rest = body.partition(":")
    _, at, host = rest.rpartition("@")
    is_password = (
        colon and at and not any(char in user for char in "/?@") and not _PORT_THEN_QUERY.match(rest)
    )
    return f"{user}:{BLANK}@{host}" if is_password else body


def _redact_option(pair: str) -> str:
    name, _, value = pair.partition("=")
    if not value:
        return pair
    if is_secret_name(unquote(name)):
        return f"{name}={BLANK}"
    if "://" in value:
        return f"{name}={redact_uri(value)}"
    plain = unquote(value)
    if "://" in plain:
        shown = redact_uri(plain)
        return pair if shown == plain else f"{name}={quote(shown, safe='')}"
    return pair
