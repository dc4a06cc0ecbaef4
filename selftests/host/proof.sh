# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The functions that tools/check-host and tools/prove share: the steps, how one is run with
# progress, and the table at the end. To be sourced after tools/env.sh.
#
# A step is a function that prints what it does; the last line of that is its
# result in figures. Status 77: it was skipped, and the last line says why.

HOST=$REPO/selftests/host
CARGO_TOOLS=$CACHE/cargo-tools
# Versions that are known to work together.
CARGO_FUZZ=0.13.2
CARGO_LLVM_COV=0.9.1
CARGO_MUTANTS=27.1.0
PATH=$PATH:$CARGO_TOOLS/bin
JOBS=${JOBS:-$(nproc)}
# In the cache, so that a tree that is new here builds no crates but its own.
export CARGO_TARGET_DIR=$CACHE/host-$(hash_of "$REPO")

# This host's cargo if it is new enough, else that of the build sysroot.
cargo=("$TOOLS/buildroot" cargo)
own_cargo=''
if version=$(cargo --version 2>/dev/null); then
	version=${version#cargo }
	version=${version%% *}
	if [ "$(printf '%s\n' 1.85 "$version" | sort -V | head -n 1)" = 1.85 ]; then
		cargo=(cargo)
		own_cargo=1
	fi
fi

skip() {
	echo "$*"
	exit 77
}

# has_nightly: whether cargo +nightly is there; branch coverage needs it.
has_nightly() {
	[ -n "$own_cargo" ] && cargo +nightly --version >/dev/null 2>&1
}

# cargo_tool NAME VERSION: install a cargo subcommand into the cache.
cargo_tool() {
	command -v "$1" >/dev/null && return
	[ -n "$own_cargo" ] || skip "$1 needs a cargo of this host"
	echo "installing $1 $2"
	cargo install --locked --quiet --root "$CARGO_TOOLS" "$1@$2" ||
		skip "$1 cannot be installed here"
}

# llvm_tools MAJOR: a directory with llvm-cov and llvm-profdata of that version, from
# the toolchain, the system, or Debian's archive (unpacked into the cache).
llvm_tools() {
	local major=$1 dir tmp
	for dir in "$(rustc --print sysroot)"/lib/rustlib/*/bin "/usr/lib/llvm-$major/bin" \
		"$CACHE/llvm-$major/bin"; do
		if [ -x "$dir/llvm-cov" ] && [ -x "$dir/llvm-profdata" ]; then
			echo "$dir"
			return
		fi
	done
	tmp=$(mktemp -d "$CACHE/.llvm-XXXXXX")
	(
		cd "$tmp"
		apt-get download "llvm-$major" "libllvm$major" >&2
		for deb in *.deb; do dpkg-deb -x "$deb" x; done
		mkdir -p keep/bin keep/lib
		cp x/usr/lib/llvm-"$major"/bin/llvm-{cov,profdata} keep/bin/
		cp -P x/usr/lib/*/libLLVM* keep/lib/
	) && mv "$tmp/keep" "$CACHE/llvm-$major" && echo "$CACHE/llvm-$major/bin"
	rm -rf "$tmp"
}

# --- steps ---

# Builds everything that the tests, the simulator and the model check need: minutes the first time.
proof_build() {
	"${cargo[@]}" test --locked --quiet --no-run --manifest-path "$HOST/Cargo.toml" --workspace
	"${cargo[@]}" build --locked --quiet --release --manifest-path "$HOST/Cargo.toml" \
		-p cm-sim -p cm-model
	loom_tests --no-run
	echo "built"
}

# static_program PACKAGE: builds the program of that name, which needs no C library where it runs, and prints its path.
static_program() {
	local target=$MACHINE-unknown-linux-gnu flags='-C target-feature=+crt-static' run=("${cargo[@]}") home
	if [ "$DEB_ARCH" != amd64 ]; then
		# The sysroot has the libraries, and this host the crates if it has a cargo.
		flags+=" -C linker=$MACHINE-linux-gnu-gcc" run=("$TOOLS/buildroot" cargo)
		if [ -n "$own_cargo" ]; then
			home=${CARGO_HOME:-$HOME/.cargo}
			cargo fetch --locked --quiet --manifest-path "$HOST/Cargo.toml" >&2 || return
			run=(env "BUILDROOT_BIND=$home" "$TOOLS/buildroot" env "CARGO_HOME=$home" cargo --offline)
		fi
	fi
	RUSTFLAGS=$flags "${run[@]}" build --locked --release --quiet --target "$target" \
		--manifest-path "$HOST/Cargo.toml" --package "$1" >&2 &&
		echo "$CARGO_TARGET_DIR/$target/release/$1"
}

# loom_tests [ARG...]: the tests of rust/containers and rust/atomics under loom, which is a build of its own.
loom_tests() {
	"${cargo[@]}" test --locked --manifest-path "$HOST/Cargo.toml" -p containers -p atomics --lib \
		--config 'build.rustflags=["--cfg", "loom"]' --target-dir "$CARGO_TARGET_DIR/loom" "$@"
}

# Builds everything that the fuzzers need. No unsafe code, no sanitizer: and so no nightly toolchain
# either.
proof_fuzz_build() {
	cd "$HOST" &&
		cargo build --quiet -p cm-fuzz-targets --bin cm-fuzz-seeds &&
		cargo fuzz build --sanitizer none &&
		echo "built"
}

# Every unit, property, scenario and regression test.
proof_tests() {
	local status=0 log
	log=$(mktemp)
	"${cargo[@]}" test --locked --manifest-path "$HOST/Cargo.toml" --workspace 2>&1 |
		tee "$log" || status=$?
	loom_tests 2>&1 | tee -a "$log" || status=$?
	CARGO="${cargo[*]}" "$TOOLS/transitions" --check || status=$?
	"$HOST/hand-mutants" --check || status=$?
	awk '/^test result:/ { p += $4; f += $6; i += $8 }
		END { printf "%d tests passed, %d failed, %d ignored\n", p, f, i; exit !p }' "$log" || status=1
	rm -f "$log"
	return "$status"
}

# proof_sim SECONDS
proof_sim() {
	grep -q '"sim"' "$HOST/Cargo.toml" || skip "there is no simulator"
	"${cargo[@]}" build --locked --quiet --release --manifest-path "$HOST/Cargo.toml" -p cm-sim || return
	# Fresh seeds in each run; a finding names its seed.
	local first status=0 log
	first=$(date +%s)000
	log=$(mktemp)
	"${cargo[@]}" run --locked --quiet --release --manifest-path "$HOST/Cargo.toml" -p cm-sim \
		--bin cmsim -- --seconds "$1" --jobs "$JOBS" --first "$first" 2>&1 | tee "$log" || status=$?
	awk -v first="$first" '/^(simulations|connections|steps) / { n[$1] = $NF }
		/^  / && $NF > 0 { broken += $NF }
		/^broken rules/ { broken = 0 }
		/^seed [0-9]+ breaks / && !first_broken { first_broken = "; " $0 }
		END { printf "%.2f million connections, %.0f million steps, %d broken rules; seeds from %s%s\n",
			n["connections"] / 1e6, n["steps"] / 1e6, broken, first, first_broken
			exit !n["steps"] }' "$log" || status=1
	rm -f "$log"
	return "$status"
}

# proof_model SECONDS --quick|--all
proof_model() {
	local status=0 log
	log=$(mktemp)
	"${cargo[@]}" build --locked --quiet --release --manifest-path "$HOST/Cargo.toml" -p cm-model || return
	"${cargo[@]}" run --locked --quiet --release --manifest-path "$HOST/Cargo.toml" -p cm-model \
		--bin cmmodel -- --seconds "$1" "$2" 2>&1 | tee "$log" || status=$?
	awk '/ (exhaustive|INCOMPLETE)$/ { n++; states += $2; if ($NF == "exhaustive") e++; else late = late " " $1 }
		/FAILED/ { f++ }
		END { printf "%d searches, %d exhaustive, %d states, %d properties broken%s\n", n, e, states, f,
			late ? "; incomplete:" late : ""
			exit !n }' "$log" || status=1
	rm -f "$log"
	return "$status"
}

# proof_fuzz SECONDS: for all targets together. Earlier findings are the start.
proof_fuzz() {
	local targets target each corpus=$CACHE/fuzz found=$CACHE/fuzz-findings failed='' log status=0
	[ -n "$own_cargo" ] || skip "cargo-fuzz needs a cargo of this host"
	cargo_tool cargo-fuzz "$CARGO_FUZZ"
	(proof_fuzz_build) || return
	(cd "$HOST" && cargo run --quiet -p cm-fuzz-targets --bin cm-fuzz-seeds -- \
		"$corpus" "$REPO/rust/cmproto/tests/golden") || return
	mapfile -t targets < <(cd "$HOST" && cargo fuzz list)
	each=$(($1 / ${#targets[@]}))
	[ "$each" -gt 0 ] || each=1
	mkdir -p "$found"
	log=$(mktemp)
	for target in "${targets[@]}"; do
		mkdir -p "$corpus/$target"
		echo "fuzz $target for $each s"
		(cd "$HOST" && cargo fuzz run --sanitizer none "$target" "$corpus/$target" -- \
			-max_total_time="$each" -max_len=2048 -print_final_stats=1 -timeout=5 \
			-artifact_prefix="$found/$target-") >"$log.one" 2>&1 || failed+=" $target"
		grep -E 'DONE|stat::number_of_executed_units|Test unit written|panicked|SUMMARY' "$log.one" || :
		cat "$log.one" >>"$log"
	done
	[ -z "$failed" ] || status=1
	[ -z "$failed" ] || echo "findings of$failed are in $found: shrink them with cargo fuzz tmin, then" \
		"keep them in selftests/host/fuzz-targets/regressions/TARGET"
	awk -v n="${#targets[@]}" -v failed="${failed:- none}" '
		/stat::number_of_executed_units/ { runs += $2 }
		/\tDONE / { for (i = 1; i < NF; i++) if ($i == "cov:") edges += $(i + 1) }
		END { printf "%d targets, %.1f million runs, %d edges; findings in:%s\n", n, runs / 1e6, edges, failed
			exit !runs }' "$log" || status=1
	rm -f "$log" "$log.one"
	return "$status"
}

# proof_mutants SECONDS: half of it for those made by hand.
proof_mutants() {
	[ -n "$own_cargo" ] || skip "cargo-mutants needs a cargo of this host"
	"$HOST/hand-mutants" --seconds "$(($1 / 2))" || return
	cargo_tool cargo-mutants "$CARGO_MUTANTS"
	"$HOST/mutants" --seconds "$(($1 / 2))"
}

# Lines and branches that no unit test reaches.
proof_coverage() {
	local major dir toolchain=() branch=() lcov=$CACHE/coverage.lcov
	[ -n "$own_cargo" ] || skip "coverage needs a cargo of this host"
	cargo_tool cargo-llvm-cov "$CARGO_LLVM_COV"
	if has_nightly; then
		toolchain=(+nightly) branch=(--branch)
	else
		echo "branches are counted by a nightly toolchain only: lines alone"
	fi
	major=$(rustc "${toolchain[@]}" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
	dir=$(llvm_tools "$major") || skip "there are no llvm-cov and llvm-profdata of LLVM $major"
	export LLVM_COV=$dir/llvm-cov LLVM_PROFDATA=$dir/llvm-profdata
	export CARGO_LLVM_COV_TARGET_DIR=$CARGO_TARGET_DIR/coverage
	cd "$HOST" || return
	cargo "${toolchain[@]}" llvm-cov "${branch[@]}" -p cmproto -p containers -p atomics --no-report || return
	cargo "${toolchain[@]}" llvm-cov report "${branch[@]}" -p cmproto -p containers -p atomics --lcov \
		--output-path "$lcov" || return
	python3 "$HOST/coverage" "$lcov"
}

# Undefined behaviour: the containers with both models of aliasing, and the protocol crate, which
# forbids unsafe code.
proof_miri() {
	local toolchain log flags status=0
	log=$(mktemp)
	for toolchain in '' +nightly; do
		# shellcheck disable=SC2086 # no argument if it is empty
		if [ -n "$own_cargo" ] && cargo $toolchain miri --version >/dev/null 2>&1; then
			cd "$HOST" || return
			for flags in '' -Zmiri-tree-borrows; do
				# shellcheck disable=SC2086
				MIRIFLAGS=$flags cargo $toolchain miri test -p containers --lib 2>&1 |
					tee -a "$log" || status=$?
			done
			# shellcheck disable=SC2086
			PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation \
				cargo $toolchain miri test -p cmproto --lib 2>&1 | tee -a "$log" || status=$?
			awk '/^test result:/ { p += $4; f += $6 }
				END { printf "%d tests passed, %d failed\n", p, f; exit !p }' "$log" || status=1
			rm -f "$log"
			return "$status"
		fi
	done
	skip "no toolchain here has Miri"
}

# --- running them ---

# proof_steps_are_known "KNOWN..." STEP...: nothing is run if one of them is mistyped.
proof_steps_are_known() {
	local known=$1 step
	shift
	for step; do
		[[ " $known " = *" $step "* ]] || die "unknown step $step: there are $known"
	done
}

proof_logs=${proof_logs:-$CACHE/proof}
rows=()
proof_failed=0
# Seconds that the step "build" took.
proof_built=0
proof_pid=''

# proof NAME FUNCTION...: run a step, show its progress, and add a row to the table.
proof() {
	local name=$1 log start now status=0 next=15 line result
	shift
	mkdir -p "$proof_logs"
	log=$proof_logs/$name.log
	start=$SECONDS
	[ -t 2 ] || echo "==> $name" >&2
	set -m
	(
		set +m
		set -euo pipefail
		"$@"
	) >"$log" 2>&1 </dev/null &
	proof_pid=$!
	set +m
	while kill -0 "$proof_pid" 2>/dev/null; do
		sleep 0.2
		now=$((SECONDS - start))
		if [ -t 2 ]; then
			printf '\r\033[K==> %s  %d s  %.60s' "$name" "$now" \
				"$(tail -n 1 "$log" | tr -d '\r\033\t')" >&2
		elif [ "$now" -ge "$next" ]; then
			printf '    %s: %d s\n' "$name" "$now" >&2
			next=$((now + 15))
		fi
	done
	wait "$proof_pid" || status=$?
	proof_pid=''
	[ ! -t 2 ] || printf '\r\033[K' >&2
	line=$(tail -n 1 "$log")
	case $status in
	0) result=ok ;;
	77) result=skipped ;;
	*)
		result=FAILED
		proof_failed=$((proof_failed + 1))
		tail -n 40 "$log" | sed 's/^/    | /' >&2
		;;
	esac
	[ "$name" != build ] || proof_built=$((SECONDS - start))
	rows+=("$name|$result|$((SECONDS - start)) s|$line")
	# For a caller that counts cases.
	if [ ! -t 1 ]; then
		[ "$name" != tests ] || grep -E '^test .* \.\.\. (ok|FAILED|ignored)' "$log" || :
		[ "$name" = tests ] || echo "test proof::$name ... ${result/skipped/ignored}"
	fi
}

# The end: nothing that was started goes on.
proof_stop() {
	[ -z "$proof_pid" ] || kill -TERM -- "-$proof_pid" 2>/dev/null || :
}
trap proof_stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The table; the status is that of the whole.
proof_table() {
	{
		echo
		printf '%s\n' "step|result|time|figures" "${rows[@]}" |
			awk -F'|' '{ printf "%-10s %-8s %7s  %s\n", $1, $2, $3, $4 }'
		echo
		echo "$((${#rows[@]} - proof_failed)) of ${#rows[@]} steps without a failure in" \
			"$((SECONDS - proof_built)) s$([ "$proof_built" = 0 ] || echo ", and $proof_built s to build");" \
			"their output is in $proof_logs"
	}
	[ "$proof_failed" -eq 0 ]
}
