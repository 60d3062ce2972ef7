#!/usr/bin/env bash
# Installs the programs the end-to-end tests drive. As root on a Debian system missing packages are
# installed; elsewhere the command to type is printed and the tests that lack a tool are counted as skipped.
set -eu

# program:package, one pair for each program that a test starts.
pairs="fio:fio nbdkit:nbdkit nbdinfo:libnbd-bin nbdcopy:libnbd-bin nbdfuse:libnbd-bin
mkfs.ext4:e2fsprogs e2fsck:e2fsprogs fusermount3:fuse3 fuse2fs:fuse2fs qemu-io:qemu-utils
mkfs.xfs:xfsprogs sqlite3:sqlite3 strace:strace valgrind:valgrind
chromium:chromium systemd-analyze:systemd dpkg-shlibdeps:dpkg-dev"

PATH="$PATH:/usr/sbin:/sbin"

missing_packages() {
  for pair in $pairs; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || echo "${pair##*:}"
  done | sort -u | tr '\n' ' '
}

packages="$(missing_packages)"
[ -n "$packages" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "Some tests will be skipped. To run them all: sudo apt-get install $packages"
  exit 0
fi

echo "Installing for the tests: $packages"
export DEBIAN_FRONTEND=noninteractive
# Word splitting makes one argument of each package name.
# shellcheck disable=SC2086
if ! { apt-get -qq update && apt-get -qq install --no-install-recommends -y $packages >/dev/null; }; then
  echo "The installation failed; tests whose tool is missing will be skipped." >&2
fi
packages="$(missing_packages)"
[ -z "$packages" ] || echo "Still missing: $packages" >&2
