"""JSON as a tree, and the command that would send it; no database."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard import json_view, trees
from dashboard.curl import MAX_ARGUMENT_BYTES, create_command
from jobs.selectors import CutText

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def kinds(nodes: list[trees.Node]) -> list[tuple[str, str, str]]:
    return [(node.kind, node.key, node.text) for node in nodes]


def test_a_tree_is_a_flat_list_whose_brackets_match() -> None:
    nodes = trees.tree(trees.read('{"a": [1, {}], "b": {"c": null}, "d": "x\\ny", "e": true}'))
    assert kinds(nodes) == [
        ("open", "", ""),
        ("open", '"a"', ""),
        ("number", "0", "1"),
        ("empty", "1", "{}"),
        ("close", "", ""),
        ("open", '"b"', ""),
        ("word", '"c"', "null"),
        ("close", "", ""),
        ("string", '"d"', '"x\\ny"'),
        ("word", '"e"', "true"),
        ("close", "", ""),
    ]
    assert [(node.brackets, node.count) for node in nodes if node.kind == "open"] == [
        ("{}", 4),
        ("[]", 2),
        ("{}", 1),
    ]


@pytest.mark.parametrize(
    "digits", ["9007199254740993", "1.0", "1.50", "0." + "1" * 40, "9" * 5_000, "-0"]
)
def test_a_number_keeps_its_digits(digits: str) -> None:
    value = trees.read(f'{{"n": {digits}}}')
    assert trees.tree(value)[1].text == digits
    assert trees.indented(value, 10_000) == f'{{\n  "n": {digits}\n}}'


@settings(max_examples=100)
@given(values)
def test_indented_text_is_what_python_writes(value: Any) -> None:
    text = json.dumps(value)
    assert trees.indented(trees.read(text), 10**6) == json.dumps(
        value, indent=2, ensure_ascii=False
    )


@settings(max_examples=100)
@given(values, st.integers(1, 10))
def test_a_tree_of_any_size_is_closed(value: Any, max_nodes: int) -> None:
    depth = 0
    for node in trees.tree(trees.read(json.dumps(value)), max_nodes):
        depth += {"open": 1, "close": -1}.get(node.kind, 0)
        assert depth >= 0
    assert depth == 0


def test_what_is_long_is_cut_and_counted() -> None:
    nodes = trees.tree(trees.read(json.dumps({"list": list(range(5_000)), "text": "é" * 1_000})))
    (more,) = [node for node in nodes if node.kind == "more"]
    assert more.count == 5_000 - trees.MAX_CHILDREN
    (text,) = [node for node in nodes if node.kind == "string"]
    assert (text.chars, text.full_text) == (1_000, "é" * 1_000)
    assert len(text.text) == trees.MAX_STRING_CHARS + 2


def test_a_tree_has_a_bounded_number_of_nodes_and_says_what_is_missing() -> None:
    rows = [[1] * 90] * 90
    nodes = trees.tree(trees.read(json.dumps(rows)))
    assert len(nodes) < 1.2 * trees.MAX_NODES
    shown = sum(node.kind == "number" for node in nodes)
    left_out = sum(node.count for node in nodes[-3:] if node.kind == "more")
    assert shown > 1_900
    assert left_out > 60


def test_the_deepest_payload_has_a_tree_and_a_deeper_one_is_shown_as_text() -> None:
    deep = "[" * 100 + "]" * 100
    assert sum(node.kind == "open" for node in trees.tree(trees.read(deep))) == 99
    absurd = "[" * 200_000 + "]" * 200_000
    with pytest.raises(ValueError, match="nested too deep"):
        trees.read(absurd)
    text = absurd[:150_000]
    view = json_view.of("payload", CutText(text, len(text), 1))
    assert view is not None
    assert (view.nodes, view.raw, view.is_whole) == ([], text, True)


def test_text_that_is_cut_has_no_tree() -> None:
    view = json_view.of("payload", CutText('{"a": "xxx', 5_000, 5_000))
    assert view is not None
    assert (view.nodes, view.is_whole, view.shown_chars) == ([], False, 10)
    unread = json_view.of("payload", CutText(None, None, 10**8))
    assert unread is not None
    assert (unread.is_read, unread.raw) == (False, "")
    assert json_view.of("result", None) is None


def posted(command: str) -> str:
    """The body that the command would send, found by a shell that runs another curl."""
    double = """curl() {
        while [ $# -gt 0 ]; do
            case $1 in
                --data-raw) printf %s "$2"; return ;;
                --data-binary) cat; return ;;
            esac
            shift
        done
    }
    """
    done = subprocess.run(
        ["sh"], input=double + command, capture_output=True, check=True, text=True, cwd="/"
    )
    assert done.stderr == ""
    return done.stdout


HOSTILE = "it's; $(touch x) `id` \\ \" <b> !! %s\nJSON\n\u202eevil\x7f\x85 é"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("length", [1, MAX_ARGUMENT_BYTES])
def test_a_command_sends_exactly_the_job(indent: int | None, length: int) -> None:
    payload = {"n": 9007199254740993, HOSTILE: HOSTILE, "long": "x" * length}
    text = json.dumps(payload, indent=indent, ensure_ascii=False)
    command = create_command(
        "http://h/api/jobs/?a='&b", job_type="a.b", payload_text=text, priority=-5
    )
    assert json.loads(posted(command)) == {"type": "a.b", "payload": payload, "priority": -5}
    assert not {"\u202e", "\x7f", "\x85"} & set(command)


def test_a_command_keeps_the_payloads_digits() -> None:
    command = create_command("http://h/", job_type="a", payload_text='{"f": 1.0}')
    assert posted(command) == '{"type": "a", "payload": {"f": 1.0}}'
