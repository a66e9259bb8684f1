"""Provider URIs are read strictly, once, and nothing in them is expanded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_reach.providers.uri import Ref, UriError, parse


@pytest.mark.parametrize(
    ("uri", "scheme", "path", "options", "field"),
    [
        ("env://DB_HOST", "env", "DB_HOST", (), ""),
        ("vault://prod/user-sync/db-pass", "vault", "prod/user-sync/db-pass", (), ""),
        ("vault://secret/app/db#password", "vault", "secret/app/db", (), "password"),
        ("vault://secret/app/db?version=3#password", "vault", "secret/app/db", (("version", "3"),), "password"),
        ("file:///etc/ssl/certs/ca.crt", "file", "/etc/ssl/certs/ca.crt", (), ""),
        ("file://./secrets/none", "file", "./secrets/none", (), ""),
        ("file://my%20file%23", "file", "my file#", (), ""),
        ("dotenv://.env#NAME", "dotenv", ".env", (), "NAME"),
        ("cmd://op read op://vault/item", "cmd", "op read op://vault/item", (), ""),
        ("aws-sm://prod/db?region=eu&stage=x", "aws-sm", "prod/db", (("region", "eu"), ("stage", "x")), ""),
        ("file://ä", "file", "ä", (), ""),
    ],
)
def test_parts(uri, scheme, path, options, field):
    assert parse(uri) == Ref(uri, scheme, path, options, field)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "DB_HOST",
        "env:DB_HOST",
        "://x",
        "Env://X",
        "1env://X",
        "env://",
        "env://#x",
        "vault://a/b#",
        "vault://a/b?",
        "vault://a/b?x",
        "vault://a/b?=1",
        "env://X ",
        " env://X",
        "env://X\n",
        "env://X\x1b[31m",
        "env://X\u202e",
        "env://${HOME}",
        "vault://${env:X}/b#c",
        "file://a%",
        "file://a%zz",
        "file://a%00b",
        "file://a%ff",
        "file://" + "a" * 5000,
    ],
)
def test_refused(uri):
    with pytest.raises(UriError):
        parse(uri)


def test_format_fields_are_plain_text():
    assert parse("file://{0.__class__}").path == "{0.__class__}"


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_is_parsed_or_refused(text):
    try:
        ref = parse(text)
    except UriError:
        return
    assert ref.path
    assert "\0" not in ref.path + ref.field
