"""The readers alone: what each takes, and the one line in which it refuses the rest."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

import pytest

from config import env
from config.env import InvalidValue, Kind, Variable


def read(kind: Kind[Any], text: str, *, secret: bool = False) -> Any:
    return Variable("NAME", kind, "", "", secret=secret).read({"NAME": text})


def refusal(kind: Kind[Any], text: str, *, secret: bool = False) -> str:
    with pytest.raises(InvalidValue) as caught:
        read(kind, text, secret=secret)
    return str(caught.value)


def test_a_variable_that_is_not_set_has_its_default() -> None:
    assert Variable("NAME", env.whole_number(1, 9), "4", "").read({}) == 4


@pytest.mark.parametrize("kind", [env.BOOLEAN, env.whole_number(0, 9), env.NAME])
def test_an_empty_value_never_counts_as_the_default(kind: Kind[Any]) -> None:
    with pytest.raises(InvalidValue, match="NAME='' is not allowed"):
        Variable("NAME", kind, "1", "").read({"NAME": ""})


@pytest.mark.parametrize("text", ["true", "TRUE", "True", "1", "yes", "Yes", "on", "ON"])
def test_these_words_are_true(text: str) -> None:
    assert read(env.BOOLEAN, text) is True


@pytest.mark.parametrize("text", ["false", "FALSE", "False", "0", "no", "No", "off", "OFF"])
def test_these_words_are_false(text: str) -> None:
    assert read(env.BOOLEAN, text) is False


@pytest.mark.parametrize(
    "text", ["", " ", "2", "-1", "t", "y", "none", "true ", "true\n", "\u0661"]
)
def test_other_words_are_neither_true_nor_false(text: str) -> None:
    assert refusal(env.BOOLEAN, text) == (
        f"NAME={text!r} is not allowed: true, false, 1, 0, yes, no, on or off"
    )


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("1024", 1024), ("007", 7)])
def test_ascii_digits_are_a_whole_number(text: str, number: int) -> None:
    assert read(env.whole_number(1, 1024), text) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "abc", "0", "1025", "-1", "-5", "+4", "--4", "4.0", "4,0", "1e3", "0x10"),
        *(
            "4_0",
            " 4",
            "4 ",
            "4\n",
            "4\r",
            "\u0664",
            "\u00b2",
            "\uff14",
            "nan",
            "inf",
            "None",
            "True",
        ),
    ],
)
def test_anything_else_is_no_whole_number(text: str) -> None:
    assert refusal(env.whole_number(1, 1024), text) == (
        f"NAME={text!r} is not allowed: a whole number from 1 to 1024"
    )


def test_a_number_with_more_digits_than_python_converts_is_refused() -> None:
    assert "is not allowed" in refusal(env.whole_number(1, 1024), "9" * 5000)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("60", 60), ("none", None), ("NONE", None)])
def test_a_number_or_none_may_be_none(text: str, value: int | None) -> None:
    assert read(env.whole_number_or_none(0, 60), text) == value


@pytest.mark.parametrize("text", ["", "-1", "61", "null", "nil", "None "])
def test_a_number_or_none_takes_no_other_word(text: str) -> None:
    assert refusal(env.whole_number_or_none(0, 60), text) == (
        f"NAME={text!r} is not allowed: a whole number from 0 to 60, or none"
    )


@pytest.mark.parametrize("text", ["sqlite", "SQLite", "SQLITE"])
def test_a_choice_is_taken_in_any_case_and_kept_in_ours(text: str) -> None:
    assert read(env.choice("postgresql", "sqlite"), text) == "sqlite"


@pytest.mark.parametrize("text", ["", "mysql", "sqlite3", "sqlite "])
def test_a_choice_names_what_there_is_to_choose_from(text: str) -> None:
    assert refusal(env.choice("postgresql", "sqlite"), text) == (
        f"NAME={text!r} is not allowed: postgresql or sqlite"
    )


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        (" , ", []),
        ("*", ["*"]),
        ("a.example.com", ["a.example.com"]),
        (" .example.com , localhost,,10.0.0.1, ", [".example.com", "localhost", "10.0.0.1"]),
        ("[::1]", ["[::1]"]),
    ],
)
def test_hosts_are_split_at_commas_and_trimmed(text: str, items: list[str]) -> None:
    assert read(env.HOSTS, text) == items


@pytest.mark.parametrize(
    "text",
    ["http://example.com", "example.com:8000", "a b", "*.example.com", "a,b/c", "a\x00", "bücher"],
)
def test_a_host_with_scheme_port_or_path_is_refused(text: str) -> None:
    assert refusal(env.HOSTS, text).startswith(f"NAME={text!r} is not allowed: host names")


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("", []),
        ("http://localhost:5173", ["http://localhost:5173"]),
        ("https://App.Example.com", ["https://app.example.com"]),
        ("http://[::1]:5173 ,https://a.b", ["http://[::1]:5173", "https://a.b"]),
        ("http://a:1,http://a:65535", ["http://a:1", "http://a:65535"]),
    ],
)
def test_origins_are_scheme_host_and_perhaps_port(text: str, origins: list[str]) -> None:
    assert read(env.ORIGINS, text) == origins


@pytest.mark.parametrize(
    "text",
    [
        *("*", "null", "localhost:5173", "http://", "//a.b", "http://a.b/", "http://a.b/path"),
        *("http://a.b?x", "http://a.b#x", "http://u@a.b", "http://*.a.b", "http://a.b:"),
        *("http://a.b:0", "http://a.b:65536", "http://a.b:x", "http://a b", "http://ok,bad"),
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    assert refusal(env.ORIGINS, text) == (
        f"NAME={text!r} is not allowed: origins as scheme://host or scheme://host:port,"
        " separated by commas"
    )


def test_addresses_may_be_names_or_numbers() -> None:
    assert read(env.ADDRESSES, "127.0.0.1, ::1,host.docker.internal,my_host") == [
        "127.0.0.1",
        "::1",
        "host.docker.internal",
        "my_host",
    ]
    assert "is not allowed" in refusal(env.ADDRESSES, "127.0.0.1 ::1")


@pytest.mark.parametrize(
    "text",
    ["Asia/Tehran", "UTC", "Etc/GMT+5", "America/Port-au-Prince", "America/Argentina/Buenos_Aires"],
)
def test_the_zones_of_the_database_are_known(text: str) -> None:
    assert read(env.TIME_ZONE_NAME, text) == text


def test_no_real_zone_has_a_name_that_is_refused_for_its_form() -> None:
    # "localtime" is the machine's own zone under a name that says nothing.
    zones = available_timezones() - {"localtime"}
    assert zones
    assert [zone for zone in sorted(zones) if not env._ZONE.fullmatch(zone)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "Asia/Teheran", "Asia", "Asia/", "/Asia/Tehran", "Asia/Tehran\n", " UTC"),
        *("../../etc/passwd", "/etc/localtime", "Asia/../UTC", "./UTC", "posixrules", "right/UTC"),
        *("UTC\x00", "tzdata.zi", "UTC+3", "+03:30", "A" * 90),
    ],
)
def test_a_zone_that_the_database_does_not_know_is_refused(text: str) -> None:
    assert refusal(env.TIME_ZONE_NAME, text) == (
        f"NAME={text!r} is not allowed: the name of a time zone, such as Asia/Tehran or UTC"
    )


@pytest.mark.parametrize("text", ["a\nb", "a\r", "a\tb", "\x1b[31m", "a\x00", "\udcff", "a\u2028b"])
@pytest.mark.parametrize("kind", [env.TEXT, env.NAME], ids=["text", "name"])
def test_control_characters_are_refused_and_never_printed(kind: Kind[str], text: str) -> None:
    line = refusal(kind, text)
    assert line.isprintable()
    assert line.startswith("NAME='")


def test_text_may_hold_spaces_quotes_and_any_script() -> None:
    assert read(env.NAME, 'it\'s صف "1"') == 'it\'s صف "1"'


def test_a_name_may_not_be_empty_where_text_may() -> None:
    assert read(env.TEXT, "") == ""
    assert refusal(env.NAME, "") == (
        "NAME='' is not allowed: text without control characters, not empty"
    )


def test_a_long_value_is_shortened_and_its_length_told() -> None:
    line = refusal(env.BOOLEAN, "x" * 10_000)
    assert "x" * env.MAX_SHOWN_LENGTH in line
    assert "x" * (env.MAX_SHOWN_LENGTH + 1) not in line
    assert "(10000 characters)" in line
    assert len(line) < 250


def test_a_long_value_of_control_characters_stays_short_on_one_line() -> None:
    line = refusal(env.TEXT, "\udcff" * 10_000)
    assert line.isprintable()
    assert len(line) < 800


def test_a_refused_secret_is_not_shown() -> None:
    assert refusal(env.SECRET_TEXT, "hunter2\udcff", secret=True) == (
        "NAME=(not shown) is not allowed: text in UTF-8"
    )
