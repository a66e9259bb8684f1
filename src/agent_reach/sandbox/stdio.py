"""Which of the caller's descriptors are terminals, and what the program gets in their place."""

from __future__ import annotations

import os

from agent_reach.sandbox.relay import Relay

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select

    from agent_reach.sandbox.channel import Channel

_TERMINAL = -1
_FORWARDED = (1, 2, 15, 10, 12)  # SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2
_SIGWINCH = 28
_SIGTSTP = 20
_SIGSTOP = 19
_SIGCONT = 18
_TIOCGWINSZ = 0x5413
_TIOCSWINSZ = 0x5414
_TIMEOUT_STEPS = 50


def open_stdio(bound: int | None = None, *, owner: int | None = None) -> Wires:
    """Make a pipe for each of the three, or ask for a terminal where the caller's is one.

    Args:
        bound: most bytes that the program may write to both of its outputs, or None.
        owner: uid and gid of the sandbox on the host where it is not ours, or None.
    """
    _fill_missing()
    inner: list[int] = []
    outer: list[int] = []
    for number in range(3):
        if os.isatty(number):
            inner.append(_TERMINAL)
            outer.append(_TERMINAL)
            continue
        read, write = os.pipe()
        if owner is not None:
            # A pipe has an owner and mode 0600: opened by name, as /dev/stdout, it would be root's.
            os.fchown(read, owner, owner)
        inner.append(read if number == 0 else write)
        outer.append(write if number == 0 else read)
    return Wires(tuple(inner), tuple(outer), bound)  # type: ignore[arg-type]  # three each


def _fill_missing() -> None:
    """Open what the caller closed: a pipe of ours on 0, 1 or 2 would be taken for the caller's."""
    while True:
        descriptor = os.open("/dev/null", os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return


class Wires:
    """The caller's side of the program's standard input and output.

    Args:
        inner: what the worker puts on 0, 1, 2; -1 where it opens a terminal of our own.
        outer: our ends; -1 for a terminal.
        bound: most bytes of output, or None.
    """

    def __init__(self, inner: tuple[int, int, int], outer: tuple[int, int, int], bound: int | None) -> None:
        self._bound = bound
        self.inner = inner
        self._outer = outer
        self._relays: list[Relay] = []
        self._poll: select.poll | None = None
        self._control: Channel | None = None
        self._master = -1
        self._saved: list[object] | None = None
        self._wakeup = (-1, -1)
        self._handlers: dict[int, object] = {}
        self.cause = ""

    @property
    def count(self) -> int:
        """Bytes that the program wrote."""
        return sum(relay.count for relay in self._relays if relay.source != 0)

    @property
    def all_ended(self) -> bool:
        """Whether nobody inside holds the program's output any more."""
        return not any(relay.open and relay.source != 0 for relay in self._relays)

    def close_inner(self) -> None:
        """Close the program's ends in this process."""
        for descriptor in self.inner:
            if descriptor != _TERMINAL:
                os.close(descriptor)

    def attach(self, poll: select.poll, control: Channel) -> None:
        """Start to relay, and to forward signals."""
        self._poll, self._control = poll, control
        stdin, stdout, stderr = self._outer
        if stdin != _TERMINAL:
            os.set_blocking(stdin, False)
            self._start_input(stdin, poll)
        for source, sink in ((stdout, 1), (stderr, 2)):
            if source != _TERMINAL:
                self._relays.append(Relay(source, sink, poll, bound=self._bound))
        self._catch_signals(poll)

    def _start_input(self, sink: int, poll: select.poll) -> None:
        """Relay the caller's input; an empty device needs no relay."""
        if os.path.samestat(os.fstat(0), os.stat("/dev/null")):
            os.close(sink)
            return
        self._relays.append(Relay(0, sink, poll, owns_sink=True))

    def take_terminal(self, master: int) -> None:
        """Couple the caller's terminal to ours: raw outside, line discipline inside."""
        import fcntl
        import termios
        import tty

        self._master = master
        number = next(index for index in range(3) if self._outer[index] == _TERMINAL)
        fcntl.ioctl(master, _TIOCSWINSZ, fcntl.ioctl(number, _TIOCGWINSZ, bytes(8)))
        if self._poll is None:
            return
        if self._outer[0] == _TERMINAL:
            self._saved = termios.tcgetattr(0)
            tty.setraw(0)
            self._relays.append(Relay(0, os.dup(master), self._poll, owns_sink=True))
        # What the program's terminal shows, its echo of the input included, goes to the caller's.
        sink = next(index for index in (1, 2, 0) if self._outer[index] == _TERMINAL)
        if sink == 0:  # what is typed is read from there, by the other relay
            sink = os.dup(0)
        self._relays.append(Relay(master, sink, self._poll, bound=self._bound))

    def stop_with_program(self) -> None:
        """Stop ourselves, so that the shell gets its terminal back; go on with the program when we are continued."""
        import termios
        import tty

        raw = self._saved is not None
        if raw:
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]  # what tcgetattr gave
        os.kill(os.getpid(), _SIGSTOP)
        if raw:
            tty.setraw(0)
        if self._control is not None:
            self._control.send({"kind": "signal", "number": str(_SIGCONT)})

    def _catch_signals(self, poll: select.poll) -> None:
        """Turn signals into bytes that the poll loop sees."""
        import _signal  # type: ignore[import-not-found]  # the C half of `signal`, whose import costs 9 ms

        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wakeup = (read, write)
        poll.register(read, 1)
        _signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (*_FORWARDED, _SIGTSTP, *([_SIGWINCH] if _TERMINAL in self._outer else [])):
            if _signal.getsignal(number) != _signal.SIG_IGN:
                self._handlers[number] = _signal.signal(number, lambda *_: None)

    def handle(self, descriptor: int) -> None:
        """Handle a descriptor that is ready."""
        if descriptor == self._wakeup[0]:
            for number in os.read(descriptor, 64):
                self._on_signal(number)
            return
        for relay in self._relays:
            relay.handle(descriptor)
        if self._bound is not None and self.count > self._bound and not self.cause and self._control is not None:
            self.cause = "output"
            self._control.send({"kind": "kill", "cause": "output"})

    def _on_signal(self, number: int) -> None:
        """Forward a signal to the program, or the new size of the window to its terminal."""
        if number == _SIGWINCH and self._master >= 0:
            import fcntl

            terminal = next(index for index in range(3) if self._outer[index] == _TERMINAL)
            fcntl.ioctl(self._master, _TIOCSWINSZ, fcntl.ioctl(terminal, _TIOCGWINSZ, bytes(8)))
        elif self._control is not None and number == _SIGTSTP:
            self._control.send({"kind": "signal", "number": str(_SIGSTOP)})
            self.stop_with_program()
        elif self._control is not None:
            self._control.send({"kind": "signal", "number": str(number)})

    def drain(self, poll: select.poll, milliseconds: int) -> None:
        """Pass on what is left in the pipes after the sandbox has gone."""
        for _ in range(_TIMEOUT_STEPS):
            outputs = [relay for relay in self._relays if relay.open and relay.source != 0]
            if not outputs:
                return
            ready = poll.poll(milliseconds)
            if not ready:
                return
            for descriptor, _mask in ready:
                for relay in outputs:
                    relay.handle(descriptor)

    def close(self) -> None:
        """Restore the caller's terminal and signals, and close our ends."""
        if self._saved is not None:
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]  # what tcgetattr gave
        if self._handlers:
            import _signal

            _signal.set_wakeup_fd(-1)
            for number, handler in self._handlers.items():
                _signal.signal(number, handler)
        for relay in self._relays:
            if relay.source != 0:
                relay.finish()
