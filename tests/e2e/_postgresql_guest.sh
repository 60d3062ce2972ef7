#!/usr/bin/env bash
# The part of soak_postgresql.py, soak_array_postgresql.py and soak_idler.py that runs in the guest: PostgreSQL on ext4 on a served
# stack whose server is killed in the middle of pgbench, several rounds.
# usage: [SIZE=384MiB] [PHASES='PHASE ...' FIRST='NODE ...' SECOND='NODE ...'] _postgresql_guest.sh IMBREX DATA ROUNDS STACK [NODE.KEY=VALUE ...]
# PHASES: of a stack whose top is `array`. Before the kill of each round the member in FIRST fails and is replaced and
# rebuilt under load; then the one in SECOND brings the array into the phase of the round: `healthy`, `degraded`,
# `rebuilding`, `scrubbing`.
set -eu
read -ra phases <<<"${PHASES:-}"
read -ra firsts <<<"${FIRST:-}"
read -ra seconds <<<"${SECOND:-}"
imbrex=$1 data=$2 rounds=$3 stack=$4
shift 4
settings=()
for setting; do settings+=(--set "$setting"); done
# No wait for something that must happen is shorter. A guest may write files of its host at a few MB/s, and then
# one request can wait for minutes. A time-out would be an I/O error to PostgreSQL, which ends with a panic.
patience_s=600
# Transactions of a round before the kill.
transactions=100
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
socket=/tmp/nbd.sock
mountpoint=/tmp/pg
log=/tmp/postgresql.log
mkdir -p "$mountpoint"
# The root of the guest is an overlay: PostgreSQL wants its folder to be its own.
chmod 1777 /tmp /run

# What there is to see when a step fails.
explain() {
  echo "failed in line $1 after $SECONDS s"
  tail -20 /tmp/serve.log "$log" 2>/dev/null || true
  dmesg | tail -20
}
trap 'explain $LINENO' ERR
# A request that nobody answers would keep the guest from ending.
trap 'nbd-client -d /dev/nbd0 >/dev/null 2>&1 || true' EXIT

# A timer that keeps running: without one the guest has been seen to stall for ever.
(while :; do sleep 1; done) &

said() { echo "$SECONDS s: $*"; }

serve() {
  "$imbrex" serve "$stack" --data "$data" --socket "$socket" >/tmp/report.json 2>/tmp/serve.log &
  server=$!
  for _ in $(seq $((patience_s * 10))); do
    if [ -S "$socket" ]; then
      connected=0
      timeout "$patience_s" nbd-client -unix "$socket" /dev/nbd0 -N "$(basename "$stack" .toml)" -timeout "$patience_s" >/dev/null 2>&1 || connected=$?
      [ "$connected" -ne 0 ] || return 0
      [ "$connected" -ne 124 ] || { echo "a client that connected was not answered"; cat /tmp/serve.log; exit 1; }
    fi
    kill -0 "$server" || { cat /tmp/serve.log; exit 1; }
    sleep 0.1
  done
  echo "the server is not ready"; cat /tmp/serve.log; exit 1
}

# A process that has been told to end may take a moment longer.
unmount() {
  for _ in $(seq 300); do umount "$mountpoint" 2>/dev/null && break; sleep 0.2; done
  ! mountpoint -q "$mountpoint" || { echo "still mounted"; false; }
}

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups env HOME=/tmp PATH="$bin:$PATH" "$@"; }

committed() { as_postgres psql -h /tmp -At bench -c 'select count(*) from pgbench_history'; }

# Waits until so many more transactions of pgbench are committed. It must not have ended, nor have seen an error.
more_transactions() {
  local goal=$(($(committed) + $1))
  for _ in $(seq $((patience_s * 5))); do
    before=$(committed)
    [ "$before" -lt "$goal" ] || break
    sleep 0.2
  done
  [ "$before" -ge "$goal" ] || { echo "round $round: only $before of $goal transactions"; cat /tmp/pgbench.log; false; }
  ! grep -iE 'error|fatal|panic|aborted' /tmp/pgbench.log || { echo "round $round: pgbench has seen an error"; false; }
}

control() { timeout "$patience_s" "$imbrex" control "$socket.control" "$@" >/tmp/control.log || { cat /tmp/control.log /tmp/serve.log; false; }; }

# What a start has begun by itself goes on until the array is whole.
wait_until_whole() {
  for _ in $(seq $((patience_s * 5))); do
    control --json array status
    ! grep -q '"members_lacking":0' /tmp/control.log || return 0
    sleep 0.2
  done
  echo "a member still lacks blocks"; cat /tmp/control.log; false
}

# A member goes and another disk takes its place, under load.
live_through() {
  local phase=$1 first=$2 second=$3 began=$SECONDS
  control "$first" fail
  more_transactions "$transactions"
  control "$first" replace
  control array rebuild &
  local rebuild=$!
  more_transactions "$transactions"
  wait "$rebuild"
  said "round $round: pgbench went on while $first failed, was replaced and rebuilt, in $((SECONDS - began)) s"
  case $phase in
    degraded | rebuilding) control "$second" fail ;;
  esac
  case $phase in
    rebuilding)
      control "$second" replace
      # The kill ends it.
      control array rebuild --rate 1MiB/s >/dev/null 2>&1 &
      ;;
    scrubbing) control array scrub --rate 1MiB/s >/dev/null 2>&1 & ;;
  esac
}

"$imbrex" create "$stack" --data "$data" --size "${SIZE:-384MiB}" "${settings[@]}"
serve
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nbd0
mount /dev/nbd0 "$mountpoint"
install -d -o postgres -g postgres -m 700 "$mountpoint/data"
as_postgres initdb --no-sync --data-checksums -D "$mountpoint/data" -A trust >/dev/null
cat >>"$mountpoint/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '/tmp'
shared_buffers = 32MB
checkpoint_timeout = 30s
max_wal_size = 64MB
CONF
as_postgres pg_ctl -D "$mountpoint/data" -l "$log" -w -t "$patience_s" start >/dev/null
as_postgres createdb -h /tmp bench
as_postgres psql -h /tmp -q bench -c 'create extension amcheck'
said "a database on ext4 is made"
as_postgres pgbench -h /tmp -q -i -s 2 bench 2>/tmp/pgbench.log || { cat /tmp/pgbench.log; false; }

# What PostgreSQL does not make durable itself, as its settings.
sync
said "pgbench is initialised"

for round in $(seq "$rounds"); do
  as_postgres pgbench -h /tmp -c 4 -T $((2 * patience_s)) bench >/tmp/pgbench.log 2>&1 &
  phase=${phases[round - 1]:-}
  [ -z "$phase" ] || live_through "$phase" "${firsts[round - 1]}" "${seconds[round - 1]}"
  more_transactions "$transactions"
  collected=
  if [ -n "$phase" ]; then
    control --json array status
    collected=$(sed -n 's/.*"collections":\([0-9]*\).*/\1 band rows were collected; /p' /tmp/control.log)
  fi
  held=
  if [ -f "$stack" ] && grep -q '"idle-control"' "$stack"; then
    control --json controller status
    held=$(sed -n 's/.*"held_requests":\([0-9]*\).*"idles":\([0-9]*\).*/\2 idle periods, \1 requests were held; /p' /tmp/control.log)
  fi
  kill -9 "$server"
  wait "$server" 2>/dev/null || true
  # Fails the requests that were in flight, which would wait for the time-out otherwise.
  nbd-client -d /dev/nbd0 >/dev/null 2>&1 || true
  # What PostgreSQL and the kernel still hold in memory is lost, as after a power cut of the client.
  as_postgres pg_ctl -D "$mountpoint/data" -m immediate -w -t "$patience_s" stop >/dev/null 2>&1 || pkill -9 postgres || true
  pkill pgbench || true
  unmount
  rm -f "$socket"
  serve
  mount /dev/nbd0 "$mountpoint"
  as_postgres pg_ctl -D "$mountpoint/data" -l "$log" -w -t "$patience_s" start >/dev/null || { tail -50 "$log"; exit 1; }
  after=$(committed)
  [ "$after" -ge "$before" ] || { echo "round $round: $before transactions were committed, $after are left"; exit 1; }
  as_postgres psql -h /tmp -At -q bench -v ON_ERROR_STOP=1 -c "
    select bt_index_check(c.oid, true) from pg_class c join pg_am a on a.oid = c.relam
    where a.amname = 'btree' and c.relkind = 'i'" >/dev/null
  as_postgres pg_ctl -D "$mountpoint/data" -m fast -w -t "$patience_s" stop >/dev/null
  as_postgres pg_checksums --check -D "$mountpoint/data" >/tmp/checksums.log || { cat /tmp/checksums.log; exit 1; }
  unmount
  e2fsck -fn /dev/nbd0 >/tmp/fsck.log 2>&1 || { cat /tmp/fsck.log; exit 1; }
  mount /dev/nbd0 "$mountpoint"
  as_postgres pg_ctl -D "$mountpoint/data" -l "$log" -w -t "$patience_s" start >/dev/null
  [ -z "$phase" ] || wait_until_whole
  said "round $round${phase:+, $phase}: $collected$held$before transactions seen before the kill, $after after it; checksums, amcheck and e2fsck clean"
done
as_postgres pg_ctl -D "$mountpoint/data" -m fast -w -t "$patience_s" stop >/dev/null
unmount
nbd-client -d /dev/nbd0 >/dev/null
kill "$server"
wait "$server"
[ -z "${PHASES:-}" ] || { "$imbrex" check "$data" --data && echo "check --data is clean"; }
python3 - <<'REPORT'
import json
run = json.load(open("/tmp/report.json"))["runs"][0]
print(f"in the last run of the server {run['bands_rewritten']} bands were rewritten; "
      f"requests took {run['response_ms']['max'] / 1000:.1f} s at most")
REPORT
