"""Copy to ~/.reach/providers.py to read `vault://` through hvac instead of the built-in provider.

reach starts this file outside the sandbox, in a process of its own, under the interpreter that
~/.config/reach/config.yaml names:

    providers:
      python: /path/to/venv/bin/python
"""

import os

import hvac  # HashiCorp Vault client


def vault_provider(path: str) -> str | None:
    """Return one field of a secret of the KV v2 engine mounted at `secret`, None when there is no such field.

    vault://prod/user-sync/db-host is the field `db-host` of secret/data/prod/user-sync: all but the last
    segment is the path.

    Args:
        path: what stands behind `vault://`, such as ``prod/user-sync/db-host``.

    Raises:
        ValueError: the path has no field.
    """
    secret, _, field = path.rpartition("/")
    if not secret:
        raise ValueError(f"vault path without a field: {path}")
    client = hvac.Client(url=os.environ["VAULT_ADDR"], token=os.environ["VAULT_TOKEN"])
    try:
        answer = client.secrets.kv.v2.read_secret_version(
            path=secret, mount_point="secret", raise_on_deleted_version=True
        )
    except hvac.exceptions.InvalidPath:
        return None
    return answer["data"]["data"].get(field)
