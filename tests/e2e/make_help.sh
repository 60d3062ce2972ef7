#!/usr/bin/env bash
# `make help` names every target a newcomer is told about, and a machine without Rust gets a sentence, not a stack of errors.
set -eu
help="$(make --no-print-directory help)"
for target in demo test install deb site fmt lint bench soak clean; do
  grep -q "make $target " <<<"$help" || { echo "make help does not name $target"; exit 1; }
done

if output="$(make --no-print-directory CARGO=/nonexistent/cargo build 2>&1)"; then
  echo "make build succeeded without cargo"
  exit 1
fi
grep -q "Imbrex needs Rust" <<<"$output" || { echo "unclear message without cargo: $output"; exit 1; }
