"""Vault over real HTTP: one read per secret, messages that tell causes apart, a token that goes nowhere else."""

from __future__ import annotations

import socket
import ssl

import pytest

from agent_reach.contract.model import EnvGrant
from agent_reach.errors import ProviderError
from agent_reach.providers.resolve import resolve_env
from kv2_server import CASE_SECRETS, CASE_TOKEN, Kv2Server

START = "Missing required environment variable "


@pytest.fixture
def kv2():
    with Kv2Server() as server:
        yield server


@pytest.fixture
def resolve(tmp_path):
    """Resolve ``NAME=uri`` pairs, all of them required."""

    def call(env, **sources):
        grants = tuple(EnvGrant(name, source=uri, required=True) for name, uri in sources.items())
        return resolve_env(grants, caller_env=env, home=str(tmp_path), contract_dir=str(tmp_path))

    return call


def login(server, **more):
    return {"VAULT_ADDR": server.address, "VAULT_TOKEN": CASE_TOKEN, **more}


def problems(resolve, env, **sources):
    with pytest.raises(ProviderError) as caught:
        resolve(env, **sources)
    text = str(caught.value)
    assert CASE_TOKEN not in text
    assert "hunter2" not in text
    return caught.value.problems


def test_fields_of_one_secret_share_one_read(resolve, kv2):
    resolved = resolve(login(kv2), PASS="vault://secret/app/db#password", PORT="vault://secret/app/db#port")
    assert resolved.values == {"PASS": "hunter2-case25", "PORT": "5432"}
    assert kv2.requests == ["GET /v1/secret/data/app/db"]


def test_without_a_field_the_last_segment_is_the_field(resolve):
    secrets = {"secret/prod/user-sync": {"db-host": "h", "db-pass": "p"}, "kv/team/prod/user-sync": {"db-pass": "q"}}
    with Kv2Server(secrets) as server:
        both = {"H": "vault://prod/user-sync/db-host", "P": "vault://prod/user-sync/db-pass"}
        assert resolve(login(server), **both).values == {"H": "h", "P": "p"}
        assert server.requests == ["GET /v1/secret/data/prod/user-sync"]
        mount = login(server, VAULT_KV_MOUNT="kv/team/")
        assert resolve(mount, P="vault://prod/user-sync/db-pass").values == {"P": "q"}
        assert server.requests[-1] == "GET /v1/kv/team/data/prod/user-sync"


def test_seed_form_names_the_uri_when_the_secret_is_missing(resolve):
    with Kv2Server({"secret/prod/user-sync": {"db-host": "h"}}) as server:
        (problem,) = problems(resolve, login(server), DB_PASS="vault://prod/user-sync/db-pass")
    assert problem == (
        START + "DB_PASS from vault://prod/user-sync/db-pass: no key `db-pass` at `secret/prod/user-sync`"
    )


def test_a_version_and_a_namespace_are_asked_for(resolve):
    with Kv2Server(namespace="team-a") as server:
        env = login(server, VAULT_NAMESPACE="team-a")
        assert resolve(env, P="vault://secret/app/db?version=3#password").values == {"P": "hunter2-case25"}
        assert server.requests == ["GET /v1/secret/data/app/db?version=3"]
        assert server.headers[0]["X-Vault-Request"] == "true"


def test_causes_are_told_apart(resolve, kv2):
    found = problems(
        resolve,
        login(kv2),
        C_TYPO="vault://secret/app/db#passsword",
        D_NULL="vault://secret/app/db#nothing",
        BLANK="vault://secret/app/db#blank",
        E_NOPATH="vault://secret/app/dbb#password",
        F_DELETED="vault://secret/app/gone#password",
        G_FORBIDDEN="vault://secret/app/forbidden#password",
    )
    reasons = [problem.split(": ", 1)[1] for problem in found]
    assert reasons == [
        "no key `passsword` at `secret/app/db`; it has `password`",
        "key `nothing` at `secret/app/db` is null",
        "key `blank` at `secret/app/db` is empty",
        "no secret at `secret/app/dbb` (HTTP 404)",
        "version 2 of `secret/app/gone` was deleted at 2026-01-01T00:00:00Z",
        "permission denied at `secret/app/forbidden` (HTTP 403)",
    ]
    assert all(problem.startswith(START) for problem in found)
    assert kv2.reads("secret/data/app/db") == 1


def test_one_report_names_every_cause_of_every_provider(resolve, kv2, tmp_path):
    """The bad contract of case C25."""
    sources = {
        "DB_PASSWORD": "vault://secret/app/db#password",
        "A_UNSET": "env://CASE_NOT_THERE",
        "B_BLANK": "env://CASE_BLANK",
        "C_TYPO": "vault://secret/app/db#passsword",
        "D_NULL": "vault://secret/app/db#nothing",
        "E_NOPATH": "vault://secret/app/dbb#password",
        "F_DELETED": "vault://secret/app/gone#password",
        "G_FORBIDDEN": "vault://secret/app/forbidden#password",
        "H_NOFILE": "file://./secrets/none",
    }
    told = {
        "A_UNSET": "CASE_NOT_THERE is not set",
        "B_BLANK": "set but empty",
        "C_TYPO": "no key `passsword` at `secret/app/db`; it has `password`",
        "D_NULL": "null",
        "E_NOPATH": "404",
        "F_DELETED": "deleted",
        "G_FORBIDDEN": "permission denied",
        "H_NOFILE": f"no such file: {tmp_path}/secrets/none",
    }
    found = problems(resolve, login(kv2, CASE_BLANK=""), **sources)
    assert len(found) == len(told)
    for problem, (name, text) in zip(found, told.items(), strict=True):
        assert problem.startswith(f"{START}{name} from {sources[name]}: ")
        assert text in problem
    assert kv2.reads("secret/data/app/db") == 1


@pytest.mark.parametrize("field", ["passsword", "nothing", "blank"])
def test_not_found_takes_the_default(kv2, tmp_path, field):
    grant = EnvGrant("X", source=f"vault://secret/app/db#{field}", default="d")
    assert resolve_env((grant,), caller_env=login(kv2), home=str(tmp_path), contract_dir="/").values == {"X": "d"}


def test_denied_does_not_take_the_default(kv2, tmp_path):
    grant = EnvGrant("X", source="vault://secret/app/forbidden#x", default="d")
    with pytest.raises(ProviderError, match="permission denied"):
        resolve_env((grant,), caller_env=login(kv2), home=str(tmp_path), contract_dir="/")


def test_objects_are_refused_and_numbers_become_the_text_they_were(resolve):
    with Kv2Server({"secret/a": {"o": {"x": 1}, "l": [1], "n": 1.50, "b": False}}) as server:
        resolved = resolve(login(server), N="vault://secret/a#n", B="vault://secret/a#b")
        assert resolved.values == {"N": "1.5", "B": "false"}
        for field in "ol":
            (problem,) = problems(resolve, login(server), X=f"vault://secret/a#{field}")
            assert problem.endswith(f"key `{field}` at `secret/a` is a list or an object, not one value")


def test_server_not_running_names_the_address_and_the_error(resolve):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        (problem,) = problems(resolve, {"VAULT_ADDR": address, "VAULT_TOKEN": CASE_TOKEN}, P="vault://secret/a#b")
    assert problem == f"{START}P from vault://secret/a#b: VAULT_ADDR {address}: Connection refused"


def test_wrong_token_is_denied_not_missing(resolve, kv2):
    (problem,) = problems(resolve, login(kv2, VAULT_TOKEN="wrong"), P="vault://secret/app/db#password")
    assert "permission denied" in problem
    assert "404" not in problem


@pytest.mark.parametrize("token", ["a\r\nX-Evil: 1", "a b", "ä", "  "])
def test_a_token_that_could_forge_headers_is_not_sent(resolve, kv2, token):
    (problem,) = problems(resolve, login(kv2, VAULT_TOKEN=token), P="vault://secret/app/db#password")
    assert "VAULT_TOKEN" in problem
    assert "Evil" not in problem
    assert kv2.requests == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("", "VAULT_ADDR is not set"),
        ("file:///etc/passwd", "VAULT_ADDR is written https://HOST:PORT"),
        ("http://user:hunter2@127.0.0.1:1", "VAULT_ADDR has a user name"),
        ("http://[::1", "VAULT_ADDR is not an address"),
        ("http://127.0.0.1:99999", "VAULT_ADDR is not an address"),
    ],
)
def test_addresses_that_are_none(resolve, address, reason):
    (problem,) = problems(resolve, {"VAULT_ADDR": address, "VAULT_TOKEN": CASE_TOKEN}, P="vault://secret/a#b")
    assert reason in problem


def test_no_credentials_says_what_to_set(resolve, kv2):
    (problem,) = problems(resolve, {"VAULT_ADDR": kv2.address}, P="vault://secret/a#b")
    assert "no credentials for Vault: set VAULT_TOKEN" in problem


def test_token_file_of_the_home_directory(resolve, kv2, tmp_path):
    (tmp_path / ".vault-token").write_text(CASE_TOKEN + "\n")
    assert resolve({"VAULT_ADDR": kv2.address}, P="vault://secret/app/db#password").values["P"] == "hunter2-case25"


@pytest.mark.parametrize(
    ("mount", "body", "env"),
    [
        ("approle", {"role_id": "r", "secret_id": "s"}, {"VAULT_ROLE_ID": "r", "VAULT_SECRET_ID": "s"}),
        ("jwt", {"role": "ci", "jwt": "h.p.s"}, {"VAULT_AUTH_ROLE": "ci", "VAULT_JWT": "h.p.s"}),
        ("jwt", {"role": "ci", "jwt": "h.p.s"}, {"VAULT_AUTH_ROLE": "ci", "VAULT_ID_TOKEN": "h.p.s"}),
        (
            "gitlab",
            {"role": "ci", "jwt": "j"},
            {"VAULT_AUTH_ROLE": "ci", "VAULT_JWT": "j", "VAULT_AUTH_PATH": "gitlab"},
        ),
        ("kubernetes", {"role": "pod", "jwt": "k8s.token"}, {"VAULT_AUTH_ROLE": "pod"}),
    ],
)
def test_logins(resolve, tmp_path, mount, body, env):
    (tmp_path / "k8s").write_text("k8s.token\n")
    with Kv2Server(logins={mount: body}) as server:
        env = {"VAULT_ADDR": server.address, "VAULT_K8S_TOKEN_PATH": str(tmp_path / "k8s"), **env}
        sources = {"A": "vault://secret/app/db#password", "B": "vault://secret/app/dbb#x"}
        (problem,) = problems(resolve, env, **sources)
        assert problem.startswith(START + "B ")
        assert server.requests.count(f"POST /v1/auth/{mount}/login") == 1
        assert resolve(env, A=sources["A"]).values == {"A": "hunter2-case25"}


def test_a_refused_login_is_tried_once_and_holds_for_all(resolve):
    with Kv2Server(logins={"approle": {"role_id": "other"}}) as server:
        env = {"VAULT_ADDR": server.address, "VAULT_ROLE_ID": "hunter2-role"}
        found = problems(resolve, env, A="vault://secret/a#x", B="vault://secret/b#x")
        assert len(found) == 2
        assert all("permission denied" in problem and "auth/approle" in problem for problem in found)
        assert server.requests == ["POST /v1/auth/approle/login"]


def test_a_redirect_to_another_server_is_refused_and_the_token_stays(resolve, kv2):
    with Kv2Server(redirect={"/v1/secret/data/a": f"{kv2.address}/v1/secret/data/app/db"}) as front:
        (problem,) = problems(resolve, login(front), P="vault://secret/a#password")
        assert "redirects to another server" in problem
    assert kv2.requests == []


@pytest.mark.parametrize("target", ["file:///etc/passwd", "//evil.example/x", "http://127.0.0.1:bad/", "/elsewhere"])
def test_redirects_to_other_schemes_are_refused(resolve, target):
    with Kv2Server(redirect={"/base/v1/secret/data/a": target}) as server:
        env = login(server, VAULT_ADDR=server.address + "/base")
        (problem,) = problems(resolve, env, P="vault://secret/a#password")
        assert "redirects to" in problem


def test_a_redirect_on_the_same_server_is_followed(resolve):
    with Kv2Server(redirect={"/v1/secret/data/a": "/v1/secret/data/app/db"}) as server:
        assert resolve(login(server), P="vault://secret/a#password").values == {"P": "hunter2-case25"}


def test_a_redirect_loop_ends(resolve):
    with Kv2Server(redirect={"/v1/secret/data/a": "/v1/secret/data/a"}) as server:
        (problem,) = problems(resolve, login(server), P="vault://secret/a#password")
        assert "redirects without end" in problem


@pytest.mark.parametrize(
    "uri", ["vault://a", "vault://a//b", "vault://a/../b#c", "vault://a/b?x=1#c", "vault://a/b?version=x#c"]
)
def test_paths_that_are_none(resolve, kv2, uri):
    problems(resolve, login(kv2), P=uri)
    assert kv2.requests == []


def test_a_server_that_never_answers(resolve, monkeypatch):
    monkeypatch.setattr("agent_reach.providers.vault_http.SECONDS", 0.3)
    with Kv2Server(silent=True) as server:
        (problem,) = problems(resolve, login(server), P="vault://secret/a#b")
    assert "no answer within 0.3 s" in problem


def test_a_server_that_is_none(resolve):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        import threading

        def answer():
            connection, _peer = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2 " + CASE_TOKEN.encode() + b"\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        (problem,) = problems(resolve, {"VAULT_ADDR": address, "VAULT_TOKEN": CASE_TOKEN}, P="vault://secret/a#b")
        thread.join()
    assert "not an HTTP answer" in problem


def test_tls_needs_a_trusted_certificate(resolve, certificate):
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with Kv2Server(tls=context) as server:
        (problem,) = problems(resolve, login(server), P="vault://secret/app/db#password")
        assert "certificate not trusted" in problem
        assert "VAULT_CACERT" in problem
        trusted = login(server, VAULT_CACERT=str(cert))
        assert resolve(trusted, P="vault://secret/app/db#password").values == {"P": "hunter2-case25"}
        (problem,) = problems(resolve, login(server, VAULT_CACERT="/nowhere"), P="vault://secret/app/db#password")
        assert "VAULT_CACERT" in problem


def test_the_secrets_of_the_case_are_complete():
    assert set(CASE_SECRETS["secret/app/db"]) == {"password", "port", "blank", "nothing"}
