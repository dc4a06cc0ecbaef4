# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# Functions and settings that the scripts in tools/ share. To be sourced.
#
# Everything that is expensive to make (the Debian sysroot, the prepared kernel
# tree, guest images) lives below $CACHE, each in a directory whose name holds a
# hash of what it was made from. It is made under a temporary name and renamed
# when complete, so that an interrupted run leaves nothing that looks usable.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
TOOLS=$REPO/tools
CACHE=${RUST_RDMA_CM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rust_rdma_cm}
mkdir -p "$CACHE"
CACHE=$(cd "$CACHE" && pwd -P)

# An ordinary user's PATH does not lead there.
PATH=$PATH:/usr/sbin:/sbin

# The release whose kernel and user space the module is built and run with.
SUITE=trixie
# The kernel's series and release, where they are asked for: tools/release chooses.
SERIES=${RUST_RDMA_CM_SERIES:-}
RELEASE=${RUST_RDMA_CM_RELEASE:-}

PROG=${0##*/}

die() {
	echo "$PROG: $*" >&2
	exit 1
}

# The architecture of the kernel and of the guest, as Debian names it; that of compilers and of QEMU is amd64.
# KERNEL_MAKE is what the kernel's make has to know of it and of the compiler that Debian built the kernel with.
choose_arch() {
	case $1 in
	amd64 | x86_64)
		DEB_ARCH=amd64 MACHINE=x86_64
		KERNEL_MAKE=(ARCH=x86_64)
		;;
	arm64 | aarch64)
		DEB_ARCH=arm64 MACHINE=aarch64
		KERNEL_MAKE=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
		;;
	*) die "architecture $1: there are amd64 and arm64" ;;
	esac
	KERNEL_MAKE+=("CC=$MACHINE-linux-gnu-gcc-14" HOSTCC=x86_64-linux-gnu-gcc-14)
	export RUST_RDMA_CM_ARCH=$DEB_ARCH
}
choose_arch "${RUST_RDMA_CM_ARCH:-amd64}"

# only_on amd64 WHAT: the end of this on another architecture, for which WHAT does not exist.
only_on() {
	[ "$DEB_ARCH" = "$1" ] || die "$2 is for $1 only"
}

# show_help: what the first lines of a tool say.
show_help() {
	awk 'NR <= 2 || NR == 3 && /^#$/ || /^# shellcheck/ { next }
		!/^#/ { exit }
		{ sub(/^# ?/, ""); print }' "$0"
}

# A tool that has more to say has a usage() of its own.
if [[ ${1:-} =~ ^(-h|--help)$ ]] && ! declare -F usage >/dev/null; then
	show_help
	exit
fi

# export_version: the version and the commit of this tree, which the module and rdma-cm say of themselves.
export_version() {
	export RDMA_CM_VERSION RDMA_CM_COMMIT
	RDMA_CM_VERSION=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$REPO/debian/changelog")
	RDMA_CM_COMMIT=$(git -C "$REPO" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
}

is_root() {
	[ "$(id -u)" -eq 0 ]
}

# hash_of TEXT...: a short key for the name of a cache directory.
hash_of() {
	printf '%s\n' "$@" | sha256sum | cut -c1-12
}

# with_lock NAME COMMAND...: one run at a time of COMMAND per cache and NAME.
with_lock() {
	local name=$1
	shift
	(
		if ! flock -n 9; then
			echo "$PROG: waiting for another run that makes $name" >&2
			flock 9
		fi
		"$@" 9>&-
	) 9>"$CACHE/.lock-$name"
}

# step TITLE COMMAND...: run COMMAND with its output in a log, show that it is
# alive and how long it took. The log is shown when it fails.
step() {
	local title=$1 log start pid status=0 now next=10
	shift
	log=$(mktemp "$CACHE/.step-XXXXXX")
	start=$(date +%s)
	[ -t 2 ] || printf '==> %s\n' "$title" >&2
	# In a process group of its own, so that an interrupt ends all of it.
	set -m
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	# shellcheck disable=SC2064 # the values of now
	trap "kill -TERM -- -$pid 2>/dev/null; rm -f '$log'; exit 130" INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.1
		now=$(($(date +%s) - start))
		if [ -t 2 ]; then
			printf '\r\033[K==> %s  %d s  %.60s' "$title" "$now" \
				"$(tail -n 1 "$log" | tr -d '\r\033')" >&2
		elif [ "$now" -ge "$next" ]; then
			printf '    %s: %d s\n' "$title" "$now" >&2
			next=$((now + 10))
		fi
	done
	wait "$pid" || status=$?
	trap - INT TERM
	now=$(($(date +%s) - start))
	[ ! -t 2 ] || printf '\r\033[K==> %s\n' "$title" >&2
	if [ "$status" -eq 0 ]; then
		printf '    done in %d s\n' "$now" >&2
	else
		printf '    FAILED after %d s (status %d); the end of its output:\n' \
			"$now" "$status" >&2
		tail -n 40 "$log" | sed 's/^/    | /' >&2
	fi
	rm -f "$log"
	return "$status"
}

# ns_root COMMAND...: COMMAND as root in a mount namespace of its own, so that no
# mount outlives it. An ordinary user becomes root of a user namespace, with the
# subordinate ids of /etc/subuid as the other users of the sysroot.
ns_root() {
	(exec_ns_root "$@")
}

# exec_ns_root COMMAND...: the same instead of this shell. A signal to that reaches COMMAND.
exec_ns_root() {
	if is_root; then
		exec unshare --mount --propagation private -- "$@"
	else
		exec unshare --map-root-user --map-auto --mount --propagation private -- "$@"
	fi
}

# copy_sources DIR: the sources of this repository. The files built in DIR stay, so that they are
# built again only where their sources have changed. A build may go on here, whose files come and go.
copy_sources() {
	local built=(.git target doc '.tmp_*' '*.tmp' '.rebuild-*' '*.o' '*.s' '*.ko' '*.mod' '*.mod.c' '.*.cmd' '.*.d'
		'*.rmeta' modules.order Module.symvers bindings_generated.rs
		layout_generated.h .layout.checked)
	mkdir -p "$1"
	"$TOOLS/buildroot" rsync -a --delete "${built[@]/#/--exclude=}" "$REPO/" "$1/"
}

# checked_kdir DIR: the path of the prepared kernel tree DIR. If it is none, this ends with a line
# that says what it lacks.
checked_kdir() {
	local dir
	dir=$(cd "$1" 2>/dev/null && pwd -P) || die "KDIR=$1: no such directory"
	[ -e "$dir/include/config/auto.conf" ] && [ -e "$dir/include/config/kernel.release" ] ||
		die "KDIR=$1: no prepared kernel tree: no include/config/ (make modules_prepare)"
	grep -q '^CONFIG_RUST=y' "$dir/include/config/auto.conf" ||
		die "KDIR=$1: this kernel is not configured with CONFIG_RUST=y"
	grep -q '^CONFIG_INFINIBAND=[ym]' "$dir/include/config/auto.conf" ||
		die "KDIR=$1: this kernel is not configured with CONFIG_INFINIBAND"
	[ -e "$dir/rust/libkernel.rmeta" ] ||
		die "KDIR=$1: no metadata of the kernel's Rust crates (rust/*.rmeta), which Debian's headers lack"
	echo "$dir"
}

# need_space GB WHAT: the end of this if the cache has less room.
need_space() {
	local free
	free=$(df --output=avail -k "$CACHE" | tail -n 1)
	[ "$free" -ge $(($1 * 1024 * 1024)) ] ||
		die "$2 needs $1 GB in $CACHE, where $((free / 1024)) MB are free (RUST_RDMA_CM_CACHE= is another place)"
}

# remove_tree DIR: also where an ordinary user's sysroot has files of other users.
remove_tree() {
	[ ! -e "$1" ] || ns_root rm -rf --one-file-system "$1"
}

# debian_uri [-security]: where this host's apt takes its Debian archive from, or
# nothing if it is not a Debian host.
debian_uri() {
	local codename='' id=''
	# shellcheck disable=SC1091
	id=$(. /etc/os-release && echo "${ID:-}")
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	[ "$id" = debian ] || return 0
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -v a="$codename${1:-}" -v b="stable${1:-}" -v c="oldstable${1:-}" \
			'($1 == a || $1 == b || $1 == c) && !seen++ { print $2 }'
}

# archive_get PATH FILE: that file of the archive, as FILE. If it cannot be had, why not, in one line.
archive_get() {
	local uri why
	uri=$(debian_uri)
	uri=${uri:-http://deb.debian.org/debian/}
	why=$(/usr/lib/apt/apt-helper -o Acquire::Retries=1 -o Acquire::http::Timeout=15 download-file \
		"${uri%/}/$1" "$2" 2>&1) || {
		echo "no answer from the Debian archive at $uri (network, proxy?):" \
			"$(sed -n -e 's/^  *\([A-Z].*\)/\1/p' -e 's/^E: *//p' <<<"$why" | head -n 1)"
		return 1
	}
}

# debian_system VARIANT ARCH SUITE ROOT PACKAGE...: these packages of a Debian suite, and all that they need, as a
# variant of mmdebstrap. Only what is extracted may be of another architecture than the host's.
debian_system() {
	local variant=$1 arch=$2 suite=$3 root=$4 opts proxy
	shift 4
	opts=(
		"--variant=$variant" --architectures="$arch" --include="$(IFS=, && echo "$*")"
		--aptopt='Acquire::Check-Valid-Until "false"'
		--aptopt='Acquire::Languages "none"'
		--aptopt='APT::Install-Recommends "false"'
		--dpkgopt='path-exclude=/usr/share/man/*'
		--dpkgopt='path-exclude=/usr/share/locale/*'
		--dpkgopt='path-exclude=/usr/share/doc/*'
		--dpkgopt='path-include=/usr/share/doc/rdma-core/tests/*'
		--dpkgopt='force-unsafe-io'
	)
	proxy=$(apt-config shell P Acquire::http::Proxy | sed -n "s/^P='\(.*\)'$/\1/p")
	[ -z "$proxy" ] || opts+=(--aptopt="Acquire::http::Proxy \"$proxy\"")
	if is_root; then
		mmdebstrap --mode=root "${opts[@]}" "$suite" "$root" "deb $(debian_uri) $suite main"
	else
		TMPDIR=/var/tmp mmdebstrap --mode=unshare --format=tar "${opts[@]}" "$suite" - \
			"deb $(debian_uri) $suite main" |
			ns_root tar -xp -C "$root" --numeric-owner --exclude='./dev/*'
	fi
}

# unpack_packages SUITE ROOT PACKAGE...: these packages of a Debian suite, and all that they
# need, for programs of a guest. Only unpacked: nothing here is ever configured or booted.
unpack_packages() {
	local root=$2 link
	debian_system extract "$DEB_ARCH" "$@"
	# A merged /usr, which packages that are only unpacked need not bring.
	for link in bin sbin lib lib64; do
		[ -e "$root/$link" ] || ln -s "usr/$link" "$root/$link"
	done
	mkdir -p "$root"/{dev,proc,sys,tmp,run,mnt}
}

# unpack_package PACKAGE[=VERSION] DIR: a package of the sysroot's archive, without what it needs. The sysroot
# stays as it is.
unpack_package() {
	local dir=$2 tmp=$2.tmp opts
	rm -rf "$tmp"
	mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial"
	opts=(-o "Dir::State::lists=$tmp/lists" -o "Dir::Cache=$tmp/cache" -o APT::Sandbox::User=root)
	(
		cd "$tmp"
		"$TOOLS/buildroot" apt-get "${opts[@]}" update
		# shellcheck disable=SC2016 # the sysroot's shell expands it
		"$TOOLS/buildroot" sh -c 'package=$1 && shift &&
			apt-get "$@" download "$package" && dpkg-deb -x ./*.deb package' - "$1" "${opts[@]}"
	)
	mv -T "$tmp/package" "$dir"
	rm -rf "$tmp"
}

# image_of ROOT FILE: what unpack_packages made, as a file system.
image_of() {
	BUILDROOT_BIND=$(dirname "$1") "$TOOLS/buildroot" mksquashfs "$1" "$2" -comp lz4 \
		-all-root -no-progress -wildcards -e 'dev/*'
}
