"""Pages of reference, made of what the program prints and of what the package declares (for scripts/site.py)."""

import ast
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "imbrex"
# The public modules of the package, and where what each offers is written.
MODULES = {
    "imbrex": ("__init__.py", ("_commands.py", "_report.py", "_errors.py", "_policy.py", "_imbrex.pyi")),
    "imbrex.plots": ("plots.py", ("plots.py",)),
    "imbrex.sweep": ("sweep.py", ("sweep.py",)),
    "imbrex.engines": ("engines/__init__.py", tuple(f"engines/{path.name}" for path in sorted((PACKAGE / "engines").glob("_*.py")))),
}
SCHEMA = ROOT / "docs" / "schema" / "report.schema.json"
# A line of the list of commands in a help text: two spaces, the name, two spaces or more, what it is about.
COMMAND = re.compile(r"^  ([a-z][a-z0-9-]*) {2,}\S", re.MULTILINE)


class Program:
    """The `imbrex` of which the pages tell."""

    def __init__(self, path):
        self.path = path

    def prints(self, *words):
        done = subprocess.run([self.path, *words], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.path} {' '.join(words)}: {done.stderr.strip()}; accepted: an imbrex of this repository (make build)")
        return done.stdout

    def help(self, command):
        """What `--help` prints of a command, given as its words."""
        # `control` wants its socket before the command of a node.
        words = ["control", "SOCKET", *command[1:]] if command[:1] == ("control",) and len(command) > 1 else command
        return self.prints(*words, "--help")


def commands_in(text):
    """The commands that a help text lists."""
    found = re.search(r"^Commands:\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return [name for name in COMMAND.findall(found[1]) if name != "help"] if found else []


def fenced(text, language="text"):
    return f"```{language}\n{text.strip(chr(10))}\n```"


def about(text):
    """The first sentence of a help text or of a page, to stand in a list."""
    return text.strip().splitlines()[0].strip()


def table(head, rows):
    """A table of Markdown; cells keep their bars."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines)


def command_section(program, command):
    """The help of a command and of all below it."""
    text = program.help(command)
    parts = [f"{'#' * min(len(command), 6)} imbrex {' '.join(command)}", fenced(text)]
    for name in commands_in(text):
        parts += command_section(program, (*command, name))
    return parts


def command_pages(program):
    """A page for each command, by its place in the folder of the reference."""
    text = program.help(())
    names = commands_in(text)
    rows = [(f"[`{name}`](commands/{name}.md)", about(program.help((name,)))) for name in names]
    yield "commands.md", "\n\n".join(["# Commands", "What `--help` of each command prints. As manual pages: `imbrex completions --man DIR`.",
                                      table(("Command", "Does"), rows), fenced(text)])
    for name in names:
        yield f"commands/{name}.md", "\n\n".join(command_section(program, (name,)))


def shown_pages(program, folder, head, about_all, rows, show):
    """A page that lists ready-made things, and one for each with what a command prints of it."""
    title, columns = head
    listed = [(f"[`{name}`]({folder}/{name}.md)", what) for name, what in rows]
    yield f"{folder}.md", "\n\n".join([f"# {title}", about_all, table(columns, listed)])
    for name, what in rows:
        yield f"{folder}/{name}.md", "\n\n".join([f"# {name}", f"{what}.", fenced(program.prints(*show, name), "toml")])


def stack_pages(program, systems):
    """A page for each ready-made stack, and one for each drive."""
    yield from shown_pages(program, "stacks", ("Ready-made stacks", ("Stack", "What it is")),
                           "What `imbrex systems --show NAME` prints. [Stack files](../docs/stacks.md) has every key.",
                           [(it["name"], it["description"]) for it in systems["systems"]], ("systems", "--show"))
    yield from shown_pages(program, "drives", ("Drives of the library", ("Drive", "Model")),
                           "What `imbrex drive show NAME` prints: each value with its source. [Drive files](../docs/drives.md) has every key.",
                           [(it["name"], it["model"]) for it in systems["drives"]], ("drive", "show"))


def type_in(value):
    """The type of a key of the schema in a word, with a link where it is described further."""
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[-1]
        return f"[`{name}`](#{name})"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    if value.get("type") == "array" and "items" in value:
        return f"list of {type_in(value['items'])}"
    kind = value.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else kind


def schema_section(heading, value):
    parts = [heading]
    if "description" in value:
        parts.append(value["description"])
    if "properties" in value:
        parts.append(table(("Key", "Type", "Meaning"), [(f"`{key}`", type_in(it), it.get("description", ""))
                                                       for key, it in value["properties"].items()]))
    else:
        parts.append(f"Type: {type_in(value)}.")
    return parts


def schema_page():
    """The keys of a report, from its schema."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    parts = schema_section("# Keys of a report", schema)
    parts.insert(1, "Made of the [schema](../docs/schema/report.schema.json). [Reading a report](../docs/reports.md) says what the figures mean.")
    for name, value in schema["$defs"].items():
        parts += schema_section(f"## {name}", value)
    return "\n\n".join(parts)


def public_names(module):
    """What a module of the package offers: its `__all__`, or all that begins with no underscore."""
    file, _ = MODULES[module]
    body = ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body
    for it in body:
        if isinstance(it, ast.Assign) and getattr(it.targets[0], "id", None) == "__all__":
            return ast.literal_eval(it.value)
    return [it.name for it in body if isinstance(it, (ast.FunctionDef, ast.ClassDef)) and not it.name.startswith("_")]


def definitions(module):
    """The definitions of functions and classes in the files of a module, by name."""
    found = {}
    for file in MODULES[module][1]:
        for it in ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body:
            if isinstance(it, (ast.FunctionDef, ast.ClassDef)):
                found.setdefault(it.name, it)
    return found


def signature(function):
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    decorators = "".join(f"@{ast.unparse(it)}\n" for it in function.decorator_list)
    return f"{decorators}def {function.name}({ast.unparse(function.args)}){returns}"


def described(node):
    """A documentation string as Markdown; the names below `Args:` and `Raises:` become a list."""
    lines = []
    for line in (ast.get_docstring(node) or "").splitlines():
        if re.fullmatch(r"(Args|Raises|Returns|Yields):", line):
            lines.append(f"**{line}**\n")
        elif given := re.match(r"    (\w+): (.*)", line):
            lines.append(f"- `{given[1]}`: {given[2]}")
        else:
            lines.append(line)
    return "\n".join(lines)


def is_public(node):
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_")


def class_outline(node):
    """A class as a stub: its fields and its public methods."""
    bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    lines = [f"class {node.name}{bases}:"]
    lines += [f"    {ast.unparse(it)}" for it in node.body if isinstance(it, ast.AnnAssign)]
    for it in filter(is_public, node.body):
        lines += [f"    {line}" for line in f"{signature(it)}: ...".splitlines()]
    return "\n".join(lines if len(lines) > 1 else [*lines, "    ..."])


def python_definition(node):
    """A function, or a class with what it offers."""
    if isinstance(node, ast.FunctionDef):
        return [f"### {node.name}", fenced(signature(node), "python"), described(node)]
    parts = [f"### {node.name}", fenced(class_outline(node), "python"), described(node)]
    for it in filter(is_public, node.body):
        if ast.get_docstring(it):
            parts += [f"**`{node.name}.{it.name}`**", described(it)]
    return parts


def python_page():
    """The Python package: every public name with its signature."""
    parts = ["# The Python package", "Made of the package itself; [from Python](../docs/python.md) shows how it is used. "
             "Options of functions that are not named here are those of the [command](commands.md) of the same name."]
    for module, (file, _) in MODULES.items():
        known = definitions(module)
        parts += [f"## {module}", ast.get_docstring(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))) or ""]
        for name in public_names(module):
            if name not in known:
                sys.exit(f"python/imbrex/{file}: no definition of `{name}` in {', '.join(MODULES[module][1])}")
            parts += python_definition(known[name])
    return "\n\n".join(filter(None, parts))


def pages(imbrex):
    """All pages of the reference: the path of each in its folder, and its text. Pages of a folder follow the page of that name."""
    program = Program(imbrex)
    yield "index.md", "\n\n".join([
        "# Reference", f"Made of what `{program.prints('--version').split('(')[0].strip()}` prints and declares.",
        "\n".join(["- [Commands](commands.md)", "- [Ready-made stacks](stacks.md), and [every key of a stack file](../docs/stacks.md)",
                   "- [Drives of the library](drives.md), and [every key of a drive file](../docs/drives.md)",
                   "- [Trace formats](../docs/formats/traces.md)", "- [Keys of a report](report.md), and [its columns and counters](../docs/reports.md)",
                   "- [The Python package](python.md)"])])
    yield from command_pages(program)
    yield from stack_pages(program, json.loads(program.prints("systems", "--json")))
    yield "report.md", schema_page()
    yield "python.md", python_page()
