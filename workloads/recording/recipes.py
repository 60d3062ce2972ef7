"""The real software that is recorded. A recipe prepares its data before the recording starts, then
runs for a given time inside the memory limit."""

import pathlib
import re
import shutil
import subprocess
import sys
import time

from .command import RecordingError, need, run

CHURN = pathlib.Path(__file__).resolve().parent.parent / "file_churn.py"
REPOSITORY = CHURN.parent.parent
TPCC = pathlib.Path(__file__).resolve().parent / "tpcc"
CLIENTS = 8
# Source trees that exist side by side: the deletion of one follows its build by two builds.
TREES_KEPT = 2


class Postgres:
    """A database cluster on the recorded file system, owned by the user that the package creates."""

    USER = "postgres"

    def __init__(self, root, scratch, limit):
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"),
                          key=lambda path: int(path.parent.name))
        if not programs:
            raise RecordingError("PostgreSQL is not installed: apt-get install postgresql")
        self.bin, self.limit = programs[-1], limit
        self.data = root / "pgdata"
        self.sockets = scratch / "pg"
        self.log = self.sockets / "log"
        self.sockets.mkdir()
        shutil.chown(self.sockets, self.USER, self.USER)
        # The scratch directory is private to root; the database must pass through it.
        for directory in (scratch, root.parent):
            directory.chmod(0o755)

    def create(self):
        self.data.mkdir()
        shutil.chown(self.data, self.USER, self.USER)
        self._run("initdb", "-D", self.data, "--auth=trust", "--no-instructions")
        # Everything else stays at the package's defaults, full-page writes and fsync included. Short
        # checkpoints make a recording of minutes hold several.
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write(f"listen_addresses = ''\nunix_socket_directories = '{self.sockets}'\n"
                           "shared_buffers = 128MB\nmax_wal_size = 1GB\ncheckpoint_timeout = 60s\n")

    def start(self):
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "120", "-l", self.log, "start")

    def stop(self):
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "300", "-m", "fast", "stop")

    def stop_if_running(self):
        if (self.data / "postmaster.pid").exists():
            self.stop()

    def client(self, program, *arguments):
        return self._run(program, "-h", self.sockets, *arguments)

    def _run(self, program, *arguments):
        command = self.limit.wrap([self.bin / program, *arguments], user=self.USER)
        return run(command, cwd="/")


class Pgbench:
    """pgbench's built-in TPC-B-like transaction: three updates, a look-up and an insert."""

    name = "pgbench"
    description = "PostgreSQL, pgbench TPC-B-like"

    def __init__(self, arguments, root, scratch, limit):
        self.postgres = Postgres(root, scratch, limit)
        self.scale, self.seed = arguments.scale, arguments.seed

    def prepare(self):
        self.postgres.create()
        self.postgres.start()
        self.postgres.client("createdb", "bench")
        self.postgres.client("pgbench", "-i", "-q", "-s", self.scale, "bench")
        self.postgres.stop()

    def run(self, seconds):
        self.postgres.start()
        output = self.postgres.client(
            "pgbench", "-c", CLIENTS, "-j", 2, "-M", "prepared", "-n", "-T", seconds,
            f"--random-seed={self.seed}", "bench")
        self.postgres.stop()
        return _lines_with(output, "actually processed|tps =")

    def abandon(self):
        self.postgres.stop_if_running()


class Sysbench:
    """sysbench's OLTP read-write transaction on eight tables: fourteen reads, four writes."""

    name = "sysbench"
    description = "PostgreSQL, sysbench oltp_read_write"
    TABLES = 8
    ROWS = 1_000_000
    THREADS = CLIENTS
    DISTRIBUTION = "pareto"

    def __init__(self, arguments, root, scratch, limit):
        self.sysbench = need("sysbench", "sysbench")
        self.postgres = Postgres(root, scratch, limit)
        self.limit, self.rows, self.seed = limit, arguments.rows or self.ROWS, arguments.seed
        # 0 stands for no end but the time.
        self.transactions = 0

    def prepare(self):
        self.postgres.create()
        self.postgres.start()
        self.postgres.client("createdb", "sbtest")
        self._sysbench("prepare", "--threads=2")
        self.postgres.stop()

    def run(self, seconds):
        self.postgres.start()
        output = self._sysbench("run", f"--threads={self.THREADS}", f"--time={seconds}",
                                f"--events={self.transactions}",
                                f"--rand-type={self.DISTRIBUTION}", f"--rand-seed={self.seed}")
        self.postgres.stop()
        return _lines_with(output, "transactions:|queries:|total time:")

    def abandon(self):
        self.postgres.stop_if_running()

    def _sysbench(self, step, *options):
        command = [self.sysbench, "oltp_read_write", "--db-driver=pgsql",
                   f"--pgsql-host={self.postgres.sockets}", f"--pgsql-user={Postgres.USER}",
                   "--pgsql-db=sbtest", f"--tables={self.TABLES}", f"--table-size={self.rows}",
                   *options, step]
        return run(self.limit.wrap(command, user=Postgres.USER), cwd="/")


class SysbenchOltp(Sysbench):
    """The same transaction as the HWSR paper runs it: one large table, sixteen threads, sysbench's own distribution."""

    name = "sysbench-oltp"
    description = "PostgreSQL, sysbench oltp_read_write on one table"
    TABLES = 1
    ROWS = 4_000_000
    THREADS = 16
    DISTRIBUTION = "special"

    def __init__(self, arguments, root, scratch, limit):
        super().__init__(arguments, root, scratch, limit)
        self.transactions = arguments.transactions


class Tpcc:
    """The five transactions of TPC-C in the standard mix, from the scripts in `tpcc/`, without the specification's
    keying and think times."""

    name = "tpcc"
    description = "PostgreSQL, TPC-C transactions by pgbench"
    CLIENTS_PER_WAREHOUSE = 10
    MIX = {"new-order": 45, "payment": 43, "order-status": 4, "delivery": 4, "stock-level": 4}

    def __init__(self, arguments, root, scratch, limit):
        self.postgres = Postgres(root, scratch, limit)
        self.warehouses, self.seed = arguments.warehouses, arguments.seed
        # The database's user may not be allowed to read the repository.
        self.scripts = scratch / "tpcc"
        shutil.copytree(TPCC, self.scripts)
        for script in self.scripts.iterdir():
            script.chmod(0o644)
        self.scripts.chmod(0o755)

    def prepare(self):
        self.postgres.create()
        self.postgres.start()
        self.postgres.client("createdb", "tpcc")
        for step in ("schema", "functions", "load", "indexes"):
            self.postgres.client("psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-v", f"warehouses={self.warehouses}",
                                 "-v", f"seed={1 / (1 + self.seed)}", "-f", self.scripts / f"{step}.sql", "tpcc")
        self.postgres.stop()

    def run(self, seconds):
        self.postgres.start()
        scripts = [word for name, weight in self.MIX.items()
                   for word in ("-f", f"{self.scripts / name}.sql@{weight}")]
        output = self.postgres.client(
            "pgbench", "-c", self.warehouses * self.CLIENTS_PER_WAREHOUSE, "-j", 2, "-M", "prepared", "-n",
            "-T", seconds, "-D", f"warehouses={self.warehouses}", f"--random-seed={self.seed}", *scripts, "tpcc")
        self.postgres.stop()
        return _lines_with(output, "actually processed|failed transactions|tps =|SQL script|transactions \\(")

    def abandon(self):
        self.postgres.stop_if_running()


class FileChurn:
    """`file_churn.py`: small files created, read, appended to and deleted in 200 directories."""

    name = "file-churn"
    description = "Postmark-like small-file churn"
    FILES = 60_000

    def __init__(self, arguments, root, _scratch, limit):
        self.pool, self.limit = root / "pool", limit
        self.files, self.seed = arguments.files or self.FILES, arguments.seed

    def prepare(self):
        self._churn("prepare", self.pool, "--files", self.files, "--seed", self.seed)

    def run(self, seconds):
        return self._churn("run", self.pool, "--seconds", seconds, "--seed", self.seed + 1)

    def abandon(self):
        """Nothing outlives the program."""

    def _churn(self, *arguments):
        return run(self.limit.wrap([sys.executable, CHURN, *arguments])).strip()


class Postmark:
    """Katcher's Postmark itself. It creates its files, makes its transactions and deletes what is left, and all of it
    is recorded."""

    name = "postmark"
    description = "Postmark: small files in 100 directories"
    FILES = 20_000
    DIRECTORIES = 100
    # What `timeout` ends with when the time was up.
    TIME_UP = 124

    def __init__(self, arguments, root, scratch, limit):
        self.postmark = need("postmark", "postmark")
        self.files_root, self.settings, self.limit = root / "postmark", scratch / "postmark.settings", limit
        self.settings.write_text(
            f"set location {self.files_root}\nset subdirectories {self.DIRECTORIES}\n"
            f"set number {arguments.files or self.FILES}\nset transactions {arguments.transactions}\n"
            f"set seed {arguments.seed}\nrun\nquit\n")

    def prepare(self):
        self.files_root.mkdir()

    def run(self, seconds):
        # Postmark knows no time limit.
        script = f"timeout {seconds} {self.postmark} {self.settings} || test $? = {self.TIME_UP}"
        output = run(self.limit.wrap(["sh", "-c", script]))
        return _lines_with(output, "seconds (total|of transactions)|Error") or f"not at its end after {seconds} s"

    def abandon(self):
        """Nothing outlives the program."""


class Compile:
    """This repository with the sources of all it depends on: untar, `cargo build`, delete, again."""

    name = "compile"
    description = "untar, compile, delete of a Rust source tree"

    def __init__(self, _arguments, root, scratch, limit):
        self.cargo = need("cargo", "cargo")
        need("git", "git")
        self.root, self.scratch, self.limit = root, scratch, limit
        self.archive = root / "source.tar"

    def prepare(self):
        tree = self.scratch / "source"
        tree.mkdir()
        run(["git", "-C", REPOSITORY, "archive", f"--output={self.scratch}/tree.tar", "HEAD"])
        run(["tar", "-xf", self.scratch / "tree.tar", "-C", tree])
        vendored = subprocess.run([self.cargo, "vendor", "--locked", "vendor"], cwd=tree,
                                  capture_output=True, text=True, check=False)
        if vendored.returncode != 0:
            raise RecordingError(f"cargo vendor failed: {vendored.stderr[-2000:]}")
        (tree / ".cargo").mkdir()
        (tree / ".cargo" / "config.toml").write_text(vendored.stdout)
        run(["tar", "-cf", self.archive, "-C", self.scratch, "source"])

    def run(self, seconds):
        deadline = time.monotonic() + seconds
        builds = 0
        while time.monotonic() < deadline:
            tree = self.root / f"tree-{builds}"
            self._limited(f"mkdir {tree} && tar -xf {self.archive} -C {tree} --strip-components=1")
            # One job and no optimisation: two compilers at once do not fit into the memory limit.
            self._limited(f"cd {tree} && CARGO_PROFILE_DEV_OPT_LEVEL=0 {self.cargo} build "
                          "--offline --locked --quiet --jobs 1")
            builds += 1
            if builds > TREES_KEPT:
                self._limited(f"rm -r {self.root}/tree-{builds - 1 - TREES_KEPT}")
        return f"{builds} builds"

    def abandon(self):
        """Nothing outlives the commands."""

    def _limited(self, script):
        run(self.limit.wrap(["sh", "-c", script]))


RECIPES = {recipe.name: recipe for recipe in (Pgbench, Sysbench, SysbenchOltp, Tpcc, FileChurn, Postmark,
                                             Compile)}


def _lines_with(text, pattern):
    return "\n".join(line.strip() for line in text.splitlines() if re.search(pattern, line))
