#!/bin/sh
# Makes a Debian package of a built program: what `make install PREFIX=/usr` installs, the documentation, and what dpkg wants to
# know. `make deb` calls it as `scripts/debian-package.sh PROGRAM FOLDER`. It needs dpkg-dev, which finds the libraries that
# the program is linked with. MAINTAINER, as `Name <address>`, may be in the environment.
set -eu

program="$1"
out="$2"
maintainer="${MAINTAINER:-Imbrex contributors <imbrex@localhost>}"
cd "$(dirname "$0")/.."
for tool in dpkg-deb dpkg-shlibdeps gzip; do
  command -v "$tool" >/dev/null || { echo "a Debian package needs $tool: apt-get install dpkg-dev gzip" >&2; exit 1; }
done
# The same sources and program make the same bytes.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
umask 022

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
root="$work/root"
doc="$root/usr/share/doc/imbrex"
"${MAKE:-make}" --no-print-directory -s install -o build IMBREX="$program" DESTDIR="$root" PREFIX=/usr

# Where zsh of Debian looks.
mkdir -p "$root/usr/share/zsh/vendor-completions" "$root/var/lib/imbrex" "$root/DEBIAN"
mv "$root/usr/share/zsh/site-functions/_imbrex" "$root/usr/share/zsh/vendor-completions/"
rmdir "$root/usr/share/zsh/site-functions"
gzip -9n "$root"/usr/share/man/man1/*
cp -r README.md docs "$doc"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
{
  echo "Imbrex is licensed under MIT or Apache-2.0, at your option."
  echo "Apache-2.0 is in /usr/share/common-licenses/Apache-2.0. This is MIT:"
  echo
  cat LICENSE-MIT
} >"$doc/copyright"

version="$("$program" --version | cut -d ' ' -f 2)"
architecture="$(dpkg --print-architecture)"
# dpkg-shlibdeps wants a source package around it.
mkdir -p "$work/debian"
printf 'Source: imbrex\n\nPackage: imbrex\nArchitecture: any\n' >"$work/debian/control"
depends="$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/imbrex" | sed -n 's/^shlibs:Depends=//p')"
[ -n "$depends" ] || { echo "dpkg-shlibdeps found no library" >&2; exit 1; }

cat >"$root/DEBIAN/control" <<EOF
Package: imbrex
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: $depends
Suggests: nbd-client
Section: admin
Priority: optional
Description: storage engine for shingled (SMR) disks
 Imbrex replays block traces through models of shingled disks, translation
 layers and SSD caches, and serves the same stacks as block devices over NBD.
EOF

# Units are templates, so nothing is started or enabled here. An upgrade leaves servers as they are: they go on with the old
# program until they are restarted. A removal ends them, mounts first.
for script in postinst postrm; do
  cat >"$root/DEBIAN/$script" <<'EOF'
#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload || true
EOF
done
cat >"$root/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl stop 'imbrex-serve@*.service'
fi
EOF
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/postrm" "$root/DEBIAN/prerm"

mkdir -p "$out"
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/imbrex_${version}_$architecture.deb"
