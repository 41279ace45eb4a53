"""An expression of MySQL as one of Spark.

Every kind of node and every function has a method here that says what it means; there is no default. Where Spark means something else by the same words, the
method writes what MySQL means: division by zero is NULL, 'a ' equals 'a', a text that is compared with a number is its leading number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from tidemark.filter_expressions.moments import MIDNIGHT, moment_text
from tidemark.filter_expressions.parse import ExpressionError, parsed
from tidemark.filter_expressions.patterns import like_pattern, regexp_pattern
from tidemark.filter_expressions.values import (
    ANY,
    NULL,
    SPARK_DIGITS,
    Collation,
    Kind,
    Value,
    column_value,
    named_collation,
    number_literal,
    text_literal,
)

_NUMERIC = (Kind.NUMBER, Kind.REAL, Kind.BOOL)
_COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_LOOSE = (*_COMPARISONS, exp.Like, exp.RegexpLike, exp.In, exp.Between, exp.Is)
_EQUALITY = ("=", "<>", "<=>")
# Where a text is a number: as much of its beginning as is one.
_LEADING_NUMBER = r"'^\\s*([+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)'"
# Texts that every collation without case compares as ASCII does.
_PLAIN_TEXT = r"'^[\\t\\n\\r\\x20-\\x7E]*$'"
# Letters for which Spark knows more than one capital or small letter, or looks at those around it.
_ODD_LOWER = "İΣ"
_ODD_UPPER = "".join(chr(code) for code in range(0x80, 0x10000) if len(chr(code).upper()) > 1)
_DATE_PARTS = {
    exp.Year: (1, 4),
    exp.Month: (6, 2),
    exp.Day: (9, 2),
    exp.DayOfMonth: (9, 2),
    exp.Hour: (12, 2),
    exp.Minute: (15, 2),
    exp.Second: (18, 2),
}
_FUNCTIONS = (
    "LOWER, UPPER, LENGTH, CHAR_LENGTH, SUBSTRING, LEFT, RIGHT, CONCAT, TRIM, LTRIM, RTRIM, IFNULL, COALESCE, NULLIF, IF, ISNULL, ABS, CEIL, FLOOR, ROUND, "
    "MOD, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, DATE"
)


@dataclass(frozen=True)
class Condition:
    # True where the expression is; never NULL.
    sql: str
    # The columns that it reads, as the table spells them.
    columns: tuple[str, ...]


def check(text: str) -> None:
    """ExpressionError where no table could make sense of an expression."""
    _Translation(None, {}, "").condition(parsed(text))


def condition(
    text: str, columns: Sequence[Mapping[str, Any]], values: Mapping[str, str], where: str
) -> Condition:
    """The expression over the columns of a table.

    `columns`: as in the model table_versions. `values`: the SQL of each, by name. `where`: the rule and the table, for errors that a row can cause.
    """
    translation = _Translation({column["name"].lower(): column for column in columns}, values, where)
    return Condition(translation.condition(parsed(text)), tuple(translation.read))


class _Translation:
    def __init__(
        self, columns: Mapping[str, Mapping[str, Any]] | None, values: Mapping[str, str], where: str
    ):
        self._columns, self._values, self._where = columns, values, where
        self.read: dict[str, None] = {}

    def condition(self, node: exp.Expression) -> str:
        return f"coalesce({self._truth(self._value(node))}, false)"

    def _value(self, node: exp.Expression) -> Value:
        method = _METHODS.get(type(node))
        if method is None:
            raise ExpressionError(
                f"{_shown(node)} is not supported; there are comparisons, arithmetic and {_FUNCTIONS}"
            )
        return method(self, node)

    def _values_of(self, nodes: Iterable[exp.Expression]) -> list[Value]:
        return [self._value(node) for node in nodes]

    # Columns and literals

    def _column(self, node: exp.Column) -> Value:
        _only(node, "this")
        name = node.this.name
        if self._columns is None:
            return ANY
        column = self._columns.get(name.lower())
        if column is None:
            raise ExpressionError(f"there is no column {name}")
        self.read[column["name"]] = None
        return column_value(column, self._values[column["name"]])

    def _literal(self, node: exp.Literal) -> Value:
        text = node.this
        if node.is_string:
            return _text(text)
        if "e" in text.lower():
            return Value(f"{float(text)!r}D", Kind.REAL)
        return number_literal(Decimal(text))

    def _boolean(self, node: exp.Boolean) -> Value:
        return number_literal(Decimal(int(node.this)))

    def _null(self, node: exp.Null) -> Value:
        return NULL

    def _hex(self, node: exp.HexString) -> Value:
        digits = node.this
        raw = bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
        return Value(_bytes_literal(raw), Kind.BYTES, literal=raw)

    def _paren(self, node: exp.Paren) -> Value:
        return self._value(node.this)

    def _moment_literal(self, node: exp.Cast) -> Value:
        """DATE '2025-01-01', TIMESTAMP '2025-01-01 00:00:00'"""
        if not (
            isinstance(node.this, exp.Literal)
            and node.this.is_string
            and node.to.is_type("date", "datetime", "timestamp", "timestamptz")
        ):
            raise ExpressionError(
                f"{_shown(node)} is not supported; CAST and CONVERT are not the same in Spark"
            )
        text = moment_text(node.this.this)
        if node.to.is_type("date"):
            text = f"{text[:10]} {MIDNIGHT}.000000"
        return Value(text_literal(text), Kind.MOMENT)

    # Conditions

    def _truth(self, value: Value) -> str:
        """A value where MySQL wants a condition: numbers are true unless they are 0."""
        if value.kind in (Kind.ANY, Kind.NULL):
            return "cast(null as boolean)"
        if value.kind is Kind.BOOL:
            return value.sql
        if value.kind in (Kind.NUMBER, Kind.REAL):
            return f"({value.sql} <> 0)"
        raise ExpressionError(f"{value.shown} is no condition: compare it with something")

    def _and(self, node: exp.And) -> Value:
        return self._connected(node, "and")

    def _or(self, node: exp.Or) -> Value:
        return self._connected(node, "or")

    def _xor(self, node: exp.Xor) -> Value:
        return self._connected(node, "<>")

    def _connected(self, node: exp.Binary, word: str) -> Value:
        _only(node, "this", "expression", "operator")
        left, right = (self._truth(self._value(side)) for side in (node.this, node.expression))
        return _bool(f"({left} {word} {right})")

    def _not(self, node: exp.Not) -> Value:
        return _bool(f"(not {self._truth(self._value(node.this))})")

    def _comparison(self, node: exp.Binary) -> Value:
        _only(node, "this", "expression")
        sides = [_strict(node, side) for side in (node.this, node.expression)]
        return _bool(self._compared(_COMPARISONS[type(node)], *self._values_of(sides)))

    def _between(self, node: exp.Between) -> Value:
        _only(node, "this", "low", "high")
        value, low, high = (self._value(_strict(node, node.args[name])) for name in ("this", "low", "high"))
        if {low.kind, high.kind} == {Kind.NUMBER, Kind.TEXT}:
            raise ExpressionError("BETWEEN mixes numbers and texts")
        return _bool(f"({self._compared('>=', value, low)} and {self._compared('<=', value, high)})")

    def _in(self, node: exp.In) -> Value:
        _only(node, "this", "expressions")
        value, items = self._value(_strict(node, node.this)), self._values_of(node.expressions)
        if len({item.kind for item in items} - {Kind.NULL, Kind.ANY, Kind.REAL}) > 1:
            raise ExpressionError("IN mixes numbers and texts")
        return _bool("(" + " or ".join(self._compared("=", value, item) for item in items) + ")")

    def _is(self, node: exp.Is) -> Value:
        _only(node, "this", "expression")
        value, wanted = self._value(_strict(node, node.this)), node.expression
        if isinstance(wanted, exp.Null):
            return _bool(f"({value.sql} is null)")
        if isinstance(wanted, exp.Boolean):
            return _bool(f"({self._truth(value)} is {'true' if wanted.this else 'false'})")
        raise ExpressionError(f"{_shown(node)} is not supported")

    def _like(self, node: exp.Like) -> Value:
        _only(node, "this", "expression", "negate")
        value, pattern = self._value(_strict(node, node.this)), _literal_text(node, node.expression)
        if value.kind is Kind.ANY:
            return _bool("null")
        value = self._as_text(node, value)
        sql = value.sql
        if value.collation.ignores_case:
            sql, pattern = self._without_case(value), _plain(pattern).lower()
        made = f"({sql} like {text_literal(like_pattern(pattern))})"
        return _bool(f"(not {made})" if node.args.get("negate") else made)

    def _regexp(self, node: exp.RegexpLike) -> Value:
        _only(node, "this", "expression")
        value, pattern = self._value(_strict(node, node.this)), _literal_text(node, node.expression)
        made = regexp_pattern(pattern)
        if value.kind is Kind.ANY:
            return _bool("null")
        value = self._as_text(node, value)
        sql = value.sql
        if value.collation.ignores_case:
            _plain(pattern)
            sql, made = self._without_case(value), f"(?i){made}"
        return _bool(f"({sql} rlike {text_literal(made)})")

    # How values are compared

    def _compared(self, operator: str, left: Value, right: Value) -> str:
        kinds = {left.kind, right.kind}
        if Kind.ANY in kinds:
            return "cast(null as boolean)"
        if Kind.NULL in kinds:
            known = left if right.kind is Kind.NULL else right
            return f"({known.sql} is null)" if operator == "<=>" else "cast(null as boolean)"
        return "({} {} {})".format(*_between_sides(self._sides(operator, left, right), operator))

    def _sides(self, operator: str, left: Value, right: Value) -> tuple[str, str]:
        """Both sides in one Spark type."""
        kinds = {left.kind, right.kind}
        if Kind.OPAQUE in kinds:
            opaque = left if left.kind is Kind.OPAQUE else right
            raise ExpressionError(
                f"{opaque.shown} cannot be compared: only IS NULL and IS NOT NULL work on it"
            )
        if kinds <= set(_NUMERIC):
            return self._numbers(left, right)
        if kinds == {Kind.MOMENT}:
            return left.sql, right.sql
        if kinds == {Kind.TEXT}:
            return self._texts(operator, left, right)
        if kinds <= {Kind.BYTES, Kind.TEXT}:
            return tuple(self._as_bytes(side) for side in (left, right))
        if kinds == {Kind.MOMENT, Kind.TEXT}:
            return tuple(self._as_moment(side) for side in (left, right))
        if Kind.TEXT in kinds and kinds & set(_NUMERIC):
            return self._numbers(*(self._as_number(side) for side in (left, right)))
        raise ExpressionError(f"{left.shown} and {right.shown} cannot be compared")

    def _numbers(self, left: Value, right: Value) -> tuple[str, str]:
        for year, other in ((left, right), (right, left)):
            if year.is_year and isinstance(other.literal, Decimal) and other.literal < 100:
                raise ExpressionError(f"{year.shown} is a year: write all four digits")
        if Kind.REAL in (left.kind, right.kind):
            return _double(left), _double(right)
        left, right = _number(left), _number(right)
        if left.scale == right.scale == 0:
            return left.sql, right.sql
        whole, scale = max(left.whole, right.whole), max(left.scale, right.scale)
        return tuple(_decimal(side, whole, scale) for side in (left, right))

    def _texts(self, operator: str, left: Value, right: Value) -> tuple[str, str]:
        collation = _common_collation(left, right)
        if (left.is_member or right.is_member) and operator not in _EQUALITY:
            raise ExpressionError(
                f"{left.shown} {operator} {right.shown}: an ENUM or SET is only compared by = and <>"
            )
        if operator not in _EQUALITY and not collation.is_ordered:
            raise ExpressionError(
                f"{left.shown} {operator} {right.shown}: the order of texts is only known for the collations _bin of utf8mb4; say COLLATE utf8mb4_bin"
            )
        return tuple(self._text_key(side, collation) for side in (left, right))

    def _text_key(self, value: Value, collation: Collation) -> str:
        """One text for all that the collation takes for equal."""
        if isinstance(value.literal, str):
            text = _plain(value.literal).lower() if collation.ignores_case else value.literal
            return text_literal(text.rstrip(" ") if collation.ignores_spaces else text)
        sql = self._without_case(value) if collation.ignores_case else value.sql
        return f"rtrim({sql})" if collation.ignores_spaces else sql

    def _without_case(self, value: Value) -> str:
        """Collations without case have tables for letters beyond ASCII, which are not known here."""
        return self._unless(
            f"not {value.sql} rlike {_PLAIN_TEXT}",
            value.sql,
            f"lower({value.sql})",
            f"{value.shown} has a collation without case, and how it compares letters beyond ASCII is not known: say COLLATE utf8mb4_bin",
        )

    def _unless(self, is_bad: str, value: str, made: str, problem: str) -> str:
        message = text_literal(f"{self._where}: {problem}")
        return (
            f"case when {value} is null then null when {is_bad} then raise_error({message}) else {made} end"
        )

    def _as_text(self, node: exp.Expression, value: Value) -> Value:
        if value.kind is Kind.NULL:
            return replace(value, sql="cast(null as string)", kind=Kind.TEXT)
        if value.kind is not Kind.TEXT:
            raise ExpressionError(f"{_shown(node)}: {value.shown} is no text")
        return value

    def _as_bytes(self, value: Value) -> str:
        if value.kind is Kind.BYTES:
            return value.sql
        if isinstance(value.literal, str):
            return _bytes_literal(value.literal.encode())
        raise ExpressionError(f"{value.shown} is a text and is compared with bytes")

    def _as_moment(self, value: Value) -> str:
        if value.kind is Kind.MOMENT:
            return value.sql
        if isinstance(value.literal, str):
            return text_literal(moment_text(value.literal))
        raise ExpressionError(
            f"{value.shown} is a text and is compared with a date or time: only literals can be"
        )

    def _as_number(self, value: Value) -> Value:
        """A text that is compared with a number."""
        if value.kind is not Kind.TEXT:
            return value
        if value.is_member:
            raise ExpressionError(
                f"{value.shown} is an ENUM or SET: compare it with the names of its members"
            )
        if isinstance(value.literal, str):
            try:
                number = Decimal(value.literal.strip())
            except InvalidOperation:
                number = Decimal("NaN")
            if not number.is_finite():
                raise ExpressionError(f"{value.literal!r} is compared with a number, and is none")
            return number_literal(number)
        leading = f"try_cast(regexp_extract({value.sql}, {_LEADING_NUMBER}, 1) as double)"
        return Value(f"if({value.sql} is null, null, coalesce({leading}, 0D))", Kind.REAL, name=value.name)

    # Arithmetic

    def _add(self, node: exp.Binary) -> Value:
        sign = "+" if isinstance(node, exp.Add) else "-"
        left, right = self._operands(node)
        if Kind.ANY in (left.kind, right.kind):
            return ANY
        if Kind.REAL in (left.kind, right.kind):
            return Value(f"({_double(left)} {sign} {_double(right)})", Kind.REAL)
        whole, scale = max(left.whole, right.whole), max(left.scale, right.scale)
        _fitting(node, whole + scale + 1)
        sides = (_decimal(side, whole, scale) for side in (left, right))
        return Value("({} {} {})".format(*_between_sides(tuple(sides), sign)), Kind.NUMBER, whole + 1, scale)

    def _multiply(self, node: exp.Mul) -> Value:
        left, right = self._operands(node)
        if Kind.ANY in (left.kind, right.kind):
            return ANY
        if Kind.REAL in (left.kind, right.kind):
            return Value(f"({_double(left)} * {_double(right)})", Kind.REAL)
        _fitting(node, left.whole + left.scale + right.whole + right.scale + 1)
        sides = " * ".join(_decimal(side, side.whole, side.scale) for side in (left, right))
        return Value(f"({sides})", Kind.NUMBER, left.whole + right.whole + 1, left.scale + right.scale)

    def _divide(self, node: exp.Div) -> Value:
        left, right = self._operands(node, "typed", "safe")
        if Kind.ANY in (left.kind, right.kind):
            return ANY
        if Kind.REAL not in (left.kind, right.kind):
            raise ExpressionError(
                f"{_shown(node)}: how many digits a division of exact numbers keeps differs; multiply the other side, or use DIV"
            )
        return Value(f"({_double(left)} / nullif({_double(right)}, 0D))", Kind.REAL)

    def _integer_divide(self, node: exp.IntDiv) -> Value:
        left, right = self._operands(node)
        if Kind.ANY in (left.kind, right.kind):
            return ANY
        if any(side.kind is not Kind.NUMBER or side.scale or side.whole > 19 for side in (left, right)):
            raise ExpressionError(f"{_shown(node)}: DIV is for whole numbers of at most 19 digits")
        return Value(
            f"(cast({left.sql} as bigint) div nullif(cast({right.sql} as bigint), 0))", Kind.NUMBER, 19
        )

    def _modulo(self, node: exp.Mod) -> Value:
        left, right = self._operands(node)
        if Kind.ANY in (left.kind, right.kind):
            return ANY
        if Kind.REAL in (left.kind, right.kind):
            return Value(f"({_double(left)} % nullif({_double(right)}, 0D))", Kind.REAL)
        whole, scale = max(left.whole, right.whole), max(left.scale, right.scale)
        dividend, divisor = (_decimal(side, whole, scale) for side in (left, right))
        return Value(f"({dividend} % nullif({divisor}, 0))", Kind.NUMBER, whole, scale)

    def _negate(self, node: exp.Neg) -> Value:
        value = self._value(node.this)
        if isinstance(value.literal, Decimal):
            return number_literal(-value.literal)
        return self._numeric(node, value, lambda sql: f"(-{sql})")

    def _operands(self, node: exp.Binary, *others: str) -> list[Value]:
        _only(node, "this", "expression", *others)
        values = self._values_of((node.this, node.expression))
        for value in values:
            if value.kind not in (*_NUMERIC, Kind.ANY):
                raise ExpressionError(f"{_shown(node)}: {value.shown} is no number")
        return [_number(value) for value in values]

    # Functions

    def _numeric(self, node: exp.Expression, value: Value, write: Callable[[str], str]) -> Value:
        """A function of a number whose result needs no more digits."""
        if value.kind is Kind.ANY:
            return ANY
        value = _number(value)
        if value.kind not in (Kind.NUMBER, Kind.REAL):
            raise ExpressionError(f"{_shown(node)}: {value.shown} is no number")
        exact = _decimal(value, value.whole, value.scale) if value.kind is Kind.NUMBER else value.sql
        return Value(write(exact), value.kind, value.whole, value.scale)

    def _absolute(self, node: exp.Abs) -> Value:
        return self._numeric(node, self._value(node.this), lambda sql: f"abs({sql})")

    def _whole(self, node: exp.Ceil | exp.Floor) -> Value:
        _only(node, "this")
        name = "ceil" if isinstance(node, exp.Ceil) else "floor"
        value = self._numeric(node, self._value(node.this), lambda sql: f"{name}({sql})")
        if value.kind is Kind.REAL:
            raise ExpressionError(f"{_shown(node)}: {name.upper()} is for exact numbers")
        return value if value.kind is Kind.ANY else replace(value, whole=value.whole + 1, scale=0)

    def _rounded(self, node: exp.Round) -> Value:
        _only(node, "this", "decimals")
        digits = _literal_int(node, node.args.get("decimals"), 0)
        value = self._numeric(node, self._value(node.this), lambda sql: f"round({sql}, {digits})")
        if value.kind is Kind.REAL:
            raise ExpressionError(f"{_shown(node)}: ROUND is for exact numbers")
        return (
            value
            if value.kind is Kind.ANY
            else replace(value, whole=value.whole + 1, scale=min(value.scale, digits))
        )

    def _lower(self, node: exp.Lower | exp.Upper) -> Value:
        value = self._value(node.this)
        if value.kind is Kind.ANY:
            return ANY
        value = self._as_text(node, value)
        name, odd = ("lower", _ODD_LOWER) if isinstance(node, exp.Lower) else ("upper", _ODD_UPPER)
        sql = self._unless(
            f"{value.sql} rlike {text_literal(f'[{odd}]')}",
            value.sql,
            f"{name}({value.sql})",
            f"{name.upper()} of {value.shown}: a letter has no single other case",
        )
        return replace(value, sql=sql, is_member=False, literal=None)

    def _length(self, node: exp.Length) -> Value:
        _only(node, "this", "binary")
        value = self._value(node.this)
        if value.kind is Kind.ANY:
            return ANY
        in_bytes = node.args.get("binary")
        if value.kind is Kind.BYTES:
            return Value(f"octet_length({value.sql})", Kind.NUMBER, 10)
        value = self._as_text(node, value)
        if in_bytes and not value.is_utf8:
            raise ExpressionError(f"LENGTH counts bytes, and {value.shown} is not in UTF-8: use CHAR_LENGTH")
        return Value(f"{'octet_length' if in_bytes else 'char_length'}({value.sql})", Kind.NUMBER, 10)

    def _substring(self, node: exp.Substring) -> Value:
        _only(node, "this", "start", "length")
        start = _literal_int(node, node.args.get("start"), None)
        if start < 1:
            raise ExpressionError(f"{_shown(node)}: the first character is number 1")
        length = node.args.get("length")
        rest = f", {_literal_int(node, length, None)}" if length is not None else ""
        return self._part(node, lambda sql: f"substring({sql}, {start}{rest})")

    def _left(self, node: exp.Left | exp.Right) -> Value:
        _only(node, "this", "expression")
        count = _literal_int(node, node.expression, None)
        name = "left" if isinstance(node, exp.Left) else "right"
        return self._part(node, lambda sql: f"{name}({sql}, {count})")

    def _trim(self, node: exp.Trim) -> Value:
        _only(node, "this", "position")
        names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
        name = names.get(str(node.args.get("position") or "").upper(), "trim")
        return self._part(node, lambda sql: f"{name}({sql})")

    def _part(self, node: exp.Expression, write: Callable[[str], str]) -> Value:
        """A function of a text that gives a part of it."""
        value = self._value(node.this)
        if value.kind is Kind.ANY:
            return ANY
        value = self._as_text(node, value)
        return replace(value, sql=write(value.sql), is_member=False, literal=None)

    def _concat(self, node: exp.Concat) -> Value:
        _only(node, "expressions", "safe", "coalesce")
        values = self._values_of(node.expressions)
        if any(value.kind is Kind.ANY for value in values):
            return ANY
        values = [self._as_text(node, value) for value in values]
        made = self._joined_texts(values)
        return replace(made, sql=f"concat({', '.join(value.sql for value in values)})")

    def _date(self, node: exp.TsOrDsToDate) -> Value:
        _only(node, "this")
        value = self._moment(node, node.this)
        if value.kind is Kind.ANY:
            return ANY
        return Value(f"concat(substr({value.sql}, 1, 10), ' {MIDNIGHT}.000000')", Kind.MOMENT)

    def _date_part(self, node: exp.Func) -> Value:
        _only(node, "this")
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        value = self._moment(node, inner)
        if value.kind is Kind.ANY:
            return ANY
        start, length = _DATE_PARTS[type(node)]
        return Value(f"cast(substr({value.sql}, {start}, {length}) as int)", Kind.NUMBER, length)

    def _moment(self, node: exp.Expression, inner: exp.Expression) -> Value:
        value = self._value(inner)
        if value.kind not in (Kind.MOMENT, Kind.ANY):
            raise ExpressionError(f"{_shown(node)}: {value.shown} is no date or time")
        return value

    # One of several values

    def _coalesce(self, node: exp.Coalesce) -> Value:
        _only(node, "this", "expressions")
        return self._chosen(
            node,
            self._values_of([node.this, *node.expressions]),
            lambda sqls: f"coalesce({', '.join(sqls)})",
        )

    def _nullif(self, node: exp.Nullif) -> Value:
        _only(node, "this", "expression")
        left, right = self._values_of((node.this, node.expression))
        if left.kind is Kind.ANY:
            return ANY
        sql = f"case when {self._compared('=', left, right)} then null else {left.sql} end"
        return replace(left, sql=sql, literal=None)

    def _if(self, node: exp.If) -> Value:
        _only(node, "this", "true", "false")
        test = self._truth(self._value(node.this))
        values = self._values_of([node.args["true"], node.args.get("false") or exp.Null()])
        return self._chosen(node, values, lambda sqls: f"if({test}, {sqls[0]}, {sqls[1]})")

    def _case(self, node: exp.Case) -> Value:
        _only(node, "this", "ifs", "default")
        subject = self._value(node.this) if node.this is not None else None
        tests = []
        for branch in node.args["ifs"]:
            value = self._value(branch.this)
            tests.append(self._truth(value) if subject is None else self._compared("=", subject, value))
        values = self._values_of(
            [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default") or exp.Null()]
        )

        def write(sqls: Sequence[str]) -> str:
            branches = (f"when {test} then {sql}" for test, sql in zip(tests, sqls, strict=False))
            return f"case {' '.join(branches)} else {sqls[-1]} end"

        return self._chosen(node, values, write)

    def _chosen(
        self, node: exp.Expression, values: Sequence[Value], write: Callable[[Sequence[str]], str]
    ) -> Value:
        """One of several values, in the type that holds them all."""
        known = [value for value in values if value.kind is not Kind.NULL]
        kinds = {value.kind for value in known}
        if not known or Kind.ANY in kinds:
            return ANY if known else NULL
        if kinds == {Kind.TEXT}:
            made = self._joined_texts(known)
            return replace(made, sql=write([value.sql for value in values]))
        if kinds in ({Kind.BOOL}, {Kind.MOMENT}, {Kind.BYTES}):
            return Value(write([value.sql for value in values]), known[0].kind)
        if not kinds <= set(_NUMERIC):
            raise ExpressionError(
                f"{_shown(node)} is {' or '.join(sorted({value.shown for value in known}))}"
            )
        if Kind.REAL in kinds:
            return Value(write([_double(value) for value in values]), Kind.REAL)
        numbers = [_number(value) for value in known]
        whole, scale = max(value.whole for value in numbers), max(value.scale for value in numbers)
        _fitting(node, whole + scale)
        sqls = [_decimal(_number(value), whole, scale) for value in values]
        return Value(write(sqls), Kind.NUMBER, whole, scale)

    def _joined_texts(self, values: Sequence[Value]) -> Value:
        made = values[0]
        for value in values[1:]:
            made = replace(
                made, collation=_common_collation(made, value), is_utf8=made.is_utf8 and value.is_utf8
            )
        name = next((value.name for value in values if value.name), "")
        return replace(made, is_member=False, literal=None, name=name)

    def _collated(self, node: exp.Collate) -> Value:
        _only(node, "this", "expression")
        value, name = self._value(node.this), node.expression.name.lower()
        if not name.endswith("_bin") or not name.startswith("utf8"):
            raise ExpressionError(f"COLLATE {name} is not supported, only the collations _bin of utf8mb4")
        if value.kind is Kind.ANY:
            return ANY
        return replace(self._as_text(node, value), collation=named_collation(name, 2))


_METHODS: dict[type[exp.Expression], Callable[[_Translation, Any], Value]] = {
    exp.Column: _Translation._column,
    exp.Literal: _Translation._literal,
    exp.Boolean: _Translation._boolean,
    exp.Null: _Translation._null,
    exp.HexString: _Translation._hex,
    exp.Paren: _Translation._paren,
    exp.Cast: _Translation._moment_literal,
    exp.And: _Translation._and,
    exp.Or: _Translation._or,
    exp.Xor: _Translation._xor,
    exp.Not: _Translation._not,
    **dict.fromkeys(_COMPARISONS, _Translation._comparison),
    exp.Between: _Translation._between,
    exp.In: _Translation._in,
    exp.Is: _Translation._is,
    exp.Like: _Translation._like,
    exp.RegexpLike: _Translation._regexp,
    exp.Add: _Translation._add,
    exp.Sub: _Translation._add,
    exp.Mul: _Translation._multiply,
    exp.Div: _Translation._divide,
    exp.IntDiv: _Translation._integer_divide,
    exp.Mod: _Translation._modulo,
    exp.Neg: _Translation._negate,
    exp.Abs: _Translation._absolute,
    exp.Ceil: _Translation._whole,
    exp.Floor: _Translation._whole,
    exp.Round: _Translation._rounded,
    exp.Lower: _Translation._lower,
    exp.Upper: _Translation._lower,
    exp.Length: _Translation._length,
    exp.Substring: _Translation._substring,
    exp.Left: _Translation._left,
    exp.Right: _Translation._left,
    exp.Trim: _Translation._trim,
    exp.Concat: _Translation._concat,
    exp.TsOrDsToDate: _Translation._date,
    **dict.fromkeys(_DATE_PARTS, _Translation._date_part),
    exp.Coalesce: _Translation._coalesce,
    exp.Nullif: _Translation._nullif,
    exp.If: _Translation._if,
    exp.Case: _Translation._case,
    exp.Collate: _Translation._collated,
}


def _only(node: exp.Expression, *names: str) -> None:
    """ExpressionError where a node says more than these."""
    others = [name for name, value in node.args.items() if value and name not in names]
    if isinstance(node, exp.Column) and others:
        raise ExpressionError(f"{_shown(node)}: name columns without their table")
    if others:
        raise ExpressionError(f"{_shown(node)} is not supported in this form")


def _strict(parent: exp.Expression, node: exp.Expression) -> exp.Expression:
    """A side of a comparison that is one itself needs parentheses: without, readers and parsers disagree."""
    if isinstance(node, (*_LOOSE, exp.Not, exp.And, exp.Or, exp.Xor)):
        raise ExpressionError(f"{_shown(parent)}: put the comparison {_shown(node)} in parentheses")
    return node


def _shown(node: exp.Expression) -> str:
    text = node.sql(dialect="mysql")
    return text if len(text) <= 80 else f"{text[:77]}..."


def _bool(sql: str) -> Value:
    return Value(sql, Kind.BOOL)


def _text(text: str) -> Value:
    return Value(text_literal(text), Kind.TEXT, literal=text)


def _bytes_literal(raw: bytes) -> str:
    return f"X'{raw.hex()}'"


def _between_sides(sides: Sequence[str], operator: str) -> tuple[str, str, str]:
    return sides[0], operator, sides[1]


def _number(value: Value) -> Value:
    """A condition is 0 or 1."""
    if value.kind is Kind.BOOL:
        return Value(f"cast({value.sql} as int)", Kind.NUMBER, 1)
    return value


def _double(value: Value) -> str:
    return value.sql if value.kind is Kind.REAL else f"cast({_number(value).sql} as double)"


def _decimal(value: Value, whole: int, scale: int) -> str:
    if whole + scale > SPARK_DIGITS:
        raise ExpressionError(
            f"{value.shown} and what it is compared with need more than {SPARK_DIGITS} digits together"
        )
    return f"cast({value.sql} as decimal({whole + scale}, {scale}))"


def _fitting(node: exp.Expression, digits: int) -> None:
    if digits > SPARK_DIGITS:
        raise ExpressionError(f"{_shown(node)} may need more than {SPARK_DIGITS} digits")


def _common_collation(left: Value, right: Value) -> Collation:
    stronger, weaker = sorted(
        (left.collation, right.collation), key=lambda collation: collation.strength, reverse=True
    )
    same = replace(stronger, strength=0) == replace(weaker, strength=0)
    if stronger.strength == weaker.strength != 0 and not same:
        raise ExpressionError(f"{left.shown} and {right.shown} have different collations")
    return stronger


def _plain(text: str) -> str:
    if not text.isascii():
        raise ExpressionError(
            f"{text!r} is compared by a collation without case, and how it compares letters beyond ASCII is not known: say COLLATE utf8mb4_bin"
        )
    return text


def _literal_text(node: exp.Expression, pattern: exp.Expression) -> str:
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise ExpressionError(f"{_shown(node)}: the pattern must be a literal")
    return pattern.this


def _literal_int(node: exp.Expression, number: exp.Expression | None, default: int | None) -> int:
    if number is None and default is not None:
        return default
    if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit():
        raise ExpressionError(
            f"{_shown(node)}: a place or a count must be a literal number, and not negative"
        )
    return int(number.this)
