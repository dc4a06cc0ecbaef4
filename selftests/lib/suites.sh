# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# The registry of suites, suites/index, for scripts of guests and of the host. To be sourced; sets, by name of a suite,
# what that file says of it:
#
#	SUITES		all names, in its order
#	SUITE_SCRIPT	the path of its script
#	SUITE_OVER	the device that it uses ("ib", "iwarp"), for OVER in its environment, or nothing
#	SUITE_SECONDS	how long it may take
#	SUITE_STEP	the step of tools/check that it belongs to
#	SUITE_NEEDS	what the directory that the guest shares must have, in words
#	SUITE_FLAGS	its flags, in words

SUITES=()
declare -A SUITE_SCRIPT=() SUITE_OVER=() SUITE_SECONDS=() SUITE_STEP=() SUITE_NEEDS=() SUITE_FLAGS=()

read_suites() {
	local dir=$1 line name script seconds step needs flags
	while IFS= read -r line; do
		case $line in '' | '#'* | [[:blank:]]*) continue ;; esac
		read -r name script seconds step needs flags <<<"$line"
		SUITES+=("$name")
		SUITE_SCRIPT[$name]=$dir/${script%@*}.sh
		SUITE_OVER[$name]=''
		[[ $script != *@* ]] || SUITE_OVER[$name]=${script#*@}
		SUITE_SECONDS[$name]=$seconds
		SUITE_STEP[$name]=$step
		needs=${needs//,/ } flags=${flags//,/ }
		SUITE_NEEDS[$name]=${needs#-}
		SUITE_FLAGS[$name]=${flags#-}
	done <"$dir/index"
}
read_suites "$(cd "$(dirname "${BASH_SOURCE[0]}")/../suites" && pwd)"

# is_suite WORD: whether it is one, with arguments or without.
is_suite() {
	[ -n "${SUITE_SCRIPT[${1%% *}]:-}" ]
}

# has_flag SUITE FLAG
has_flag() {
	[[ " ${SUITE_FLAGS[$1]} " == *" $2 "* ]]
}
