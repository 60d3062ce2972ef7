# The two commands to know are `make demo` and `make test`; `make help` lists the rest.

CARGO ?= $(shell command -v cargo 2>/dev/null || ls "$$HOME/.cargo/bin/cargo" 2>/dev/null)
PYTHON ?= python3
IMBREX := target/release/imbrex

# A recording that ships with the repository (workloads/README.md).
DEMO_TRACE ?= workloads/pgbench.imbrex.xz
DEMO_OUT ?= results/demo

.DEFAULT_GOAL := help
.PHONY: help demo test fmt lint bench bench-serve soak build install deb wheel site clean rust

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

# Every target that compiles depends on this one, so that a missing Rust is one clear sentence.
rust:
	@[ -n "$(CARGO)" ] && "$(CARGO)" --version >/dev/null 2>&1 || { \
	  echo "Imbrex needs Rust 1.89 or newer, and no working cargo was found."; \
	  echo "Install it as https://rustup.rs describes, open a new shell, and repeat the command."; \
	  exit 1; } >&2

build: rust ## compile the release binary, target/release/imbrex
	"$(CARGO)" build --release --locked

PREFIX ?= /usr/local
SHARE = $(DESTDIR)$(PREFIX)/share

UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system
EXAMPLES = $(SHARE)/doc/imbrex/examples

install: build ## install under PREFIX (/usr/local): the program, manual pages, completions, systemd units
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/site-functions" \
	  "$(SHARE)/fish/vendor_completions.d" "$(UNITS)" "$(EXAMPLES)"
	install -s -m 755 $(IMBREX) "$(DESTDIR)$(PREFIX)/bin/imbrex"
	$(IMBREX) completions bash > "$(SHARE)/bash-completion/completions/imbrex"
	$(IMBREX) completions zsh > "$(SHARE)/zsh/site-functions/_imbrex"
	$(IMBREX) completions fish > "$(SHARE)/fish/vendor_completions.d/imbrex.fish"
	$(IMBREX) completions --man "$(SHARE)/man/man1"
	sed 's,/usr/bin/imbrex,$(PREFIX)/bin/imbrex,' systemd/imbrex-serve@.service > "$(UNITS)/imbrex-serve@.service"
	install -m 644 systemd/imbrex-nbd@.service "$(UNITS)"
	install -m 644 systemd/srv-disk.mount "$(EXAMPLES)"

DEB_OUT ?= target/debian

deb: build ## build a Debian package of what `make install` installs, in target/debian (needs dpkg-dev)
	@MAKE="$(MAKE)" scripts/debian-package.sh "$(abspath $(IMBREX))" "$(abspath $(DEB_OUT))"

WHEEL_OUT ?= target/wheels

wheel: rust ## build the Python package, in target/wheels (needs pip)
	PATH="$(dir $(CARGO)):$$PATH" $(PYTHON) -m pip wheel --no-deps --wheel-dir "$(WHEEL_OUT)" .

SITE_OUT ?= target/site

site: build ## make a site of the documentation with mdBook, in target/site/html
	@$(PYTHON) scripts/site.py "$(SITE_OUT)" $(IMBREX)

demo: build ## replay a recorded workload through all stacks but the archives; writes results/demo/report.html
	$(IMBREX) compare --trace $(DEMO_TRACE) --systems all --out $(DEMO_OUT)
	@echo
	@echo "The same results as pictures: open $(DEMO_OUT)/report.html in a browser."
	@echo "To try next:"
	@echo "  $(IMBREX) compare --trace $(DEMO_TRACE) --systems cmr-only,hwsr,pore,raid4smr,idler,split"
	@echo "  $(IMBREX) compare --trace $(DEMO_TRACE) --set cache.capacity=5% --set cache.mode=write-only"
	@echo "  $(IMBREX) systems --show pore       the TOML of a stack, to start your own from"
	@echo "  $(IMBREX) reproduce pore            the figures of the PORE paper beside ours"
	@echo "  $(IMBREX) create pore --data disk --size 64GiB"
	@echo "  $(IMBREX) serve pore --data disk --socket disk.sock     the same stack as an NBD device"

test: rust ## install the tools the tests use (when root), then run every test
	@./scripts/setup-test-tools.sh
	@CARGO="$(CARGO)" $(PYTHON) tests/run.py

fmt: rust ## format the Rust sources
	"$(CARGO)" fmt --all

lint: rust ## check formatting and lints, warnings are errors
	"$(CARGO)" fmt --all --check
	"$(CARGO)" clippy --release --locked --workspace --all-targets -- -D warnings

bench: build ## run the benchmarks; docs/performance.md says what each figure means
	"$(CARGO)" bench --locked --workspace --exclude imbrex-python --bench '*'
	@$(PYTHON) scripts/bench_counting.py
	@CARGO="$(CARGO)" $(PYTHON) scripts/bench_reading.py

bench-serve: build ## serving, alone and two arrays, beside nbdkit on a tmpfs (needs fio and nbdkit)
	@$(PYTHON) scripts/bench_serve.py

soak: rust ## the long tests that `make test` leaves out
	@CARGO="$(CARGO)" $(PYTHON) tests/run.py --soak

clean: rust ## remove everything built or measured
	"$(CARGO)" clean
	rm -rf results
