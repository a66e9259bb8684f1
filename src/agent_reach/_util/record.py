"""Frozen value classes that cost nothing to import.

`dataclasses` pulls in `inspect`, `ast` and `re`, and `typing.NamedTuple` pulls in `typing`: each adds
3 to 10 ms to a cold `reach run`, more than the whole sandbox set-up. A `Record` subclass is declared and
type-checked like a frozen dataclass (PEP 681) and is built by the forty lines below.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, dataclass_transform
else:

    def dataclass_transform(**_options: object) -> Callable[[type], type]:
        """Stand in for `typing.dataclass_transform`, which only type checkers read."""
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """Base of immutable value classes: annotated fields, optional defaults, equality, hash, repr.

    Fields may be given by position or by keyword. Defaults must be immutable.
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _defaults: dict[str, object] = {}  # noqa: RUF012 - replaced whole per subclass, never mutated

    def __init_subclass__(cls) -> None:
        """Collect the annotated fields of the subclass behind those of its base."""
        own = tuple(name for name in cls.__annotations__ if not name.startswith("_"))
        cls._fields = cls._fields + own
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Set every field once.

        Raises:
            TypeError: a field is missing, unknown or given twice.
        """
        fields = self._fields
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, got {len(args)}")
        values = dict(zip(fields, args, strict=False))
        for name, value in kwargs.items():
            if name in values or name not in fields:
                raise TypeError(f"{type(self).__name__}: field {name!r} is unknown or given twice")
            values[name] = value
        state = self.__dict__
        for name in fields:
            if name in values:
                state[name] = values[name]
            elif name in self._defaults:
                state[name] = self._defaults[name]
            else:
                raise TypeError(f"{type(self).__name__}: field {name!r} is missing")

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a record never changes."""
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        """Refuse: a record never changes."""
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        """Compare field by field with a record of the same class."""
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        """Hash the field values."""
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        """Show the class name and every field."""
        inner = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields)
        return f"{type(self).__name__}({inner})"

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})
