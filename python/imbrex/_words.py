"""Arguments of functions as words of a command line, so that both mean the same and refuse the same."""

from __future__ import annotations

import difflib
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _imbrex
from ._errors import UsageError

#: Options that say how a shell is answered.
OF_SHELL = ("help", "json", "quiet")

#: Somebody may name a file by any of these.
Path = str | os.PathLike[str]


def path(value: Path) -> str:
    """A file by its name.

    Raises:
        TypeError: It is no name of a file.
    """
    named = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if isinstance(named, str):
        return named
    raise TypeError(f"{value!r}: accepted: a path as str or os.PathLike[str]")


def words(command: tuple[str, ...], options: Mapping[str, Any]) -> list[str]:
    """The options of a command as it is typed. What is None or False is left out.

    Raises:
        UsageError: The command has no such option.
        TypeError: A value is nothing that can be typed.
    """
    known = {name: takes for name, takes in _imbrex.options(list(command)) or [] if name not in OF_SHELL}
    typed = []
    for name, value in options.items():
        option = name.rstrip("_").replace("_", "-")
        takes = known.get(option)
        if takes is None:
            near = difflib.get_close_matches(option, known, 1)
            hint = f", did you mean {near[0].replace('-', '_')}?" if near else ""
            accepted = ", ".join(sorted(it.replace("-", "_") for it in known))
            raise UsageError(f"{' '.join(command)} has no option {name}{hint}; accepted: {accepted}", value=name)
        if value is None or value is False:
            continue
        if takes == "flag":
            if value is not True:
                raise UsageError(f"{name}={value!r}: accepted: True or False", value=repr(value))
            typed.append(f"--{option}")
        elif takes == "values":
            typed += [f"--{option}={it}" for it in _several(name, value)]
        else:
            typed.append(f"--{option}={_joined(name, value)}")
    return typed


def _several(name: str, value: Any) -> Iterable[str]:
    """The values of an option that may be given several times: of a mapping `KEY=VALUE` for each key."""
    if isinstance(value, Mapping):
        return [f"{key}={_joined(name, of_key)}" for key, of_key in value.items()]
    if isinstance(value, str | os.PathLike) or not isinstance(value, Iterable):
        return [_joined(name, value)]
    return [_joined(name, it) for it in value]


def _joined(name: str, value: Any) -> str:
    """A value as it is typed, several with commas between them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | numbers.Real):
        return str(value)
    if isinstance(value, os.PathLike):
        return path(value)
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        return ",".join(_joined(name, it) for it in value)
    raise TypeError(f"{name}={value!r}: accepted: text, a number, a path, or several of them")
