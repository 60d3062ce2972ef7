"""Reads Rust source as text, far enough for the rules of the house: what a file defines and uses, the fields of
its structs, the lines of its functions. Tests at the end of a file are left out."""

import pathlib
import re

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
DEFINITION = re.compile(
    rf"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|unsafe\s+|async\s+)*"
    rf"(?:struct|enum|trait|union|fn|type|const|static|mod)\s+(?:mut\s+)?({IDENTIFIER})", re.MULTILINE)
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?=mod |pub mod )", re.MULTILINE)


def without_tests(text):
    """The text before the tests at its end."""
    tests = TESTS.search(text)
    return text[:tests.start()] if tests else text


def blank(text):
    """The text with comments, strings and characters as blanks, so that braces and names in them count for nothing."""
    pieces = re.compile(
        r"//[^\n]*|/\*.*?\*/|r#+\"[\s\S]*?\"#+|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\.[^']*|[^'\\])'", re.DOTALL)
    return pieces.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def source(path):
    return blank(without_tests(pathlib.Path(path).read_text(encoding="utf-8")))


def end_of_braces(text, start):
    """The index behind the brace that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def functions(text):
    """Every function with a body: its name, its first line and how many lines it has."""
    for found in re.finditer(rf"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|unsafe\s+|async\s+)*fn\s+({IDENTIFIER})",
                             text, re.MULTILINE):
        body = re.compile(r"[{;]").search(text, found.end())
        if body and body[0] == "{":
            first = text.count("\n", 0, found.start()) + 1
            yield found[1], first, text.count("\n", found.start(), end_of_braces(text, body.start())) + 1


def structs(text):
    """Every struct with named fields: its name and how many fields it has."""
    for found in re.finditer(rf"^\s*(?:pub(?:\([^)]*\))?\s+)?struct\s+({IDENTIFIER})[^;{{(]*\{{", text, re.MULTILINE):
        body = text[found.end():end_of_braces(text, found.end() - 1) - 1]
        depth, fields = 0, 0
        for piece in re.finditer(rf"[{{(\[<]|->|=>|[>\])}}]|{IDENTIFIER}\s*:(?!:)", body):
            if piece[0] in "{([<":
                depth += 1
            elif piece[0] in ">])}":
                depth -= 1
            elif depth == 0 and piece[0].endswith(":"):
                fields += 1
        yield found[1], fields


def module_of(path, root):
    """The path of the module that a file holds, as a tuple of names below the crate."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    return tuple(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)


def leaves(tree, prefix=()):
    """Every path that a `use` tree names, with the name it gets."""
    tree = tree.strip()
    group = tree.find("{")
    if group < 0:
        path, _, alias = tree.partition(" as ")
        names = [name.strip() for name in path.split("::")]
        full = prefix + tuple(name for name in names if name)
        if full and full[-1] == "self":
            full = full[:-1]
        yield full, (alias.strip() or (full[-1] if full else ""))
        return
    head = prefix + tuple(name for name in tree[:group].strip().split("::") if name)
    inner, depth, start = tree[group + 1:tree.rfind("}")], 0, 0
    for at, character in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if inner[start:at].strip():
                yield from leaves(inner[start:at], head)
            start = at + 1


class Crate:
    """The files of a crate, and which file uses a name that another defines."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.text, self.defined, self.exported, self.inner = {}, {}, {}, {}
        for path in sorted(self.root.rglob("*.rs")):
            module = module_of(path, self.root)
            text = source(path)
            self.text[module] = text
            self.defined[module] = set(DEFINITION.findall(text)) - set(re.findall(rf"\bmod\s+({IDENTIFIER})\s*;", text))
            self.exported[module] = {}
            for use in re.finditer(r"^\s*pub(?:\([^)]*\))?\s+use\s+([^;]+);", text, re.MULTILINE):
                for path_, name in leaves(use[1]):
                    self.exported[module][name] = path_
        self.modules = set(self.text)

    def resolve(self, module, path):
        """The module whose file defines what a path names when `module` uses it; None when that is no file."""
        if not path:
            return None
        if path[0] == "crate":
            at, rest = (), path[1:]
        elif path[0] == "self":
            at, rest = module, path[1:]
        elif path[0] == "super":
            at, rest = module[:-1], path[1:]
            while rest and rest[0] == "super":
                at, rest = at[:-1], rest[1:]
        elif module + (path[0],) in self.modules:
            at, rest = module, path
        else:
            return None
        for index, name in enumerate(rest):
            if at + (name,) in self.modules:
                at = at + (name,)
                continue
            if name in self.defined.get(at, ()):
                return at
            if name in self.exported.get(at, {}):
                return self.resolve(at, self.exported[at][name] + tuple(rest[index + 1:]))
            return None
        # The path names a module and nothing of it: what is used of it is written out elsewhere.
        return None

    def uses(self):
        """For each module the others that define what it uses."""
        edges = {}
        for module, text in self.text.items():
            found, names = set(), {}
            for use in re.finditer(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", text, re.MULTILINE):
                if use[1]:
                    continue
                for path, name in leaves(use[2]):
                    names[name] = path
                    found.add(self.resolve(module, path))
            body = re.sub(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+[^;]+;", "", text, flags=re.MULTILINE)
            for path in re.finditer(rf"\b({IDENTIFIER}(?:::{IDENTIFIER})+)", body):
                parts = tuple(path[1].split("::"))
                found.add(self.resolve(module, names.get(parts[0], parts[:1]) + parts[1:]))
            edges[module] = found - {None, module}
        return edges


def circles(edges):
    """The groups of modules that use one another in a circle (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while True:
                other = stack.pop()
                on_stack.discard(other)
                group.append(other)
                if other == node:
                    break
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)
