# SPDX-License-Identifier: Apache-2.0
"""Mutants of a Python file: changes of single nodes of its syntax tree, spliced into the text.

Not mutated: annotations, docstrings, messages (f-strings and strings with spaces), arguments of
`@dataclass`, `__repr__`, `__str__`, `__slots__` and `__all__`, `zip(strict=…)`, an assertion that
never fails, SQLAlchemy's `Table(…)`, because migrations create the tables and a test compares them,
and code for the type checker.
"""

import ast
import re

from _mutation.mutant import Mutant, numbered

_COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.MatMult: ("@", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_CODE = re.compile(r"[a-z][a-z0-9_.-]{1,39}", re.ASCII)
_SQL = (
    ("=ON", "=OFF"),
    ("=FULL", "=OFF"),
    (" IMMEDIATE", ""),
    (" AND ", " OR "),
    ("'on'", "'off'"),
)
_UNTOUCHED = {"__repr__", "__str__"}
_NAMES = {"__all__", "__slots__"}


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a file, in file order."""
    return list(numbered(_Finder(path, source).found))


class _Finder(ast.NodeVisitor):
    """Visitor that collects mutants, each with its enclosing function."""

    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[str] = []
        self._function = ""
        self._returns: ast.expr | None = None
        self.found: list[Mutant] = []
        self.visit(ast.parse(source))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno, node.end_col_offset
        assert end_line is not None  # noqa: S101 - parsed text has all positions
        assert end_column is not None  # noqa: S101
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[end_line - 1] + end_column,
        )

    def _add(self, operator: str, start: int, end: int, after: str) -> None:
        line_start = self._source.rfind(b"\n", 0, start) + 1
        line_end = self._source.find(b"\n", start)
        line = self._source[line_start:line_end].decode().strip()
        before = self._source[start:end].decode()
        self.found.append(
            Mutant(self._path, self._function, operator, line, before, after, start, end)
        )

    def _between(self, operator: str, start: int, end: int, swap: tuple[str, str]) -> None:
        """Swap an operator that stands between two operands."""
        text = self._source[start:end].decode()
        place = re.sub(r"#.*", lambda comment: " " * len(comment[0]), text).find(swap[0])
        first = start + len(text[:place].encode())
        self._add(operator, first, first + len(swap[0].encode()), swap[1])

    # Scopes

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        # Defaults, decorators and class keywords are evaluated in the enclosing scope.
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and _name(decorator.func) == "dataclass"):
                self.visit(decorator)
        before = self._scope, self._function, self._returns
        if isinstance(node, ast.ClassDef):
            for keyword in node.keywords:
                self.visit(keyword)
            self._scope = [*self._scope, node.name]
        else:
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self.visit(default)
            self._function = ".".join([*self._scope, node.name])
            self._scope = [*self._scope, node.name, "<locals>"]
            self._returns = node.returns
        for statement in node.body:
            self.visit(statement)
        self._scope, self._function, self._returns = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in _UNTOUCHED and not _is_overload(node):
            self._enter(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._enter(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if not any(_name(base) in ("Protocol", "TypedDict") for base in node.bases):
            self._enter(node)

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self._add("call removed", *self._span(node), "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("raise removed", *self._span(node), "pass")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._add("statement removed", *self._span(node), "pass")

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(_name(target) in _NAMES for target in node.targets):
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add("statement removed", *self._span(node), "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and _name(node.target) not in _NAMES:
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add("statement removed", *self._span(node), "pass")
        swap = _ARITHMETIC[type(node.op)]
        self._between("arithmetic", self._span(node.target)[1], self._span(node.value)[0], swap)
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if _name(node.test) == "TYPE_CHECKING":
            return
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._add("condition", *self._span(node.test), "False")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._condition(condition, ("True",))
        self.generic_visit(node)

    def _condition(self, test: ast.expr, values: tuple[str, ...] = ("True", "False")) -> None:
        if not any(isinstance(node, ast.NamedExpr) for node in ast.walk(test)):
            for value in values:
                self._add("condition", *self._span(test), value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        is_bool = _name(self._returns) == "bool"
        for after in ("True", "False") if is_bool else ("None",):
            if not isinstance(node.value, ast.Constant):
                self._add("return", *self._span(node.value), after)
        self.generic_visit(node)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operation, right in zip(operands, node.ops, operands[1:], strict=False):
            swap = _COMPARE[type(operation)]
            self._between("comparison", self._span(left)[1], self._span(right)[0], swap)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        swap = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("and/or", self._span(left)[1], self._span(right)[0], swap)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start = self._span(node)[0]
        if isinstance(node.op, ast.Not):
            self._add("not", start, start + len("not"), "")
        elif isinstance(node.op, ast.USub):
            self._add("arithmetic", start, start + 1, "+")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        swap = _ARITHMETIC[type(node.op)]
        self._between("arithmetic", self._span(node.left)[1], self._span(node.right)[0], swap)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
            self._add("min/max, any/all", *self._span(node.func), _CALLS[node.func.id])
        if _name(node.func) == "zip":
            for argument in node.args:
                self.visit(argument)
        elif _name(node.func) not in ("cast", "TypeVar", "NewType", "Table"):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value, span = node.value, self._span(node)
        if isinstance(value, bool):
            self._add("constant", *span, str(not value))
        elif isinstance(value, int):
            self._add("constant", *span, str(value + 1))
            self._add("constant", *span, str(value - 1) if value else "(-1)")
        elif isinstance(value, float):
            self._add("constant", *span, repr(value * 1.1) if value else "0.1")
        elif isinstance(value, str) and self._source[span[0]] in b"\"'":
            self._string(value, span)

    def _string(self, value: str, span: tuple[int, int]) -> None:
        if _CODE.fullmatch(value):
            self._add("code", *span, f'"x{value}"')
        for before, after in _SQL:
            if before in value:
                self._add("statement text", *span, repr(value.replace(before, after)))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _name(node.value) != "Literal":
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip f-strings: they are messages, and their parts have no positions."""

    def visit_arg(self, node: ast.arg) -> None:
        """Skip annotations."""


def _name(node: ast.expr | None) -> str:
    """Return the last part of a name, empty for other expressions."""
    if isinstance(node, ast.Subscript | ast.Call):
        return _name(node.value if isinstance(node, ast.Subscript) else node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(_name(decorator) == "overload" for decorator in node.decorator_list)
