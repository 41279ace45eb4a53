"""What a check of a configuration says: a finding, and the error that carries all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tidemark.config.secrets import BLANK, redact, redact_uri
from tidemark.errors import TidemarkError

ERROR = "error"
NOTE = "note"
# Given as the value of a finding whose value is a secret.
HIDDEN = object()


@dataclass(frozen=True)
class Finding:
    """One sentence about one key. `value` is what was given, as text and without secrets; `allowed` is what may be given."""

    severity: str
    key: str
    message: str
    value: str = ""
    allowed: str = ""

    def __str__(self) -> str:
        shown = f" = {self.value}" if self.value else ""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{self.key}{shown}: {self.message}{allowed}"

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


class Findings(list):
    """The findings of one check, in the order in which they were met."""

    def error(self, key: str, message: str, value: object = None, allowed: str = "") -> None:
        self._add(ERROR, key, message, value, allowed)

    def note(self, key: str, message: str, value: object = None, allowed: str = "") -> None:
        self._add(NOTE, key, message, value, allowed)

    def unapplied(self, key: str, instead: str) -> None:
        """A setting that nothing in Tidemark acts on, and what happens instead."""
        self.note(key, f"is accepted, but Tidemark does not apply it: {instead}")

    def _add(self, severity: str, key: str, message: str, value: object, allowed: str) -> None:
        self.append(Finding(severity, key, redact(message), _shown(value), allowed))

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self if finding.severity == ERROR]


def _shown(value: object) -> str:
    if value is None or value is HIDDEN:
        return BLANK if value is HIDDEN else ""
    # A text is redacted before it gets its quotes: a password may have quotes of its own.
    return redact(repr(redact_uri(value))) if isinstance(value, str) else redact(repr(value))


class ConfigError(TidemarkError, ValueError):
    """The configuration cannot be used. `findings` has every reason, not only the first."""

    def __init__(self, findings: list[Finding]):
        self.findings = tuple(findings)
        head = (
            "the configuration has 1 error"
            if len(findings) == 1
            else f"the configuration has {len(findings)} errors"
        )
        super().__init__("\n".join([head, *(f"  {finding}" for finding in findings)]))
