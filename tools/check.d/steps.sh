# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154,SC2317
#
# The steps of tools/check. To be sourced by it, after lanes.sh and share.sh: it has set "cm", "kernel", "counted", "work"
# and "share".

# --- without a guest ---

sources() {
	local check status=0
	one "licence of every file" "$TOOLS/checks/spdx" || status=1
	one "unsafe code" "$TOOLS/checks/unsafe" || status=1
	# Others that need no argument.
	for check in "$TOOLS"/checks/*; do
		case ${check##*/} in spdx | unsafe | panic | layout | exports | rebuild | *.*) continue ;; esac
		[ ! -x "$check" ] || one "${check##*/}" "$check" || status=1
	done
	one "every mutant applies" "$TOOLS/mutants" --check || status=1
	return "$status"
}

build() {
	local log=$work/build status=0
	one "the module builds" in_tree bash -c '"$1" modules >"$2" 2>&1 || { cat "$2"; exit 1; }' - \
		"$TOOLS/kmake" "$log" || status=1
	one "without warnings" bash -c '! grep -i "warning" "$1"' - "$log" || status=1
	return "$status"
}

# A layout that is not the kernel's must be refused, with words.
layout() {
	local header=$REPO/rust/bindings/layout_generated.h kdir release status=0 line name number other=$work/layout.h
	kdir=$("$TOOLS/kernel" --print-kdir) && release=$("$TOOLS/kernel" --print-release) || return
	one "the layout is that of the kernel" \
		"$TOOLS/buildroot" "$TOOLS/checks/layout" "$header" "$kdir" "$release" || status=1
	one "what the C modules export is exported" "$TOOLS/checks/exports" "$kdir" || status=1
	while read -r line; do
		name=$(echo "$line" | awk '{ print $2 }')
		number=$(echo "$line" | awk '{ print $3 }')
		sed "s/^#define $name\b.*/#define $name $((number + 8))/" "$header" >"$other"
		one "another $name is refused" bash -c \
			'! out=$("$@" 2>&1) && echo "$out" | grep -q .' - \
			env BUILDROOT_BIND="$work" "$TOOLS/buildroot" "$TOOLS/checks/layout" "$other" "$kdir" "$release" ||
			status=1
	done < <(grep -E '^#define (RDMA_ID_PRIVATE|RDMA_CM_ID)_[A-Z_]+[[:space:]]+[0-9]+$' "$header" |
		head -n 4)
	return "$status"
}

# The messages that the steps before sent, or, alone, some that are sent for this.
wire() {
	local files=()
	if ! ls "$share/capture"/*.pcap >/dev/null 2>&1; then
		boot=wire && in_guest ib rping kill loss programs >&2 || return
	fi
	mapfile -t files < <(find "$share/capture" -name '*.pcap' ! -name loss.pcap | sort)
	"$TOOLS/wirecheck" "${files[@]}" --lossy "$share/capture/loss.pcap" || {
		# To look at.
		cp "${files[@]}" "$share/capture/loss.pcap" "$logs/"
		return 1
	}
}

# In counted instructions, one that is too many shows.
insns() {
	mkdir -p "$work/insns"
	"$TOOLS/bench" --only rust --rounds 1 --data "$work/insns" insns || return
	"$TOOLS/bench.d/bound" "$work/insns/insns.csv"
}

# The memory of objects of programs, beside C's in the same guest.
memory() {
	mkdir -p "$work/memory"
	"$TOOLS/bench" --rounds 1 --data "$work/memory" memory ids || return
	"$TOOLS/bench.d/memory" "$work/memory"
}

# A tag without an override, which has a reason, is an error (debian/*.lintian-overrides*).
lintian() {
	local status=0
	need package >&2 && dpkg-deb -x "$share"/rdma-cm_*.deb "$work/unpacked" || return
	BUILDROOT_BIND=$share one "lintian finds nothing in the packages" \
		"$TOOLS/debroot" lintian --fail-on error,warning "$share"/*.deb || status=1
	# shellcheck disable=SC2016 # for the shells of that system
	BUILDROOT_BIND=$work one "fish and zsh have completions" "$TOOLS/debroot" sh -ec 'cd "$1/usr/share"
		[ "$(fish --no-config -c "source fish/vendor_completions.d/*; complete -C \"rdma-cm sh\"" | cut -f 1)" = show ]
		[ "$(zsh -fc "fpath=(\$PWD/zsh/vendor-completions \$fpath); autoload -Uz compinit; compinit -u -D
			print \$_comps[rdma-cm]")" = _rdma-cm ]
		zsh -n zsh/vendor-completions/_rdma-cm' - "$work/unpacked" || status=1
	return "$status"
}

# debian_host SCRIPT: on a host with the packages.
debian_host() {
	need package >&2 && "$REPO/selftests/$1" "$share"
}

dkms() {
	need package >&2 && "$REPO/selftests/dkms.sh" "$@" "$share"
}

# --- in a guest ---

# run_guest SECONDS OPTION... -- COMMAND: with the share, and as long as this kernel takes. If two
# guests share the host's processors each takes twice as long.
run_guest() {
	local seconds=$(($1 * $(at_once)))
	shift
	[ "$kernel" = stock ] || seconds=$((seconds * 5))
	# One thread of the host serves all its processors.
	[[ "${counted[*]} $*" != *--icount* ]] || seconds=$((seconds * 5))
	"$TOOLS/guest" --cm "$cm" --kernel "$kernel" "${counted[@]}" --share "$share" --timeout "$seconds" "$@"
}

# The special options of the guest of a boot: options of tools/guest.
declare -A boot_options=()
# The suites of a boot.
declare -A boot_suites=()

# boot NAME [OPTION...]: the suites of this step run in one guest, started with these options.
boot() {
	local name=$1 suite suites=()
	shift
	boot_options[$name]=$*
	for suite in "${SUITES[@]}"; do
		[ "${SUITE_STEP[$suite]}" = "$name" ] || continue
		[ "$kernel" = stock ] || ! has_flag "$suite" stock || continue
		suites+=("$suite")
	done
	boot_suites[$name]=${suites[*]}
}

# in_guest [SUITE...]: those of the boot that were chosen.
in_guest() {
	local options=() suites=() seconds=300 status=0 i
	read -ra options <<<"${boot_options[$boot]:-}"
	suites=("$@")
	if [ $# -eq 0 ]; then
		read -ra suites <<<"${chosen_suites[$boot]:-${boot_suites[$boot]}}"
	fi
	[ "$kernel" = stock ] || suites+=(kmemleak)
	# shellcheck disable=SC2046 # names without blanks
	need $(needs_of "${suites[@]}") || return
	for i in "${!suites[@]}"; do
		seconds=$((seconds + SUITE_SECONDS[${suites[i]%% *}]))
		case ${suites[i]} in
		walk)
			# By itself it asks both, in this guest.
			if [ "$cm" = c ]; then
				:
			elif [ -e "$(record_of_c walk)" ] || [ "$kernel" = debug ]; then
				ask_c walk || return
			else
				suites[i]='walk --keep walk-both'
			fi
			;;
		walk-*) ask_c "${suites[i]%% *}" || return ;;
		esac
	done
	run_guest "$seconds" "${options[@]}" -- /mnt/repo/selftests/run.sh --capture capture "${suites[@]}" || status=$?
	for i in "${suites[@]}"; do
		case $i in walk*) keep_record "${i%% *}" "$status" ;; esac
	done
	return "$status"
}

# record_of_c SUITE: where it is, or would be, what the C modules did in walk, walk-ib or walk-opa. That depends on the
# kernel, on what is asked and on the guest, not on the module that is to be tested.
record_of_c() {
	local kernel_image sysroot
	kernel_image=$("$TOOLS/kernel" --print-image) && sysroot=$("$TOOLS/sysroot") || return
	echo "$CACHE/$1-c-$(hash_of "$kernel_image" "$sysroot" "$(cat "$REPO"/selftests/walk/*.[ch] \
		"$REPO"/selftests/abi/{abi.h,clock.c,command.c,footprint.c,kernel.c,memory.c,netlink.c,pair.c} \
		"$REPO"/selftests/lib/{lib.sh,softib.sh,sa.py} "$REPO"/selftests/suites/walk.sh "$TOOLS"/softib.d/* \
		"$TOOLS"/guest.d/{guest-init,cm-use})").txt"
}

# ask_c SUITE: the record is in the share, as the suite looks for it. It is made on the stock kernel: the debug
# kernel's KASAN ends what the C modules are to show. And over a port with an InfiniBand link layer there is no change of
# connection manager in one guest.
ask_c() {
	local here=$work/share-$1 over=${SUITE_OVER[$1]} record softib
	record=$(record_of_c "$1") || return
	if [ ! -e "$record" ]; then
		mkdir -p "$here"
		if [ "$over" ]; then
			softib=$("$TOOLS/softib") && put_modules "$here/softib.ko" "$softib" || return
		fi
		cp "$share"/cm-walk* "$here" || return
		# Twice: where the two differ the machine was too slow, and the suite looks again. The remaining
		# differences are differences from this module, too.
		"$TOOLS/guest" --cm c "${counted[@]}" --share "$here" --timeout $((2000 * $(at_once))) -- \
			"OVER=$over /mnt/repo/selftests/suites/walk.sh --keep c" >"$work/$1-c" 2>&1
		cp "$here/c/c.txt" "$record.$$" || { sed 's/^/# /' "$work/$1-c" && return 1; }
		mv "$record.$$" "$record"
	fi
	cp "$record" "$share/$1-c.txt"
}

# keep_record SUITE STATUS: for the next time, if nothing failed; else C is asked anew then.
keep_record() {
	local record
	record=$(record_of_c "$1") || return
	if [ "$2" -ne 0 ]; then
		rm -f "$record"
	elif [ -e "$share/$1-both/c.txt" ]; then
		cp "$share/$1-both/c.txt" "$record.$$" && mv "$record.$$" "$record"
	fi
}

# The metrics that the guest has recorded, in Prometheus.
monitoring() {
	local status=0
	boot=monitoring in_guest || status=1
	[ ! -d "$share/metrics" ] || "$REPO/selftests/prometheus/run" "$share" || status=1
	return "$status"
}

planted() {
	need planted || return
	"$TOOLS/guest" --cm "$cm" --kernel debug --ignore-log --share "$share" \
		--timeout $((SUITE_SECONDS[planted] * $(at_once))) -- \
		/mnt/repo/selftests/suites/planted.sh
}

# A guest that is switched off with the module loaded: unloading it is what the kernel cannot do.
rds() {
	local last=true
	mkdir -p "$share"
	if [ "$kernel" = debug ]; then
		need planted || return
		last='/mnt/repo/selftests/suites/kmemleak.sh --loaded'
	fi
	run_guest "${SUITE_SECONDS[rds]}" -- "/mnt/repo/selftests/suites/rds.sh; status=\$?; $last && exit \$status"
}

two_guests() {
	local pair=(rust c)
	[ "$cm" = rust ] || pair=(c c)
	mkdir -p "$share"
	"$REPO/selftests/pairs/two-guests.sh" "$@" "${pair[@]}"
}

# storage_pair END [OPTION...]: the same with programs that administer storage.
storage_pair() {
	need storage && two_guests --end "$1" --programs "$share/storage.sqfs" "${@:2}"
}

# with_part PART FILE COMMAND...: with a file of the share.
with_part() {
	need "$1" && "${@:3}" --file "$share/$2"
}

# With the newest RDMA user space.
newest() {
	local status=0
	boot=newest && in_guest || status=1
	[ "$kernel" != stock ] || two_guests --capture "$share/capture" --programs "$share/newest.sqfs" || status=1
	return "$status"
}

# The module of a release that no package is for, on its kernel.
testing_kernel() {
	local dir
	mkdir -p "$share" && dir=$("$TOOLS/testing-kernel") || return
	run_guest 1500 --kernel "$dir" --module "$dir/rust_rdma_cm.ko" -- /mnt/repo/selftests/run.sh rping module
}

# The module of the other architecture, in a copy, as a tree has that of one.
arm64() {
	local copy status=0 why
	copy=$CACHE/arm64-$(hash_of "$REPO")
	if ! RUST_RDMA_CM_ARCH=arm64 "$TOOLS/sysroot" --is-ready &&
		! why=$(archive_get "dists/$SUITE/InRelease" "$work/InRelease"); then
		echo "ok - arm64 # SKIP its sysroot is not in the cache, and there is $why"
		return
	fi
	copy_sources "$copy" >&2 || return
	"$copy/tools/check" --arch arm64 --lanes 1 --keep "$work/arm64" build panic layout quick >"$work/arm64.out" 2>&1 || status=1
	cat "$work"/arm64/{build,panic,layout,quick}.log
	[ "$status" -eq 0 ] || sed 's/^/# /' "$work/arm64.out"
	return "$status"
}

# with_kernel_source COMMAND...: as $work/linux.tar. The steps that use it take an hour or two where
# guests are emulated.
with_kernel_source() {
	local archive status=0
	archive=$(ls "$("$TOOLS/sysroot")"/root/usr/src/linux-source-*.tar.xz) || return
	xz -dc "$archive" >"$work/linux.tar" && "$@" || status=1
	rm "$work/linux.tar"
	return "$status"
}

# --- all of them ---

# Allocated memory holds no zeros there, as it does in Debian's kernel otherwise: what is read, or
# told to a program, before it is written shows.
boot commands --append slab_debug=P
# A guest of its own: the C modules, which it asks, too, keep a reference to a GID, which ib_core reports when the device
# goes (differences.rst).
boot states
boot scenarios
# The entries that the storms of trouble leave in the tables of neighbours must not be seen here.
boot unreached
# The leftovers of hostile users are for them alone, too.
boot hostile
# In counted time: calls are compared that take microseconds.
boot hostile-time --icount --shift 0 --smp 2
boot programs
boot infiniband
boot ib-long
boot storage
# Their programs are in the place of those of storage.
boot middleware
# In counted time: the kernel's client asks for no retries, so that one answer that is late, because a virtual CPU waits for
# one of the host, ends its connection.
boot 9p --icount --shift 0 --smp 2
# netns ends the namespace "peer", and kernel-rdma unloads soft-RoCE.
boot removal
# The module is not signed: it cannot be loaded, and C's are.
boot signed --cm none --append module.sig_enforce=1
boot secure-boot --cm none --secure-boot
boot monitoring
boot symptoms
boot faults
boot newest
boot nfs-source --mem 8G --disk "$work/linux.tar"
boot blktests --mem 4G

# boot_step [OPTION...] NAME: the step that is that boot.
boot_step() {
	local name=${*: -1} suite
	for suite in ${boot_suites[$name]}; do
		step_of_suite[$suite]=$name
	done
	step --needs build "$@" eval "boot=$name in_guest"
}

# Steps about this module, about the stock kernel, and about the debug kernel.
rust_step() {
	if [ "$cm" = c ]; then
		not_here "it is about this module, and --cm is c" "$@"
	else
		stock_step "$@"
	fi
}

stock_step() {
	if [ "$kernel" != stock ]; then
		not_here "it is for the stock kernel, and --kernel is $kernel" "$@"
	else
		step "$@"
	fi
}

debug_step() {
	if [ "$kernel" != debug ]; then
		not_here "it is for the debug kernel, and --kernel is $kernel" "$@"
	else
		step "$@"
	fi
}

# on_amd64 KIND...: such a step, but on amd64 only. It does not depend on the architecture, or there is no such thing
# for another.
on_amd64() {
	if [ "$DEB_ARCH" != amd64 ]; then
		not_here "it is for amd64, and --arch is $DEB_ARCH" "${@:2}"
	else
		"$@"
	fi
}

# In this order, two at a time, and beside them one that mostly waits and one that needs neither a guest nor a clock: what
# others wait for and what takes long comes first,
# and in the end there are steps that use few processors. Two guests are not beside two others: soft-RoCE gives a message up
# that is not acknowledged for some seconds.
declare_steps() {
	rust_step build build
	on_amd64 rust_step fmt one "rustfmt" "$TOOLS/fmt" --check
	on_amd64 rust_step sources sources
	on_amd64 rust_step docs one "the documentation builds without a warning" "$TOOLS/htmldocs" "$work/html"
	on_amd64 rust_step tools "$REPO/selftests/tools.sh"
	rust_step --needs build panic in_tree one "no reachable panic in the module" "$TOOLS/checks/panic"
	rust_step --needs build layout layout
	rust_step --needs build rebuild in_tree one "not built again if nothing has changed" "$TOOLS/checks/rebuild"
	boot_step --waits commands
	boot_step --waits removal
	boot_step states
	on_amd64 rust_step --waits --needs build signed eval "boot=signed in_guest"
	step_of_suite[install-signed]=signed
	on_amd64 rust_step --waits --needs build secure-boot eval "boot=secure-boot in_guest"
	step_of_suite[secure-boot]=secure-boot
	on_amd64 step --waits --needs build monitoring monitoring
	step_of_suite[monitoring]=monitoring
	on_amd64 rust_step --waits --needs build symptoms eval "boot=symptoms in_guest"
	step_of_suite[troubleshooting]=symptoms
	on_amd64 rust_step --idle clippy one "clippy" "$TOOLS/clippy"
	on_amd64 rust_step --idle --cargo host "$TOOLS/check-host"
	on_amd64 rust_step --named --idle --needs build analyzer in_tree one "rust-analyzer finds every name" \
		"$TOOLS/rust-analyzer" --check
	on_amd64 rust_step --idle --needs build lintian lintian
	on_amd64 rust_step --idle --needs build dkms dkms
	on_amd64 rust_step --idle --needs build initramfs debian_host initramfs.sh
	boot_step infiniband
	boot_step programs
	boot_step --waits storage
	on_amd64 rust_step --needs build insns insns
	on_amd64 rust_step --needs build memory memory
	boot_step scenarios
	boot_step --waits unreached
	boot_step hostile
	stock_step --needs build hostile-time eval "boot=hostile-time in_guest"
	step_of_suite[hostile-time]=hostile-time
	boot_step --waits 9p
	debug_step --needs build planted planted
	debug_step --needs build faults eval "boot=faults in_guest"
	# After the last ones that wait: they have guests, too.
	stock_step --needs build --after removal --after storage --after unreached --after 9p --after root \
		two-guests two_guests --capture "$share/capture"
	stock_step --named --needs build --after removal iwarp-pair with_part siw siw.ko storage_pair iwarp-pair
	step --needs build rds rds
	on_amd64 rust_step --waits --needs build --after removal root debian_host root.sh
	on_amd64 rust_step --named --needs build walkthrough debian_host walkthrough.sh
	on_amd64 stock_step --needs build guest "$REPO/selftests/guest-runner.sh" "$cm"
	step --after programs --after infiniband --after two-guests wire wire

	on_amd64 boot_step --named middleware
	boot_step --named ib-long
	stock_step --named --needs build storage-pair with_part p9rdma p9rdma storage_pair storage-pair
	step --named --needs build newest newest
	on_amd64 rust_step --named --needs build dkms-build dkms --build
	on_amd64 rust_step --named testing-kernel testing_kernel
	rust_step --named delays "$TOOLS/delays" --kernel "$kernel"
	step --named --needs build nfs-source with_kernel_source eval "boot=nfs-source in_guest"
	step --named --needs build nvme-queues storage_pair nvme-queues
	step --named --needs build nvme-bulk storage_pair nvme-bulk
	step --named --needs build nvme-reclaim storage_pair nvme-reclaim
	step --named --needs build nfs-bulk with_kernel_source storage_pair nfs-bulk --disk "$work/linux.tar"
	on_amd64 stock_step --named --needs build blktests eval "boot=blktests in_guest"
	on_amd64 rust_step --named intree "$TOOLS/intree"
	on_amd64 rust_step --named --cargo host-tests "$TOOLS/check-host" tests
	stock_step --named --needs build quick quick
	on_amd64 rust_step --named arm64 arm64
}

quick_steps=(build fmt sources docs tools panic rebuild clippy host-tests quick)
long_steps=(walkthrough analyzer middleware ib-long iwarp-pair storage-pair newest testing-kernel dkms-build delays nfs-source
	nvme-queues nvme-bulk nvme-reclaim nfs-bulk intree arm64)

# A slice of what there is in a guest.
quick_suites=(rping 'abi framing.* bind.* listen.* accept.* destroy.*' 'scenarios active passive' selection drops module)
boot_suites[quick]="${quick_suites[*]%% *}"
quick() {
	boot=quick && in_guest "${quick_suites[@]}"
}

list_steps() {
	local i
	for i in "${!step_names[@]}"; do
		printf '%-14s%s%s\n' "${step_names[i]}" "${boot_suites[${step_names[i]}]:+ ${boot_suites[${step_names[i]}]}}" \
			"$([ -n "${step_chosen[i]}" ] || echo ' (only by name)')"
	done
}
