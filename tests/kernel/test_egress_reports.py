"""The report channel: what a guard inside says explains refusals, and a hostile one cannot do more than that."""

from __future__ import annotations

from agent_reach.outcome import Place
from egress_world import SOURCE, World

HEAD = f"""
import os, socket, struct, sys, threading
sys.path.insert(0, {SOURCE!r})
from agent_reach.wire import frames, reports
channel = socket.socket(socket.AF_UNIX); channel.connect(reports.CHANNEL)
spot = reports.Spot("job.py", 18, "main")
"""


def test_a_refused_connect_has_the_place_that_its_thread_reported():
    code = (
        HEAD
        + """
def one(line, port):
    channel.sendall(reports.at(threading.get_native_id(), reports.Spot("job.py", line, "main")))
    try: socket.create_connection(("10.0.0.1", port), timeout=5)
    except PermissionError: pass
threads = [threading.Thread(target=one, args=(line, line)) for line in (7, 8, 9)]
for t in threads: t.start()
for t in threads: t.join()
try: socket.create_connection(("10.0.0.1", 10), timeout=5)
except PermissionError: print("ok")"""
    )
    ended = World().run(code)
    assert ended.output == "ok\n"
    found = {denial.subject: denial.place for denial in ended.denials}
    assert found == {f"10.0.0.1:{line}": Place("job.py", line, "main") for line in (7, 8, 9)} | {"10.0.0.1:10": None}


def test_a_refused_lookup_has_place_and_port_and_counts_once():
    code = (
        HEAD
        + """
channel.sendall(reports.name("db.internal.invalid", 5432, spot))
for _ in range(3):
    try: socket.getaddrinfo("db.internal.invalid", 5432)
    except OSError: pass
channel.sendall(reports.name("evil.example", 443, spot))
try: socket.create_connection(("evil.example", 443), timeout=5)
except PermissionError: print("ok")"""
    )
    ended = World().run(code)
    assert ended.output == "ok\n"
    assert [(one.action, one.subject, one.place) for one in ended.denials] == [
        ("resolve", "db.internal.invalid:5432", Place("job.py", 18, "main")),
        ("connect", "evil.example:443", Place("job.py", 18, "main")),
    ]
    assert ended.denials[0].entry == "- {host: db.internal.invalid, port: 5432, protocol: tcp}"
    assert len(ended.events) == 2


def test_a_refusal_of_the_python_level_and_a_question():
    code = (
        HEAD
        + """
channel.sendall(reports.denied("call", "os.system", "resources.commands", spot=spot))
def ask(path):
    channel.sendall(reports.exists(path)); return frames.Decoder().feed(channel.recv(4096))[0]["answer"]
print(ask("/there"), ask("/absent"))"""
    )
    ended = World(path_exists=lambda path: path == "/there").run(code)
    assert ended.output == "yes no\n"
    assert [(one.action, one.subject, one.layer, one.place) for one in ended.denials] == [
        ("call", "os.system", "python", Place("job.py", 18, "main"))
    ]
    assert World().run(code).output == "unknown unknown\n"


def test_a_child_process_has_a_channel_of_its_own():
    code = (
        HEAD
        + """
pid = os.fork()
if pid == 0:
    mine = socket.socket(socket.AF_UNIX); mine.connect(reports.CHANNEL)
    mine.sendall(reports.denied("open", "/x", "c")); os._exit(0)
os.waitpid(pid, 0); print("ok")"""
    )
    ended = World().run(code)
    assert (ended.output, ended.subjects()) == ("ok\n", ["/x"])


def test_flags_of_the_channel_are_kept():
    code = (
        HEAD
        + """
for blocking in (True, False):
    s = socket.socket(socket.AF_UNIX); s.setblocking(blocking); s.set_inheritable(blocking); s.connect(reports.CHANNEL)
    print(os.get_blocking(s.fileno()), os.get_inheritable(s.fileno()))"""
    )
    assert World().run(code).output == "True True\nFalse False\n"


def test_hostile_frames_end_the_channel_and_nothing_else():
    code = (
        HEAD
        + """
def fresh():
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(reports.CHANNEL); return s
bad = (b"\\xff\\xff", bytes(100), frames.encode({"kind": "grant", "host": "evil"}), frames.encode({"kind": "at"}),
    frames.encode({"kind": "at", "tid": "9" * 40, "file": "f", "line": "1", "function": ""}),
    frames.encode({"kind": "denied", "action": "allow",
        **dict.fromkeys(("subject", "clause", "entry", "shown", "file"), ""),
        "line": "0", "function": ""}),
    frames.encode({"kind": "exists", "path": "relative"}), bytes(range(1, 255)) * 9)
for data in bad:
    s = fresh()
    try: s.sendall(data); rest = s.recv(1)
    except ConnectionResetError: rest = b""
    assert rest == b"", data
s = fresh(); s.sendall(reports.denied("open", "/x\\x1b[2J\\n", "c")); print("ok")"""
    )
    ended = World().run(code)
    assert ended.output == "ok\n"
    assert ended.subjects() == ["/x\\x1b[2J\\x0a"]


def test_a_flood_is_bounded():
    code = (
        HEAD
        + """
sent = 0
try:
    for number in range(40000): channel.sendall(reports.denied("open", "/%d" % number, "c")); sent += 1
except OSError: pass
late = socket.socket(socket.AF_UNIX); print(sent < 40000, late.connect_ex(reports.CHANNEL))"""
    )
    ended = World().run(code)
    assert ended.output == "True 111\n"
    assert len(ended.denials) <= 1001
    assert len(ended.events) <= 1000


def test_many_channels_are_bounded():
    code = (
        HEAD
        + """
held, refused = [], 0
for _ in range(400):
    s = socket.socket(socket.AF_UNIX); refused += s.connect_ex(reports.CHANNEL) == 111; held.append(s)
for s in held: s.close()
s = socket.socket(socket.AF_UNIX); s.connect(reports.CHANNEL); print(refused)"""
    )
    assert World().run(code).output == "145\n"
