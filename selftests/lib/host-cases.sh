# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# The cases of a script that runs on the host. To be sourced. Sets n and failed, for the end of the script, which sets
# "output" to the file with what a case has printed.

n=0 failed=0

# result STATUS NAME [LINE...]: the line of a case; where it has failed, after these lines and the end of its output.
result() {
	local status=$1 name=$2
	shift 2
	n=$((n + 1))
	if [ "$status" -eq 0 ]; then
		echo "ok $n - $name"
	else
		[ $# -eq 0 ] || printf '# %s\n' "$@"
		tail -n 40 "$output" | sed 's/^/# | /'
		echo "not ok $n - $name"
		failed=1
	fi
}
