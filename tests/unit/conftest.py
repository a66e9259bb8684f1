"""What all of tests/unit shares: how hypothesis runs, and a certificate."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import HealthCheck, settings

# No example is timed, and fewer of them: the whole of tests/unit has to run in seconds.
settings.register_profile("unit", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Paths of a certificate for localhost that nobody trusts yet, and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key
