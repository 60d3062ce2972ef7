#!/usr/bin/env python3
"""`make deb` makes a Debian package. It installs into a root that has the packages it depends on and nothing else, the program
runs there, and a removal leaves images alone. Without root it is unpacked and run, no more."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess

from _serving import IMBREX, SCRATCH, need

HERE = pathlib.Path(__file__).resolve().parents[2]
INSTALLED = [
    "usr/bin/imbrex", "usr/share/man/man1/imbrex.1.gz", "usr/share/man/man1/imbrex-serve.1.gz", "usr/share/bash-completion/completions/imbrex",
    "usr/share/zsh/vendor-completions/_imbrex", "usr/share/fish/vendor_completions.d/imbrex.fish",
    "usr/lib/systemd/system/imbrex-serve@.service", "usr/lib/systemd/system/imbrex-nbd@.service", "usr/share/doc/imbrex/copyright",
    "usr/share/doc/imbrex/changelog.gz", "usr/share/doc/imbrex/README.md", "usr/share/doc/imbrex/docs/serving.md",
    "usr/share/doc/imbrex/examples/srv-disk.mount", "var/lib/imbrex",
]


def output(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options).stdout


def build():
    folder = SCRATCH / "debian"
    subprocess.run(["make", "--no-print-directory", "deb", "-o", "build", f"IMBREX={IMBREX}", f"DEB_OUT={folder}"], cwd=HERE, check=True)
    (package,) = folder.glob("imbrex_*.deb")
    return package


def check_contents(package):
    into = SCRATCH / "unpacked"
    subprocess.run(["dpkg-deb", "-x", package, into], check=True)
    missing = [name for name in INSTALLED if not (into / name).exists()]
    assert not missing, f"the package has no {missing}"
    said = output(into / "usr/bin/imbrex", "--version")
    version = output("dpkg-deb", "--field", package, "Version").strip()
    assert said.split()[1] == version, f"{said} in a package of {version}"
    assert ".TH imbrex" in gzip.decompress((into / INSTALLED[1]).read_bytes()).decode()
    owners = {line.split()[1] for line in output("dpkg-deb", "-c", package).splitlines()}
    assert owners == {"root/root"}, owners


def clean_root(package):
    """A root with the packages that this one depends on, as far as it needs them: their libraries, and a shell for dpkg."""
    root = SCRATCH / "root"
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp"):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    depends = [word.split()[0] for word in output("dpkg-deb", "--field", package, "Depends").split(",")]
    assert "libc6" in depends, depends
    (root / "var/lib/dpkg/status").write_text("\n".join(output("dpkg-query", "-s", name) for name in depends), encoding="utf-8")
    programs = [shutil.which("sh"), str(SCRATCH / "unpacked/usr/bin/imbrex")]
    libraries = {found for program in programs for found in re.findall(r"(/\S+) \(0x", output("ldd", program))}
    for path in [programs[0], *libraries]:
        to = root / path.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    return root


def check_root(package):
    root = clean_root(package)
    subprocess.run(["dpkg", f"--root={root}", "-i", package], check=True)
    state = output("dpkg-query", f"--root={root}", "-W", "-f", "${db:Status-Status}", "imbrex")
    assert state == "installed", state
    program = ["chroot", root, "/usr/bin/imbrex"]
    assert '"pore"' in output(*program, "systems", "--json")
    output(*program, "create", "pore", "--data", "/var/lib/imbrex/disk", "--size", "1GiB")
    output(*program, "check", "/var/lib/imbrex/disk")
    subprocess.run(["dpkg", f"--root={root}", "-r", "imbrex"], check=True)
    left = [name for name in INSTALLED if (root / name).exists()]
    assert left == ["var/lib/imbrex"], left
    assert any((root / "var/lib/imbrex/disk").iterdir()), "the image is gone"
    print("installed, run and removed in a clean root")


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    need("make", "install", "strip", "dpkg", "dpkg-deb", "dpkg-shlibdeps", "ldd", "chroot")
    package = build()
    check_contents(package)
    if os.geteuid() == 0:
        check_root(package)
    else:
        print("unpacked and run; installing it needs root")


main()
