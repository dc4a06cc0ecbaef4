# SPDX-License-Identifier: GPL-2.0
#
# Front end for people. Kbuild describes the module; the scripts in tools/ do the
# work. "make help" lists the targets.

# Another prepared kernel tree; default: that of tools/kernel.
KDIR ?=
export KDIR

# Another kernel of Debian's: the newest of a series, or one release.
ifdef SERIES
export RUST_RDMA_CM_SERIES := $(SERIES)
endif
ifdef RELEASE
export RUST_RDMA_CM_RELEASE := $(RELEASE)
endif
# Another architecture than amd64, as the kernel's build names it.
ifdef ARCH
export RUST_RDMA_CM_ARCH := $(ARCH)
endif

# Quiet as the kernel's build is: V=1 shows the commands.
V ?=
CACHE = $(shell . tools/env.sh && echo "$$CACHE")
SHELL = /bin/bash
MAKEFLAGS += --no-print-directory

# Kbuild reads the file Kbuild, never this one.
.PHONY: all modules modules_install install headers_install clean distclean mrproper distclean-cache \
	help doc rustdoc htmldocs clippy fmt fmtcheck rust-analyzer quick check check-long check-debug \
	check-host prove fuzz intree run \
	deps bench deb debs update
all: modules

modules:
	@tools/kmake modules $(if $(V),V=$(V)) $(if $(CLIPPY),CLIPPY=$(CLIPPY)) $(if $(W),W=$(W)) $(if $(MO),MO=$(MO)) \
		$(if $(DELAYS),DELAYS=$(DELAYS)) $(if $(DELAY_AT),DELAY_AT=$(DELAY_AT))

# INSTALL_MOD_PATH is the root of the target system, INSTALL_MOD_DIR the place
# below its lib/modules/<release>.
modules_install install: modules
	@tools/kmake modules_install INSTALL_MOD_DIR=$(or $(INSTALL_MOD_DIR),updates) \
		$(if $(V),V=$(V)) $(if $(INSTALL_MOD_PATH),INSTALL_MOD_PATH=$(abspath $(INSTALL_MOD_PATH)))

# INSTALL_HDR_PATH as in the kernel: its directory include/rdma gets the header.
headers_install:
	@install -D -m 644 include/uapi/rust_rdma_cm.h \
		'$(abspath $(or $(INSTALL_HDR_PATH),usr))/include/rdma/rust_rdma_cm.h'

# Debian packages, of which one is for the kernel that is built for.
deb:
	@tools/deb

# The same for every kernel that the archive has.
debs:
	@tools/debs

update:
	@tools/release --update

clean:
	@tools/clean

distclean mrproper: clean
	@rm -rf doc usr intree rust-project.json selftests/host/target selftests/host/fuzz-guest/target

distclean-cache:
	@bash -c '. tools/env.sh && remove_tree "$$CACHE"'

doc rustdoc:
	@tools/doc

htmldocs:
	@tools/htmldocs
	@echo 'doc/html/index.html'

clippy:
	@tools/clippy $(if $(V),V=$(V))

fmt:
	@tools/fmt

fmtcheck:
	@tools/fmt --check

rust-analyzer:
	@tools/rust-analyzer

quick:
	@tools/check --quick

check:
	@tools/check

check-long:
	@tools/check --long

check-debug:
	@tools/check --kernel debug

check-host:
	@tools/check-host

# BUDGET is the number of seconds for the whole.
prove:
	@tools/prove --budget $(or $(BUDGET),3600)

# BUDGET is the number of seconds for the search.
fuzz:
	@tools/fuzz --budget $(or $(BUDGET),3600)

# PARTS are those of "tools/intree --help".
intree:
	@tools/intree $(PARTS)

# POINTS are those of "tools/bench --list"; all of them take hours.
bench: modules
	@tools/deps --plots
	@tools/bench $(POINTS)

run:
	@tools/run

deps:
	@tools/deps

help:
	@echo 'Building (KDIR=<prepared kernel tree>, default: Debian'"'"'s stock kernel):'
	@echo '  all, modules      - build the module (default)'
	@echo '  modules_install   - install it; INSTALL_MOD_PATH=<root>, INSTALL_MOD_DIR=<updates>'
	@echo '  headers_install   - the header for programs; INSTALL_HDR_PATH=<usr>'
	@echo '  deb               - Debian packages: the tool rdma-cm, the module for that kernel, its source for DKMS'
	@echo '  debs              - the same, with the module for every kernel of which the archive has all that it takes'
	@echo '  update            - choose the newest kernel of Debian'"'"'s again: it is remembered'
	@echo '  clean             - remove what a build leaves'
	@echo '  distclean         - also documentation and test builds'
	@echo '  distclean-cache   - remove the cache: sysroot, kernel tree, guest images'
	@echo ''
	@echo '  ARCH=arm64 to build for, and run on, another architecture than amd64, with most targets'
	@echo '  SERIES=7.2 for the newest kernel of that series, RELEASE=7.2.11+deb13-amd64 for one of'
	@echo '  those that the archive has, with any target'
	@echo ''
	@echo 'Running:'
	@echo '  run               - the whole way: set up, build, boot a guest, rping over the module'
	@echo '  quick             - what to run before each change is given away, in under 5 minutes'
	@echo '  check             - every test there is but those that take long'
	@echo '  check-long        - those'
	@echo '  check-debug       - those that need a guest, on a kernel with KASAN, lockdep and the'
	@echo '                      like (20 minutes to build, once), and with injected faults; for hours'
	@echo '  check-host        - only the tests of the protocol crate on this host, in 3 minutes'
	@echo '  prove             - the same at length: simulator, model, fuzzers, mutants, coverage;'
	@echo '                      BUDGET=<seconds> for the whole (3600)'
	@echo '  fuzz              - search for faults by commands and messages, in a guest with the debug kernel;'
	@echo '                      BUDGET=<seconds> (3600)'
	@echo '  intree            - patches against the kernel tree, in intree/; they are built with the debug'
	@echo '                      configuration, as a module and built in, and run rping in a guest each'
	@echo '  bench             - connection storms, C against Rust; POINTS=<"tools/bench --list">'
	@echo '  deps              - check for host packages, install them as root'
	@echo ''
	@echo 'Working on the source:'
	@echo '  clippy            - the kernel'"'"'s lints; a warning is an error'
	@echo '  fmt, fmtcheck     - rustfmt in place, or only a report'
	@echo '  doc               - rustdoc into doc/'
	@echo '  htmldocs          - the documentation into doc/html/, by Sphinx'
	@echo '  rust-analyzer     - rust-project.json for editors'
	@echo ''
	@echo '  V=1  show commands    CLIPPY=1  lint while building    W=1  more warnings'
	@echo '  DELAYS=<seed>  a module that sleeps where races are; DELAY_AT=<place>: for long at one of them'
	@echo '  RUST_RDMA_CM_CACHE=<directory> for the cache (now $(CACHE))'
	@echo ''
	@echo 'Tools: tools/guest runs a command in a guest, tools/buildroot one in the build'
	@echo 'sysroot, tools/kernel --print-kdir prints the kernel tree. Each has --help.'
