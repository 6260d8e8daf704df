"""Rules about the text of the project that no linter has: sizes, parameters, mirrored tests, set order, words.

Each rule is a function from text to findings. It is shown to find something, and then held over the whole project.
Lists of exceptions only shrink: an exception that is no longer needed is an error too.
"""

import ast
import functools
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lorapick"
MODULES = sorted(SOURCE.rglob("*.py"))

LONGEST_FUNCTION = 60
MEDIAN_FUNCTION = 8
LONGEST_FILE = 400
MOST_PARAMETERS = 6
MOST_POSITIONAL = 2

Function = ast.FunctionDef | ast.AsyncFunctionDef
T = TypeVar("T")


def short(path: Path) -> str:
    """Path below the package."""
    return path.relative_to(SOURCE).as_posix()


def functions(tree: ast.AST, *, inside_class: bool = False) -> Iterator[tuple[Function, bool]]:
    """Every function, and whether it is a method."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node, inside_class
            yield from functions(node)
        else:
            yield from functions(node, inside_class=isinstance(node, ast.ClassDef))


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def everywhere(rule: Callable[[ast.Module], list[T]], *, outside: Collection[Path] = ()) -> dict[str, list[T]]:
    """What a rule finds, by file; files without findings are left out."""
    found = {short(path): rule(parse(path)) for path in MODULES if path not in outside}
    return {name: many for name, many in found.items() if many}


# -- sizes


def long_functions(tree: ast.Module) -> list[str]:
    found = [(node.name, length(node)) for node, _ in functions(tree)]
    return [f"{name} has {lines} lines" for name, lines in found if lines > LONGEST_FUNCTION]


def length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_a_long_function_is_found():
    body = "\n".join("      pass" for _ in range(LONGEST_FUNCTION))
    assert long_functions(ast.parse(f"def much():\n{body}\n")) == ["much has 61 lines"]
    assert long_functions(ast.parse(f"class C:\n  async def much():\n    def inner():\n{body}\n")) == [
        "much has 62 lines",
        "inner has 61 lines",
    ]
    assert long_functions(ast.parse("def little():\n    pass\n")) == []


def test_functions_fit_on_a_screen():
    assert everywhere(long_functions) == {}


def test_half_of_the_functions_are_a_glance():
    lengths = [length(node) for path in MODULES for node, _ in functions(parse(path))]
    assert len(lengths) > 500
    assert statistics.median(lengths) <= MEDIAN_FUNCTION


def test_files_are_short():
    sizes = {short(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


# -- parameters


def too_many_parameters(tree: ast.Module) -> list[str]:
    return [
        f"{node.name} has {count} parameters"
        for node, method in functions(tree)
        if (count := len(positional(node, method=method)) + len(node.args.kwonlyargs)) > MOST_PARAMETERS
    ]


def too_many_positional(tree: ast.Module) -> list[str]:
    """Functions that are called with a row of nameless values. Names with underscores around are Python's to choose."""
    return [
        f"{node.name}({', '.join(names)})"
        for node, method in functions(tree)
        if len(names := positional(node, method=method)) > MOST_POSITIONAL and not fixed_by_python(node.name)
    ]


def fixed_by_python(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name != "__init__"


def positional(node: Function, *, method: bool) -> list[str]:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    decorators = [each.id for each in node.decorator_list if isinstance(each, ast.Name)]
    return names[1:] if method and "staticmethod" not in decorators else names


def test_parameters_are_counted():
    assert too_many_parameters(ast.parse("def f(a, b, *, c, d, e, f): ...")) == []
    assert too_many_parameters(ast.parse("def f(a, b, *, c, d, e, f, g): ...")) == ["f has 7 parameters"]
    assert too_many_parameters(ast.parse("class C:\n  def f(self, a, b, *, c, d, e, f): ...")) == []


def test_nameless_parameters_are_found():
    assert too_many_positional(ast.parse("def f(a, b, *, c): ...")) == []
    assert too_many_positional(ast.parse("def f(a, b, c): ...")) == ["f(a, b, c)"]
    assert too_many_positional(ast.parse("class C:\n  def f(self, a, b, c): ...")) == ["f(a, b, c)"]
    assert too_many_positional(ast.parse("class C:\n  def f(self, a, b): ...")) == []
    assert too_many_positional(ast.parse("class C:\n  @classmethod\n  def f(cls, a, b): ...")) == []
    assert too_many_positional(ast.parse("class C:\n  @staticmethod\n  def f(a, b, c): ...")) == ["f(a, b, c)"]
    assert too_many_positional(ast.parse("class C:\n  def __exit__(self, a, b, c): ...")) == []
    assert too_many_positional(ast.parse("class C:\n  def __init__(self, a, b, c): ...")) == ["__init__(a, b, c)"]
    assert too_many_positional(ast.parse("class C:\n  def f(self):\n    def g(a, b, c): ...")) == ["g(a, b, c)"]


COMMANDS = {path for path in MODULES if short(path).startswith("cli/")}
"""A command's parameters are its flags: typer calls it, by name."""
POSITIONAL_DEBT = {
    "live/driver.py": 1,
    "live/openapi.py": 2,
    "live/podserver/answers.py": 1,
    "live/podserver/bodies.py": 1,
    "live/podserver/dialects.py": 3,
    "live/podserver/driver.py": 1,
    "live/podserver/generate.py": 1,
    "live/podserver/metrics.py": 3,
    "live/podserver/more_dialects.py": 4,
    "live/podserver/records.py": 2,
    "live/podserver/refusals.py": 3,
    "live/ports.py": 1,
    "live/processes.py": 1,
    "live/published.py": 1,
    "live/ray/router.py": 1,
    "live/stack.py": 2,
    "live/stack_options.py": 1,
    "pod/batch.py": 1,
    "pod/errors.py": 3,
    "pod/folding.py": 5,
    "pod/kv.py": 3,
    "pod/loader.py": 1,
    "pod/machine.py": 2,
    "pod/unified.py": 1,
    "pod/views.py": 1,
    "sim/workload/chance.py": 1,
    "sim/workload/checks.py": 1,
    "sim/workload/clients.py": 1,
    "sim/workload/draws.py": 1,
    "sim/workload/flows.py": 1,
    "sim/workload/follow.py": 4,
    "sim/workload/lengths.py": 1,
    "sim/workload/mix.py": 2,
    "sim/workload/replay.py": 3,
    "sim/workload/sessions.py": 2,
    "sim/workload/slora.py": 1,
    "sim/workload/spec.py": 1,
    "sim/workload/times.py": 5,
    "testing/extproc.py": 1,
    "wire/config/document.py": 1,
    "wire/config/later.py": 1,
    "wire/emulator_page.py": 1,
    "wire/exposition.py": 4,
    "wire/extproc/messages.py": 3,
    "wire/extproc/request.py": 1,
    "wire/report.py": 1,
    "wire/traces/rows.py": 1,
    "wire/vllm_page.py": 1,
}
"""Functions with more than two nameless parameters, by file. New ones are refused; fixed ones leave this list."""


def test_parameters_are_few():
    assert everywhere(too_many_parameters, outside=COMMANDS) == {}


def test_parameters_past_two_are_named():
    found = everywhere(too_many_positional, outside=COMMANDS)
    more = {name: many for name, many in found.items() if len(many) > POSITIONAL_DEBT.get(name, 0)}
    assert more == {}, "name the parameters past two: def f(one, two, *, three)"
    fixed = {name: owed for name, owed in POSITIONAL_DEBT.items() if len(found.get(name, [])) < owed}
    assert fixed == {}, "fewer than the list says: lower its numbers"


# -- mirrored tests

MIRRORED = ("core", "pod", "wire")
TESTED_ELSEWHERE = {
    "core/picking/baseline.py": "core/picking/test_round_robin.py",
    "core/residency/moves.py": "core/residency/test_table.py",
    "core/picking/policy.py": "core/picking/test_policies.py",
    "pod/errors.py": "pod/test_pod_engine.py",
    "pod/ledger.py": "pod/test_pod_views.py",
    "pod/values.py": "pod/test_pod_engine.py",
    "wire/config/intent.py": "wire/config/test_config_settings.py",
    "wire/config/pods.py": "wire/test_podsfile.py",
    "wire/config/problems.py": "wire/config/test_document.py",
    "wire/config/sections.py": "wire/config/test_config_settings.py",
    "wire/engines/dcgm.py": "wire/engines/test_other_engines.py",
    "wire/engines/lorax.py": "wire/engines/test_other_engines.py",
    "wire/engines/readings.py": "wire/engines/test_other_engines.py",
    "wire/extproc/chunking.py": "wire/extproc/test_messages.py",
    "wire/extproc/commands.py": "wire/extproc/test_session.py",
    "wire/extproc/errors.py": "wire/extproc/test_session_refusals.py",
    "wire/extproc/models.py": "wire/extproc/test_session.py",
    "wire/extproc/request.py": "wire/extproc/test_session.py",
    "wire/traces/rows.py": "wire/test_traces_reading.py",
}
"""Modules without a test file of their name, and the one that holds them. One that has its own leaves this list."""


def has_test(module: str, tests: Counter[str]) -> bool:
    """Whether `a/b/c.py` is tested by `a/b/test_c.py`, `a/test_b_c.py`, or these with a word before to be unique."""
    folder, _, name = module.removesuffix(".py").rpartition("/")
    parent, _, last = folder.rpartition("/")
    places = (rf"{re.escape(folder)}/test_(.+_)?{re.escape(name)}", rf"{re.escape(parent)}/test_(.+_)?{last}_{name}")
    return any(re.fullmatch(rf"({'|'.join(places)})\.py", test) for test in tests)


def test_a_missing_test_file_is_found():
    tests = Counter(["core/test_pods.py", "core/picking/test_core_query.py", "wire/test_traces_azure.py"])
    assert has_test("core/pods.py", tests)
    assert has_test("core/picking/query.py", tests)
    assert has_test("wire/traces/azure.py", tests)
    assert not has_test("core/query.py", tests)
    assert not has_test("core/ods.py", tests)


def test_each_module_has_its_test_file():
    unit = ROOT / "tests" / "unit"
    tests = Counter(path.relative_to(unit).as_posix() for path in unit.rglob("test_*.py"))
    modules = [short(path) for path in MODULES if path.name != "__init__.py" and short(path).startswith(MIRRORED)]
    missing = [module for module in modules if not has_test(module, tests)]
    assert [module for module in missing if module not in TESTED_ELSEWHERE] == [], "give it a test file of its name"
    covered = [module for module in TESTED_ELSEWHERE if module not in missing]
    assert covered == [], "it has a test file now: take it off the list"
    assert [test for test in TESTED_ELSEWHERE.values() if test not in tests] == [], "no such test file"


def test_test_files_have_names_of_their_own():
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


# -- order of sets

ORDERED = ("core", "pod", "sim")
SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
TAKES_IN_ORDER = {"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "reversed", "next", "fromkeys"}


def iterated_sets(tree: ast.Module) -> list[int]:
    """Lines that go through a set in its own order, which changes with the hash seed (as far as syntax shows it)."""
    return sorted(node.lineno for node in ast.walk(tree) for each in iterated(node) if is_set(each))


def iterated(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.For() | ast.AsyncFor():
            return [node.iter]
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
            return [generator.iter for generator in node.generators]
        case ast.Starred():
            return [node.value]
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in TAKES_IN_ORDER:
            return node.args
    return []


def is_set(node: ast.expr) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in {"set", "frozenset"}
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in SET_METHODS
        case ast.BinOp(op=ast.Sub() | ast.BitOr() | ast.BitAnd() | ast.BitXor()):
            return any(is_set(side) or is_keys(side) for side in (node.left, node.right))
    return False


def is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


@pytest.mark.parametrize(
    "line",
    [
        "for x in {1, 2}: pass",
        "for x in set(y): pass",
        "[x for x in frozenset(y)]",
        "{x: 1 for x in {z for z in y}}",
        "(x for x in a.union(b))",
        "[*{1, 2}]",
        "f(*set(y))",
        "list({x for x in y})",
        "tuple(set(y))",
        "next(iter({1}))",
        "dict.fromkeys(set(y))",
        "for x in a.keys() - b: pass",
        "for x in set(a) | b: pass",
    ],
)
def test_iterated_sets_are_found(line):
    assert iterated_sets(ast.parse(line)) != []


@pytest.mark.parametrize(
    "line",
    ["sorted({1, 2})", "x in {1, 2}", "{x for x in y}", "for x in dict.fromkeys(y): pass", "len(set(y))", "[a - b]"],
)
def test_other_uses_of_sets_are_not(line):
    assert iterated_sets(ast.parse(line)) == []


def test_no_set_gives_an_order():
    found = {name: lines for name, lines in everywhere(iterated_sets).items() if name.startswith(ORDERED)}
    assert found == {}, "the order of sets changes with the hash seed: use dict.fromkeys, or sort"


# -- words

FORBIDDEN = (
    r"(?<![\w.])/" + r"work/",
    r"/tmp/" + r"w\b",
    r"\.\./" + "shared",
    r"(?<![\w.])/" + r"root/",
    "pypi" + r"\.org",
    "python" + r"hosted\.org",
    "index" + r"-url",
    "registry" + r"\.npmjs",
)
"""Places of the machine that something was written on, and hosts of registries: they mean nothing to a reader."""
WORDS = re.compile("|".join(FORBIDDEN))
PROJECT = ("src", "tests", "docs", "bench", "examples", ".ci")
TEXT_ABOVE = 2_000_000
"""Larger files are data."""


def places(text: str) -> list[str]:
    return [match.group() for match in WORDS.finditer(text)]


def text_files() -> Iterator[tuple[Path, str]]:
    below = [path for folder in PROJECT for path in (ROOT / folder).rglob("*")]
    for path in (*below, *(ROOT / "data").rglob("*.md"), *ROOT.glob("*")):
        if path.is_file() and not {"__pycache__", ".git"} & {*path.parts} and path.stat().st_size < TEXT_ABOVE:
            raw = path.read_bytes()
            if b"\0" not in raw:
                yield path, raw.decode(errors="replace")


def test_places_are_found():
    assert places("see /" + "work/main/x and (/" + "tmp/w/y)") == ["/" + "work/", "/" + "tmp/w"]
    assert places("../" + "shared/notes, https://" + "pypi" + ".org/simple") == ["../" + "shared", "pypi" + ".org"]
    assert places("a frame/" + "work/ and /tmp/" + "work and net" + "work/x") == []


def test_the_project_speaks_of_itself_only():
    read = [*text_files()]
    assert len(read) > 150
    assert ROOT / "data" / "README.md" in [path for path, _ in read]
    found = {path.relative_to(ROOT).as_posix(): words for path, text in read if (words := places(text))}
    assert found == {}
