"""The servers that other tests stand on do what those tests believe."""

import pytest

from postgres import NoPostgresError, Postgres

pytestmark = pytest.mark.postgres


def test_a_server_answers_and_leaves_nothing_behind():
    try:
        with Postgres() as server:
            server.sql("CREATE TABLE t (n integer); INSERT INTO t VALUES (41), (42)")
            assert server.sql("SELECT max(n) FROM t") == "42"
            directory = server.directory
    except NoPostgresError as error:
        pytest.skip(str(error))
    assert not directory.exists()


def test_an_address_put_on_lo_is_heard_inside_the_namespace_and_nowhere_else(own_netns):
    space = own_netns(addresses=["8.8.8.8"], hosts="8.8.8.8 resolver.test")
    listen = (
        "import socket; s = socket.create_server(('8.8.8.8', 53)); print('up', flush=True); s.accept(); print('heard')"
    )
    connect = "import socket; socket.create_connection(('resolver.test', 53), 5).close()"
    with space.popen(["python3", "-c", listen], stdout=-1, text=True) as listener:
        try:
            assert listener.stdout.readline() == "up\n"
            done = space.run(["python3", "-c", connect])
            assert done.returncode == 0, done.stderr
            assert listener.communicate(timeout=20)[0] == "heard\n"
        finally:
            listener.kill()
