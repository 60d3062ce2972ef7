"""Policies of caches in Python, to be tried in simulations."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from . import _imbrex
from ._errors import UsageError

#: What stands before the name of a policy in the settings of a stack.
KIND = "python:"


class Policy(Protocol):
    """Chooses which blocks leave a full cache: what a class in `policies` must make, and may have as its base.

    A block is the number of 4 KiB of the device that is cached, from 0. The policy knows the blocks between `on_insert` and
    `on_remove`.
    """

    def before_insert(self, block: int) -> None:
        """A block that was looked up and is not here is about to come in: said before the cache makes room for it."""

    @abstractmethod
    def on_insert(self, block: int, is_write: bool) -> None:
        """A block came in. One that was written is dirty."""

    @abstractmethod
    def on_access(self, block: int, is_write: bool) -> None:
        """A block was found in the cache. One that was written is dirty from now on."""

    def on_write_around(self, blocks: range) -> None:
        """A request writes blocks that go around the cache. None of them is cached any more."""

    @abstractmethod
    def victims(self) -> Iterable[int]:
        """The blocks that are to leave now, at least one, in the order of leaving. The cache removes each of them."""

    @abstractmethod
    def on_remove(self, block: int) -> None:
        """A block leaves."""


#: A class of policies, or anything else that makes one for a cache.
MakePolicy = Callable[[_imbrex.Cache], Policy]


def named(policies: Mapping[str, MakePolicy] | None) -> list[tuple[str, Callable[[_imbrex.Cache], Any]]]:
    """The policies by the names that stacks have for them.

    Raises:
        UsageError: A name cannot be typed.
        TypeError: There is something else in the place of a policy.
    """
    found: list[tuple[str, Callable[[_imbrex.Cache], Any]]] = []
    for name, make in (policies or {}).items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise UsageError(f"policies: {name!r} is no name; accepted: letters, digits, - and _", value=repr(name))
        if not callable(make):
            raise TypeError(f"policies: {name}={make!r}; accepted: a class of policies, or what makes one for a cache")
        found.append((KIND + name, make))
    return found
