"""Kernel tests are started as root and as an ordinary user, in whole and in confined processes."""

from callers import caller, confined, known_callers, pytest_generate_tests  # noqa: F401 - fixtures
