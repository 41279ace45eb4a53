"""The names of tables and databases in a DDL statement, and the statement with other names in their place.

A statement is cut into tokens, and the places where its grammar has the name of a table are looked up; all else stays as it was written:

    CREATE|DROP|ALTER DATABASE name
    CREATE TABLE name … LIKE name … REFERENCES name        DROP TABLE|VIEW name, …        TRUNCATE TABLE name
    RENAME TABLE name TO name, …                            RECOVER|FLASHBACK TABLE name [TO name]
    ALTER TABLE name … RENAME TO name … REFERENCES name … WITH TABLE name
    CREATE|DROP INDEX … ON name
    CREATE VIEW name … AS query                             (the tables of the query as sqlglot finds them)

What is not understood is refused: a wrong name would change another table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tidemark.encode.errors import UnknownStatement

# (database, table); the table is "" where a database is meant.
Qualified = tuple[str, str]

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | /\*(?!!|\+|T!|M!).*?(?:\*/|\Z) | --(?=\s|\Z)[^\n]* | \#[^\n]* )
  | (?P<executed> /\*.*?(?:\*/|\Z) )
  | (?P<text> '(?:[^'\\]|\\.|'')*'? | "(?:[^"\\]|\\.|"")*"? )
  | (?P<quoted> `(?:[^`]|``)*` )
  | (?P<number> \.?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?(?![\w$]) )
  | (?P<word> [\w$]+ )
  | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
# Words of a comment that a server executes, behind which the name of a table could be.
_NAMING_WORDS = re.compile(r"\b(?:table|references|like|rename|view|database|schema)\b", re.IGNORECASE)
_DATABASE = ("DATABASE", "SCHEMA")
# What may follow ALTER DATABASE where it has no name.
_DATABASE_OPTIONS = ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION", "PLACEMENT", "SET")
_CREATED = ("TABLE", "INDEX", "VIEW", "SEQUENCE", *_DATABASE)
_DROPPED = ("TABLE", "TABLES", "INDEX", "VIEW", "SEQUENCE", *_DATABASE)


@dataclass(frozen=True)
class Name:
    """Where a name stands in a statement, and what it says."""

    start: int
    end: int
    # "" where the statement does not say.
    schema: str
    # "" for a database.
    table: str
    # The name that a rename gives.
    is_new: bool = False
    # What a table of a query is called in the rest of the query.
    alias: str = ""


def with_names(query: str, resolve: Callable[[Name], tuple[Qualified, Qualified]]) -> str:
    """The statement with other names. `resolve` says which table or database a name means, and what to write.

    Where no name changes the statement stays as it is; otherwise all of its names are written with their database.
    """
    names = sorted(statement_names(query), key=lambda name: name.start)
    found = [(name, *resolve(name)) for name in names]
    changed = [(name, source) for name, source, target in found if source != target]
    if not changed:
        return query
    _refuse_qualified_columns(query, names, changed)
    parts, place = [], 0
    for name, _, target in found:
        parts += [query[place : name.start], _written(name, target)]
        place = name.end
    return "".join([*parts, query[place:]])


def statement_names(query: str) -> list[Name]:
    """The names of tables and databases in a statement; UnknownStatement where they cannot be told for sure."""
    reader = _Reader(_tokens(query))
    verb = reader.take()
    if verb.word == "CREATE":
        kind = reader.find(*_CREATED)
        return _view(query) if kind == "VIEW" else _create(reader, kind)
    known = {
        "DROP": _drop,
        "ALTER": _alter,
        "RENAME": _rename,
        "TRUNCATE": _truncate,
        "RECOVER": _recover,
        "FLASHBACK": _recover,
    }
    if verb.word not in known:
        raise UnknownStatement(f"statements that begin with {verb.text or 'nothing'!r:.40} are not known")
    return known[verb.word](reader)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """In capitals; a name in quotes is no word."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


def _tokens(query: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(query):
        if match.lastgroup == "executed" and _NAMING_WORDS.search(match.group()):
            raise UnknownStatement(f"the comment {match.group()!r:.80} may name a table")
        if match.lastgroup not in ("space", "executed"):
            found.append(_Token(match.lastgroup, match.group(), match.start(), match.end()))
    while found and found[-1].text == ";":
        found.pop()
    if any(token.text == ";" for token in found):
        raise UnknownStatement("it is more than one statement")
    return found


class _Reader:
    def __init__(self, tokens: list[_Token]):
        self._tokens, self._place = tokens, 0
        end = tokens[-1].end if tokens else 0
        self._end = _Token("end", "", end, end)

    def peek(self, ahead: int = 0) -> _Token:
        place = self._place + ahead
        return self._tokens[place] if place < len(self._tokens) else self._end

    def take(self) -> _Token:
        token = self.peek()
        self._place += 1
        return token

    def accept(self, *words: str) -> bool:
        """Pass over these words, if they are next."""
        if any(self.peek(ahead).word != word for ahead, word in enumerate(words)):
            return False
        self._place += len(words)
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise UnknownStatement(f"{word} was expected in front of {self.peek().text!r:.40}")

    def find(self, *words: str) -> str:
        """Go to behind the next of these words."""
        while self.peek().kind != "end":
            word = self.take().word
            if word in words:
                return word
        raise UnknownStatement(f"{' or '.join(words)} was expected")

    def name(self, is_new: bool = False) -> Name:
        first = self._name()
        if self.peek().text != ".":
            return Name(first.start, first.end, "", first.name, is_new)
        self.take()
        second = self._name()
        return Name(first.start, second.end, first.name, second.name, is_new)

    def database(self) -> Name:
        token = self._name()
        return Name(token.start, token.end, token.name, "")

    def names(self) -> list[Name]:
        found = [self.name()]
        while self.peek().text == ",":
            self.take()
            found.append(self.name())
        return found

    def _name(self) -> _Token:
        token = self.take()
        if not token.is_name:
            raise UnknownStatement(f"a name was expected in place of {token.text!r:.40}")
        return token


def _create(reader: _Reader, kind: str) -> list[Name]:
    reader.accept("IF", "NOT", "EXISTS")
    if kind in _DATABASE:
        return [reader.database()]
    if kind == "INDEX":
        reader.find("ON")
        return [reader.name()]
    found = [reader.name()]
    if kind == "TABLE":
        if reader.peek().text == "(" and reader.peek(1).word == "LIKE":
            reader.take()
        if reader.accept("LIKE"):
            found.append(reader.name())
        found += _in_definitions(reader)
    return found


def _drop(reader: _Reader) -> list[Name]:
    kind = reader.find(*_DROPPED)
    reader.accept("IF", "EXISTS")
    if kind in _DATABASE:
        return [reader.database()]
    if kind == "INDEX":
        reader.find("ON")
        return [reader.name()]
    return reader.names()


def _alter(reader: _Reader) -> list[Name]:
    kind = reader.take()
    if kind.word in _DATABASE:
        is_nameless = reader.peek().word in _DATABASE_OPTIONS
        return [Name(kind.end, kind.end, "", "") if is_nameless else reader.database()]
    if kind.word == "IGNORE":
        kind = reader.take()
    if kind.word not in ("TABLE", "SEQUENCE"):
        raise UnknownStatement(f"ALTER {kind.text!r:.40} is not known")
    reader.accept("IF", "EXISTS")
    return [reader.name(), *_in_definitions(reader)]


def _in_definitions(reader: _Reader) -> list[Name]:
    """Names behind the first one of CREATE TABLE and ALTER TABLE. The words that announce them are reserved: no column is called so."""
    found = []
    while reader.peek().kind != "end":
        word = reader.take().word
        if word == "REFERENCES" or (word == "WITH" and reader.accept("TABLE")):
            found.append(reader.name())
        elif word == "RENAME" and reader.peek().word not in ("COLUMN", "INDEX", "KEY"):
            if reader.peek().word in ("TO", "AS") or reader.peek().text == "=":
                reader.take()
            found.append(reader.name(is_new=True))
        elif word in ("SELECT", "UNION"):
            raise UnknownStatement(f"it has a {word}")
    return found


def _rename(reader: _Reader) -> list[Name]:
    if not reader.accept("TABLES"):
        reader.expect("TABLE")
    found = []
    while True:
        found.append(reader.name())
        reader.expect("TO")
        found.append(reader.name(is_new=True))
        if reader.take().text != ",":
            return found


def _truncate(reader: _Reader) -> list[Name]:
    reader.accept("TABLE")
    return [reader.name()]


def _recover(reader: _Reader) -> list[Name]:
    reader.expect("TABLE")
    if reader.peek().word == "BY":
        raise UnknownStatement("it does not name its table")
    found = [reader.name()]
    if reader.accept("TO"):
        found.append(reader.name(is_new=True))
    return found


def _view(query: str) -> list[Name]:
    # Loaded for the few that need it.
    import sqlglot
    from sqlglot import expressions as exp

    try:
        tree = sqlglot.parse_one(query, dialect="mysql")
    except sqlglot.errors.SqlglotError as problem:
        raise UnknownStatement(f"its query cannot be read: {str(problem).splitlines()[0]}") from None
    if not isinstance(tree, exp.Create):
        raise UnknownStatement("its query cannot be read")
    own = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    found = []
    for table in tree.find_all(exp.Table):
        parts = [part for part in (table.args.get("db"), table.this) if part]
        if not all(isinstance(part, exp.Identifier) for part in parts) or table.args.get("catalog"):
            raise UnknownStatement(f"{table.sql(dialect='mysql')!r:.80} in its query is no table")
        schema, name = table.db, table.name
        if not schema and name.upper() == "DUAL":
            continue
        if not schema and any(cte.alias.lower() == name.lower() for cte in tree.find_all(exp.CTE)):
            if any(cte.alias.lower() == name.lower() for cte in _around(table, exp.CTE)):
                raise UnknownStatement(f"{name!r} is the name of a query and of what it reads")
            continue
        if not all("start" in part.meta for part in parts):
            raise UnknownStatement(f"where {name!r} stands is not known")
        alias = "" if table is own or table.alias else name
        found.append(Name(parts[0].meta["start"], parts[-1].meta["end"] + 1, schema, name, alias=alias))
    return found


def _around(node, kind: type):
    """The nodes of a kind that a node is in."""
    while node is not None:
        if isinstance(node, kind):
            yield node
        node = node.parent


def _refuse_qualified_columns(query: str, names: list[Name], changed: list[tuple[Name, Qualified]]) -> None:
    """Columns may be written with their table, `orders.id`, and would be left behind. In a query the alias keeps the name of the table."""
    left = {part.lower() for _, (schema, table) in changed for part in (schema, table) if part}
    tokens = _tokens(query)
    is_in_query = any(name.alias for name in names)
    for first, dot, second, following in zip(
        tokens, tokens[1:], tokens[2:], [*tokens[3:], None], strict=False
    ):
        if dot.text != "." or not (first.is_name and second.is_name) or first.name.lower() not in left:
            continue
        if any(name.start <= first.start < name.end for name in names):
            continue
        if not is_in_query or (following is not None and following.text == "."):
            raise UnknownStatement(
                f"it names a column with its table: {query[first.start : second.end]!r:.80}"
            )


def _written(name: Name, target: Qualified) -> str:
    schema, table = target
    if not table:
        return " " * (name.start == name.end) + quote(schema)
    alias = f" AS {quote(name.alias)}" if name.alias and name.alias != table else ""
    return f"{quote(schema)}.{quote(table)}{alias}"


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
