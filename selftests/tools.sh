#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/tools.sh: on the host, that the tools which run tests never pass without one: a step, a
# pattern or a point that is mistyped, nothing to choose from, and a step that runs no case are
# errors, and then nothing is run. Programs in a guest are tested in selection.sh.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../tools
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=selftests/lib/host-cases.sh
. "$here/lib/host-cases.sh"
output=$tmp/out

# refused NAME PATTERN COMMAND...: it fails and says so, in a line; nothing else is done.
refused() {
	local name=$1 pattern=$2 status=0
	shift 2
	"$@" >"$tmp/out" 2>&1 </dev/null || status=$?
	[ "$status" -ne 0 ] && grep -qE -- "$pattern" "$tmp/out" && ! grep -q '^==>\|passed' "$tmp/out"
	result $? "$name"
}

refused "check: an unknown step" "unknown step bogus" "$tools/check" bogus
refused "check: an unknown step after a known one" "unknown step bogus" "$tools/check" fmt bogus
refused "check: a step that is not for the C modules" "fmt is not run here: .*--cm is c" "$tools/check" --cm c fmt
refused "check: a step of the debug kernel" "planted is not run here" "$tools/check" planted
refused "check: an unknown option" "unknown option --bogus" "$tools/check" --bogus
refused "check: an option without its value" "--keep takes" "$tools/check" --keep
mkdir "$tmp/kept" && exec 8>"$tmp/kept/.lock" && flock 8
refused "check: another run writes there" "another run writes to $tmp/kept" "$tools/check" --keep "$tmp/kept" fmt
exec 8>&-
refused "check-host: an unknown step" "unknown step bogus" "$tools/check-host" bogus
refused "check-host: an unknown step after a known one" "unknown step bogus" "$tools/check-host" build bogus
refused "prove: an unknown step" "unknown step bogus" "$tools/prove" bogus
refused "prove: an unknown step after a known one" "unknown step bogus" "$tools/prove" build bogus
refused "fuzz: an unknown argument" "unknown argument bogus" "$tools/fuzz" bogus
refused "fuzz: no number of seconds" "BUDGET is a number of seconds" "$tools/fuzz" --budget bogus
refused "intree: an unknown part" "unknown part bogus" "$tools/intree" bogus
refused "intree: an unknown part after a known one" "unknown part bogus" "$tools/intree" series bogus
refused "bench: an unknown point" 'no point "bogus"' "$tools/bench" bogus
refused "bench: a point without another guest" '"insns" needs no second guest' "$tools/bench" --peer client insns
refused "bench: no measurement to report" "no measurements" "$tools/bench" --report --data "$tmp/none"
: >"$tmp/empty"
refused "bench: nothing is measured of what has a bound" "not measured" "$tools/bench.d/bound" "$tmp/empty"
refused "wirecheck: no capture" "usage" "$tools/wirecheck"
refused "two-guests: an unknown end" "no such end: bogus" "$here/pairs/two-guests.sh" --end bogus
refused "walk: nothing to compare" "no case to compare" "$here/walk/compare" "$tmp/empty" "$tmp/empty"
refused "run.sh: an unknown suite" "no such suite: bogus" "$here/run.sh" bogus
refused "run.sh: an unknown suite after a known one" "no such suite: bogus" "$here/run.sh" rping bogus

# An error of the environment is one line, before anything is begun.
mkdir -p "$tmp/no-tree" "$tmp/cache"
mkdir -p "$tmp/headers/include/config"
echo 6.1.0 >"$tmp/headers/include/config/kernel.release"
one_line() {
	local name=$1
	refused "$@"
	[ "$(wc -l <"$tmp/out")" -eq 1 ]
	result $? "$name: in one line"
}
one_line "kmake: KDIR is not there" "KDIR=$tmp/nowhere: no such directory" env KDIR="$tmp/nowhere" "$tools/kmake" modules
one_line "kmake: KDIR is no kernel tree" "KDIR=$tmp/no-tree: no prepared kernel tree" \
	env KDIR="$tmp/no-tree" "$tools/kmake" modules
echo CONFIG_MODULES=y >"$tmp/headers/include/config/auto.conf"
one_line "kmake: a kernel without Rust" "no[t] configured with CONFIG_RUST" env KDIR="$tmp/headers" "$tools/kmake" modules
echo CONFIG_RUST=y >>"$tmp/headers/include/config/auto.conf"
one_line "deb: a kernel without RDMA" "no[t] configured with CONFIG_INFINIBAND" env KDIR="$tmp/headers" "$tools/deb"
echo CONFIG_INFINIBAND=m >>"$tmp/headers/include/config/auto.conf"
one_line "kmake: headers without metadata" "no metadata of the kernel's Rust crates" \
	env KDIR="$tmp/headers" "$tools/kmake" modules
one_line "no answer from the archive" "no answer from the Debian archive at http.*: ." \
	env RUST_RDMA_CM_CACHE="$tmp/cache" http_proxy=http://127.0.0.1:9 "$tools/sysroot"
# The commands of this host, but for one.
mkdir "$tmp/bin" && ln -s /usr/bin/* "$tmp/bin" && rm -f "$tmp/bin/mmdebstrap"
one_line "check: a host package is missing" "missing host packages: mmdebstrap; make deps installs them" \
	env PATH="$tmp/bin" "$tools/check" fmt
# A disk of 100 MB.
one_line "the disk is too small" "the sysroot needs 6 GB in $tmp/cache, where [0-9]+ MB are free" \
	unshare --map-root-user --mount sh -c 'mount -t tmpfs -o size=100M none "$1" &&
		RUST_RDMA_CM_CACHE=$1 RUST_RDMA_CM_RELEASE=7.2.12+deb13-amd64 "$2"' - "$tmp/cache" "$tools/sysroot"

# A tree in which there is nothing that these look at.
tree=$tmp/tree
mkdir -p "$tree/tools" "$tree/rust/cmproto" && cp -r "$tools/checks" "$tree/tools/" &&
	git -C "$tree" init -q && echo '*' >"$tree/.git/info/exclude"
for check in spdx unsafe kunit shell comments suites; do
	(cd "$tree" && refused "checks/$check: nothing to check" "there is no (file|test|suite) to check" \
		"tools/checks/$check" && exit "$failed")
	[ $? -eq 0 ] || failed=1
	n=$((n + 1))
done

# words FILE LINE...: what checks/comments says of a file with these lines.
words() {
	local file=$tree/rust/$1
	shift
	printf '%s\n' "$@" >"$file"
	git -C "$tree" add -f "$file"
	"$tree/tools/checks/comments"
	local status=$?
	git -C "$tree" rm -q --cached "$file"
	rm "$file"
	return "$status"
}
long=$(printf 'x%.0s' {1..100})
for line in "What has arrived." "Whether it is empty." "How many there are." "Where it came from." "Who wants to know." \
	"The same." "The same, to keep." "None is." "None yet." "As above." "As [\`Guard\`], counted." "That of the port." \
	"There is one more." "It is known." "Does so with the queue pair." "# Safety"; do
	refused "checks/comments: \"$line\"" "words.rs:2: does not stand alone" words words.rs "" "/// $line" "fn f() {}"
	refused "checks/comments: \"$line\" of a module" "words.rs:1: does not stand alone" words words.rs "//! $line"
done
refused "checks/comments: a comment in C" "words.h:2: does not stand alone" words words.h "/*" " * What is shared." " */"
refused "checks/comments: a sentence of a comment" "words.rs:1: no sentence with a subject" \
	words words.rs "// It is empty. What is left is freed."
refused "checks/comments: a long comment" "words.rs:1: over 100 columns" words words.rs "// $long"
refused "checks/comments: a long string in a comment" "words.rs:1: over 100 columns" words words.rs "// \"$long\""
refused "checks/comments: a long line of code" "words.rs:1: over 100 columns" words words.rs "let x = $long;"
refused "checks/comments: a long line by its tabs" "words.c:1: over 100 columns" \
	words words.c "$(printf '\t\t\t%s' "${long:23}")"
mkdir -p "$tree/rust/words"
refused "checks/comments: a long comment of a build file" "Kbuild:1: over 100 columns" words words/Kbuild "# $long"
words words.rs "//! A module." "" "/// Returns whether the queue is empty." "///" "/// It is a hint." \
	"// The next line is no comment." "let x = \"$long\";" "// ${long:3}" "/// Creates an empty counter." >"$tmp/out" 2>&1 && [ ! -s "$tmp/out" ]
result $? "checks/comments: what is right passes"

# registry ROW...: what checks/suites says of these rows, beside a script one.sh, a step "step" and a part "part".
mkdir -p "$tree/selftests/suites" "$tree/tools/check.d" "$tree/Documentation"
printf '#!/bin/bash\necho step\n' >"$tree/tools/check" && cp "$tree/tools/check" "$tree/selftests/suites/one.sh"
chmod +x "$tree/tools/check" "$tree/selftests/suites/one.sh"
echo 'make_part() {' >"$tree/tools/check.d/share.sh"
registry() {
	printf '%s\n\tabout\n' "$@" >"$tree/selftests/suites/index"
	[ -s "$tree/Documentation/testing.rst" ] || printf '%s\n' \
		'.. The table of suites: written by tools/checks/suites --write.' '.. End of the table of suites.' \
		>"$tree/Documentation/testing.rst"
	"$tree/tools/checks/suites" ${write:+--write}
}
refused "checks/suites: an old table" "the table of suites is not up to date" registry 'one one 300 step part default'
write=1 registry 'one one 300 step part default' 'other one@ib 300 - - captured=v0' >"$tmp/out" 2>&1 && [ ! -s "$tmp/out" ]
result $? "checks/suites: what is right passes"
refused "checks/suites: a suite without a script" "other: no selftests/suites/other.sh" \
	registry 'one one 300 step - -' 'other other 300 step - -'
refused "checks/suites: a script without a suite" "one.sh: no suite" registry 'other other 300 step - -'
refused "checks/suites: a suite that is there twice" "one: is there more than once" \
	registry 'one one 300 step - -' 'one one 300 step - -'
refused "checks/suites: an unknown device" "one: no device bogus" registry 'one one@bogus 300 step - -'
refused "checks/suites: an unknown step" "no step bogus" registry 'one one 300 bogus - -'
refused "checks/suites: an unknown part" "cannot make bogus" registry 'one one 300 step part,bogus -'
refused "checks/suites: an unknown flag" "no flag bogus" registry 'one one 300 step - default,bogus'
refused "checks/suites: no time" "no number of seconds: -" registry 'one one - step - -'
refused "checks/suites: a row that is too short" "not six words" registry 'one one 300 step -' 'one one 300 step - -'

# steps STEP-DECLARATION...: what run_steps does with these, and prints.
steps() {
	local work=$tmp/work logs=$tmp/logs lanes=2 declaration
	rm -rf "$work" "$logs"
	mkdir "$work" "$logs"
	(
		# shellcheck source=tools/env.sh
		. "$tools/env.sh"
		# shellcheck source=tools/check.d/lanes.sh
		. "$tools/check.d/lanes.sh"
		set +e
		for declaration; do eval "$declaration"; done
		# shellcheck disable=SC2154 # of lanes.sh
		run_steps && exit "$failed"
	) >"$tmp/out" 2>&1 </dev/null
}

# ends NAME WANT DECLARATION...: with this last line.
ends() {
	local name=$1 want=$2
	shift 2
	steps "$@"
	[ "$(tail -n 1 "$tmp/out")" = "$want" ]
	result $? "$name"
}
ends "a step that runs no case fails" "0 passed, 1 failed, 0 skipped" 'step nothing true'
ends "a step that has a plan and no case fails" "0 passed, 1 failed, 0 skipped" 'step nothing echo 1..0'
ends "cargo without a test fails" "0 passed, 1 failed, 0 skipped" 'step --cargo nothing echo "running 0 tests"'
ends "no step at all fails" "0 passed, 1 failed, 0 skipped" true
ends "a step that fails without a case that says so" "1 passed, 1 failed, 0 skipped" \
	'step some sh -c "echo ok - x; exit 3"'
ends "a failed case" "1 passed, 1 failed, 1 skipped" \
	'step some printf "ok 1 - x\nnot ok 2 - y\nok 3 - z # SKIP so\n"'
ends "what needs a step that failed is not run, and fails" "0 passed, 2 failed, 0 skipped" \
	'step one false' 'step --needs one other echo "ok - x"'
ends "what comes after a step that failed is run" "1 passed, 1 failed, 0 skipped" \
	'step one false' 'step --after one other echo "ok - x"'
ends "what somebody has to ask for is left out" "1 passed, 0 failed, 0 skipped" \
	'step one echo "ok - x"' 'step --named two echo "ok - x"'

# The output of two steps does not mix, and keeps its order.
steps 'step slow sh -c "echo ok - a; sleep 1; echo not ok - b"' 'step quick sh -c "echo ok - c; echo not ok - d"' \
	'step --after slow --after quick last sh -c "echo ok - e"'
[ "$(sed '/^=====/,$d' "$tmp/out" | grep -E '^==>|^    (not )?ok' | tr -d '\n')" = \
	"==> quick    not ok - d==> slow    not ok - b==> last" ]
result $? "each step is printed whole, when it ends"
grep -qE '^last +[0-9]+ +[0-9]+ +0 +1$' "$tmp/out" && grep -qE '^in all +[0-9]+ +[0-9]+ +0 +5$' "$tmp/out"
result $? "a table of the steps"

# most STEP-DECLARATION...: how many of them run at a time, at most. Each is "TIMES in and out".
most() {
	: >"$tmp/times"
	steps "$@"
	awk '$1 == "in" { n++ } $1 == "out" { n-- } n > most { most = n } END { print most + 0 }' "$tmp/times"
}
in_and_out="sh -c 'echo in >>$tmp/times; sleep 1; echo out >>$tmp/times; echo ok - x'"
[ "$(most "step a $in_and_out" "step b $in_and_out" "step c $in_and_out")" = 2 ]
result $? "two steps run at a time"
[ "$(most "step a $in_and_out" "step b $in_and_out" "step --waits c $in_and_out" "step --waits d $in_and_out")" = 3 ]
result $? "one that waits runs beside them, and no second one"
[ "$(most "step a $in_and_out" "step b $in_and_out" "step --idle c $in_and_out" "step --idle d $in_and_out")" = 3 ]
result $? "one that only computes, too"
[ "$(most "step --idle a $in_and_out" "step --idle b $in_and_out")" = 1 ]
result $? "and not two of these"

# rping_reports STATUS LINE...: what run_rping says of an rping that printed the lines and ended so.
rping_reports() {
	local status=$1
	shift
	mkdir -p "$tmp/bin"
	printf '#!/bin/sh\ncat <<"END"\n%s\nEND\nexit %s\n' "$(printf '%s\n' "$@")" "$status" >"$tmp/bin/rping"
	chmod +x "$tmp/bin/rping"
	(
		# shellcheck source=selftests/lib/rping.sh
		TMP=$tmp PATIENCE=1 PATH=$tmp/bin:$PATH && . "$here/lib/rping.sh" && run_rping "" 10 -c
	) >"$tmp/out" 2>&1
}
late='rdma_get_cm_event: Bad file descriptor'
rping_reports 255 'ping data: rdma-ping-9' 'client DISCONNECT EVENT...' "$late" && grep -q ping-9 "$tmp/out"
result $? "rping: a thread that looks at the closed channel is no failure"
! rping_reports 255 'client DISCONNECT EVENT...' 'cq completion failed status 5' "$late"
result $? "rping: after an error it is"
! rping_reports 255 'ping data: rdma-ping-9'
result $? "rping: nor is another failure forgiven"
! rping_reports 1 "$late"
result $? "rping: nor another status"

# The debug kernel's tree, with a source of one file, and a sysroot and a make that do next to nothing. An unpacking ends with
# status 1 while there is a file "cut", and a build while there is a file "stop".
debug=$tmp/debug
mkdir -p "$debug"/{tools,bin,cache,sysroot/root/var/lib/dpkg} && cp "$tools"/{debug-kernel,debug.config,env.sh} "$debug/tools/"
echo 7.3.4+x >"$debug/sysroot/release" && echo >"$debug/sysroot/root/var/lib/dpkg/status"
stub() {
	printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1"
}
stub "$debug/tools/sysroot" "echo $debug/sysroot"
stub "$debug/tools/buildroot" 'exec "$@"'
stub "$debug/bin/ls" 'echo source.tar'
stub "$debug/bin/df" 'echo; echo 99999999'
stub "$debug/bin/tar" "echo unpacked >>$debug/done; [ ! -e $debug/cut ]"
stub "$debug/bin/make" "for arg; do
	case \$arg in
	KCONFIG_ALLCONFIG=*) grep -v '=n\$' \"\${arg#*=}\" >.config ;;
	bzImage) [ ! -e $debug/stop ] && echo built >>$debug/done || { echo begun >>$debug/done; exit 1; } ;;
	esac
done"
# debug_kernel DONE: what has been done, after one more run.
debug_kernel() {
	RUST_RDMA_CM_CACHE=$debug/cache PATH=$debug/bin:$PATH "$debug/tools/debug-kernel" >"$tmp/out" 2>&1 </dev/null || :
	[ "$(tr '\n' ' ' <"$debug/done")" = "$1 " ] || { cat "$debug/done" >>"$tmp/out" && false; }
}
: >"$debug/cut" && debug_kernel "unpacked"
result $? "debug-kernel: a tree that is not unpacked whole is not built"
rm "$debug/cut" && : >"$debug/stop" && debug_kernel "unpacked unpacked begun"
result $? "debug-kernel: it is unpacked again"
rm "$debug/stop" && debug_kernel "unpacked unpacked begun built" && [ -d "$(tail -n 1 "$tmp/out")" ]
result $? "debug-kernel: a build that was interrupted goes on"
debug_kernel "unpacked unpacked begun built"
result $? "debug-kernel: what is built is not built again"

# shellcheck source=selftests/lib/lib.sh
. <(sed -n '/^runs() {/,/^}/p' "$here/lib/lib.sh")
# A child that has ended, and that its parent does not take notice of.
coproc PARENT { python3 -c 'import os, sys
child = os.fork() or os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print(child, flush=True)
sys.stdin.read()'; }
read -r child <&"${PARENT[0]}"
kill -0 "$child" && ! runs "$child" && runs "$PARENT_PID" && ! runs 0
result $? "lib: a process that has ended does not run, though nobody has waited for it"
kill "$PARENT_PID"

refused "mutants: an unknown one" "no selftests/mutants/bogus.patch" "$tools/mutants" bogus
refused "delays: an unknown suite" "no suite bogus" "$tools/delays" bogus
echo "1..$n"
exit "$failed"
