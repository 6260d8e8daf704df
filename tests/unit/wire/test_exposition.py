from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from lorapick.wire import exposition
from lorapick.wire.exposition import ExpositionError, Sample, parse_labels, samples, select

PAGE = (Path(__file__).parents[2] / "data" / "vllm-0.32-metrics.txt").read_bytes()


def prometheus(page: bytes) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The same page read by Prometheus's own client, by name of sample."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(page.decode()):
        # Parts of histograms and summaries stand mixed; they are not for this reader.
        for sample in family.samples if family.type not in ("histogram", "summary") else []:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def ours(page: bytes, names: list[str]) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, labels, value in samples(page, names):
        found.setdefault(name, []).append((dict(labels), value))
    return found


def test_every_family_of_a_real_page_reads_as_with_prometheus() -> None:
    expected = prometheus(PAGE)
    assert len(expected) > 70
    assert ours(PAGE, list(expected)) == expected
    assert ours(PAGE, list(reversed(expected))) == expected


def test_families_are_found_in_any_order_and_absent_ones_are_left_out() -> None:
    page = b'# TYPE a gauge\na 1\n# TYPE b gauge\n# TYPE c gauge\nc{x="1"} 2\nc{x="2"} 3'
    assert select(page, ["c", "nope", "b", "a"]) == {
        "c": [Sample(2.0, b'x="1"'), Sample(3.0, b'x="2"')],
        "b": [],
        "a": [Sample(1.0)],
    }


def test_a_name_inside_other_names_labels_and_comments_is_no_sample() -> None:
    page = b'# HELP x vllm:a 7\nvllm:a_total 1\nx{y="vllm:a 3"} 1\nx{y=" vllm:a 3"} 2\nnot_vllm:a 4\n  vllm:a  5 \n'
    assert ours(page, ["vllm:a"]) == {"vllm:a": [({}, 5.0)]}


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("a 1", {}, "1.0"),
        ("a\t1\t", {}, "1.0"),
        ("a +Inf", {}, "inf"),
        ("a -Inf", {}, "-inf"),
        ("a NaN", {}, "nan"),
        ("a 1e-3 1395066363000", {}, "0.001"),
        ("a {} 1", {}, "1.0"),
        ('a{b="c",} 1', {"b": "c"}, "1.0"),
        ('a{ b = "c" , d = "" } 1', {"b": "c", "d": ""}, "1.0"),
        ('a{b="}{ #,="} 1 -5', {"b": "}{ #,="}, "1.0"),
        (r'a{b="\\",c="\"",d="\n",e="\t"} 1', {"b": "\\", "c": '"', "d": "\n", "e": "\\t"}, "1.0"),
        ('a{b="c"} 1 # {trace_id="x y"} 0.5 1520879607.789', {"b": "c"}, "1.0"),
        ('a{b="c"} 1 2 # {t="}"} 9', {"b": "c"}, "1.0"),
        ('a{b="é世"} 1\r', {"b": "é世"}, "1.0"),
    ],
)
def test_what_a_line_may_look_like(line: str, labels: dict[str, str], value: str) -> None:
    page = f"# TYPE a gauge\n{line}\n# EOF\n".encode()
    [(name, found, number)] = list(samples(page, ["a"]))
    assert (name, dict(found), str(number)) == ("a", labels, value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a", "line 2 is not a sample: a"),
        ("a ", "line 2 is not a sample: a"),
        ("a x", "line 2 has the value x, which is not a number: a x"),
        ("a 1_0", "line 2 has the value 1_0, which is not a number"),
        ("a 1 2 3", "line 2 is not a sample"),
        ('a{b="c" 1', 'line 2 is not a sample: a{b="c" 1'),
        ('a{b="c"} ', "line 2 is not a sample"),
        ('a{b="c"}x 1', "line 2 has the value x, which is not a number"),
        ('a{b="c"d="e"} 1', 'malformed labels {b="c"d="e"} near'),
        ("a{b=c} 1", "malformed labels {b=c} near b=c"),
        ('a{1b="c"} 1', "malformed labels"),
        ('a{b="c",b="d"} 1', 'label "b" stands twice'),
        ("a \x00\x07", "which is not a number: a \\\\x00\\\\x07"),
    ],
)
def test_a_malformed_line_is_named(line: str, message: str) -> None:
    page = f"# TYPE a gauge\n{line}\nb 1\n".encode()
    with pytest.raises(ExpositionError, match=message.replace("{", r"\{")):
        list(samples(page, ["a"]))


def test_lines_of_other_families_are_not_looked_at() -> None:
    assert ours(b"\xff\xfe{{{\na 1\nb nonsense\n", ["a"]) == {"a": [({}, 1.0)]}


def test_label_values_must_be_utf8() -> None:
    with pytest.raises(ExpositionError, match="not UTF-8"):
        list(samples(b'a{b="\xff"} 1\n', ["a"]))


def test_comments_and_empty_lines_inside_a_group_are_passed_over() -> None:
    page = b'a{b="1"} 1\n\n# a comment\n# HELP a again\n a{b="2"} 2\nother 1\na{b="3"} 3\n'
    assert [number for _, _, number in samples(page, ["a"])] == [1.0, 2.0]


def test_pages_and_families_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExpositionError, match=r"the page has 8388609 bytes; the limit is 8388608"):
        select(b"\n" * (exposition.MAX_PAGE + 1), ["a"])
    monkeypatch.setattr(exposition, "MAX_SAMPLES", 3)
    with pytest.raises(ExpositionError, match="a has more than 3 series; that is the limit"):
        select(b"a 1\n" * 4, ["a"])


def test_long_label_texts_are_parsed_without_being_remembered() -> None:
    text = b",".join(b'l%d="%s"' % (number, b"x" * 100) for number in range(100))
    assert len(text) > 4096
    before = exposition._remembered.cache_info().currsize
    assert len(parse_labels(text)) == 100
    assert exposition._remembered.cache_info().currsize == before


NAMES = st.sampled_from(["a", "a_total", "vllm:a", "vllm:a_b", "b"])
LABEL_NAMES = st.from_regex(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]{0,5}", fullmatch=True)  # Prometheus keeps `__` to itself
LABEL_VALUES = st.text(st.sampled_from('\\"\n{}#, =\tnab1é世\u2028\x0b\x85'), max_size=8)
VALUES = st.one_of(
    st.floats().map(repr), st.integers(-(10**6), 10**6).map(str), st.sampled_from(["+Inf", "-Inf", "NaN"])
)


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    """A page that Prometheus accepts: families in groups, some declared, labels of the nasty kind."""
    lines: list[str] = []
    for name in draw(st.lists(NAMES, unique=True)):
        if draw(st.booleans()):
            lines += [
                f"# HELP {name} about {draw(NAMES)} 1",
                f"# TYPE {name} {draw(st.sampled_from(['gauge', 'untyped']))}",
            ]
        for labels in draw(st.lists(st.dictionaries(LABEL_NAMES, LABEL_VALUES, max_size=3), max_size=3)):
            text = ",".join(f'{label}="{escaped(value)}"' for label, value in labels.items())
            braces = f"{{{text}}}" if text or draw(st.booleans()) else ""
            stamp = draw(st.sampled_from(["", " 1395066363000", " -1"]))
            lines.append(f"{name}{braces} {draw(VALUES)}{stamp}")
    return ("\n".join(lines) + draw(st.sampled_from(["", "\n", "\n# EOF\n"]))).encode()


def comparable(found: dict[str, list[tuple[dict[str, str], float]]]) -> dict[str, list[tuple[dict[str, str], str]]]:
    """NaN equals NaN."""
    return {name: [(labels, repr(float(value))) for labels, value in rows] for name, rows in found.items()}


@given(pages(), st.permutations(["a", "a_total", "vllm:a", "vllm:a_b", "b"]))
def test_generated_pages_read_as_with_prometheus(page: bytes, wanted: list[str]) -> None:
    assert comparable(ours(page, wanted)) == comparable(prometheus(page))


@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([b"a", b"a{", b'a{b="', b"}", b" 1", b"\n", b"#"]))))
def test_any_bytes_give_samples_or_the_typed_error(pieces: list[bytes]) -> None:
    try:
        message = str(list(samples(b"".join(pieces), ["a", "b"])))
    except ExpositionError as error:
        message = str(error)
    assert message.isprintable()
