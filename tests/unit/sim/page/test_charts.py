"""Charts are well-formed and show what they are given."""

import re
from xml.etree import ElementTree

from lorapick.sim.page.charts import HEIGHT, Area, Axis, Line, Span, line_chart, share_chart, slot_chart
from lorapick.sim.sampling import Held, Timeline

SPAN = Span(0.0, 10.0, 0.0)


def drawn(text):
    return ElementTree.fromstring(text)


def of_class(root, name):
    return [node for node in root.iter() if name in (node.get("class") or "").split()]


def test_lines_break_where_nothing_is_known():
    root = drawn(
        line_chart(SPAN, [0, 5, 10], lines=[Line("a<b", "p95", [1.0, None, 10.0])], axis=Axis(1, 10, log=True))
    )
    (line,) = of_class(root, "p95")
    assert line.find("title").text == "a<b"
    assert re.findall("[ML]", line.get("d")) == ["M", "M"]


def test_shares_fill_the_whole():
    areas = [Area("x", "inference", [0.25, 1.0]), Area("y", "idle", [0.75, 0.0]), Area("z", "down", [0.0, 0.0])]
    root = drawn(share_chart(SPAN, [0, 5], window=5.0, areas=areas))
    assert [node.get("class") for node in root.iter("polygon")] == ["area inference", "area idle"]
    ends = [float(each.split(",")[1]) for each in of_class(root, "inference")[0].get("points").split()]
    assert (min(ends), max(ends)) == (8.0, HEIGHT - 22.0)


def test_slots_one_path_per_adapter_named():
    timeline = Timeline(
        every=1.0,
        slots=2,
        pods=("pod-1", "pod<2"),
        adapters=("x", "y&z"),
        held=(Held(0, 0, 0.0, 5.0, 0), Held(0, 0, 5.0, 9.0, 1), Held(1, 1, 0.0, 9.0, 0)),
    )
    root = drawn(slot_chart(SPAN, timeline))
    paths = [node for node in root.iter("path") if node.get("style")]
    assert [(path.find("title").text, path.get("d").count("M")) for path in paths] == [("x", 2), ("y&z", 1)]
    assert {node.text for node in of_class(root, "tick")} >= {"pod-1", "pod<2"}
    assert len({path.get("style") for path in paths}) == 2


def test_many_pods_are_cut():
    held = tuple(Held(pod, 0, 0.0, 9.0, 0) for pod in range(100))
    timeline = Timeline(every=1.0, slots=8, pods=tuple(f"p{n}" for n in range(100)), adapters=("x",), held=held)
    root = drawn(slot_chart(SPAN, timeline))
    (path,) = [node for node in root.iter("path") if node.get("style")]
    assert path.get("d").count("M") == 16
