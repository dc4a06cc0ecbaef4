# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The steps of tools/check: how they are declared and chosen, how several run at a time, and what is counted and
# printed of them. To be sourced after tools/env.sh, by a script that has set
#
#	work	a directory of this run alone
#	logs	where the whole output of each step stays: STEP.log
#	lanes	how many steps may run at a time
#	busy	the descriptor of a lock of "logs", if there is one
#
# and that declares its steps, and then calls choose_steps and run_steps.

step_names=() step_kinds=() step_after=() step_needs=() step_commands=() step_chosen=() step_beside=()
# Steps that are there, but not in this run: the reason by name.
declare -A left_out=()
# The suites that make a step known by another name: a suite is one of a boot.
declare -A step_of_suite=()
# The suites that were chosen of a boot, if not all.
declare -A chosen_suites=()

# step [--cargo] [--waits | --idle] [--after STEP]... [--needs STEP]... [--named] NAME COMMAND...: declare one.
#   --cargo   its cases are those of "cargo test", not KTAP
#   --waits   it waits more than it computes, and runs beside the others where several run at a time; of
#             such steps one at a time
#   --idle    it only computes, and nobody's time depends on it: it runs beside the others with what they leave of
#             the processors; of such steps one at a time
#   --after   it begins when that one has ended
#   --needs   and is not run at all if that one failed
#   --named   only for who asks for it by name
step() {
	local kind=ktap beside='' after='' needs='' chosen=1
	while :; do
		case $1 in
		--cargo) kind=cargo ;;
		--waits | --idle) beside=${1#--} ;;
		--after) after+=" $2" && shift ;;
		--needs) needs+=" $2" && shift ;;
		--named) chosen='' ;;
		*) break ;;
		esac
		shift
	done
	step_names+=("$1") step_kinds+=("$kind") step_after+=("$after") step_needs+=("$needs")
	step_chosen+=("$chosen") step_beside+=("$beside")
	step_commands+=("$(printf '%q ' "${@:2}")")
}

# not_here REASON [OPTION...] NAME COMMAND...: this step is not for this run.
not_here() {
	local reason=$1
	shift
	while :; do
		case $1 in
		--after | --needs) shift 2 ;;
		--*) shift ;;
		*) break ;;
		esac
	done
	left_out[$1]=$reason
}

# choose_steps [WORD...]: those, else all but the ones for which somebody has to ask. A word is the name of a step or
# of a suite of a boot. Nothing is run if one of them is neither.
choose_steps() {
	local word i found
	[ $# -gt 0 ] || return 0
	step_chosen=("${step_names[@]/*/}")
	for word; do
		found=''
		for i in "${!step_names[@]}"; do
			if [ "$word" = "${step_names[i]}" ]; then
				step_chosen[i]=1 found=1
				chosen_suites[$word]=''
			fi
		done
		[ -z "$found" ] || continue
		if [ -n "${step_of_suite[$word]:-}" ]; then
			for i in "${!step_names[@]}"; do
				if [ "${step_of_suite[$word]}" = "${step_names[i]}" ]; then
					# Not one more of a boot of which all were chosen.
					[ -n "${step_chosen[i]}" ] && [ -z "${chosen_suites[${step_names[i]}]}" ] ||
						chosen_suites[${step_names[i]}]+=" $word"
					step_chosen[i]=1
				fi
			done
		elif [ -n "${left_out[$word]:-}" ]; then
			die "step $word is not run here: ${left_out[$word]}"
		else
			die "unknown step $word: there are ${step_names[*]}, and of their suites ${!step_of_suite[*]}"
		fi
	done
}

# --- counting ---

# counts KIND FILE: "passed failed skipped" of the output of a step so far.
#   ktap   lines "ok", "not ok", "# SKIP"
#   cargo  what "cargo test" prints
counts() {
	case $1 in
	ktap)
		awk '/^ok / { if (/ # SKIP/) s++; else p++ } /^not ok / { f++ }
			END { print p + 0, f + 0, s + 0 }' "$2"
		;;
	cargo)
		awk '/^test .* \.\.\. ok$/ { p++ } /^test .* \.\.\. FAILED$/ { f++ }
			/^test .* \.\.\. ignored/ { s++ } END { print p + 0, f + 0, s + 0 }' "$2"
		;;
	esac
}

# Prints the lines of a failed step that a person needs to see.
failures() {
	case $1 in
	ktap)
		# Each failed case with the lines that go before it, and what no case
		# explains.
		awk '/^# / { if (n < 40) line[n++] = $0; next }
			/^not ok / { for (i = 0; i < n; i++) print line[i]; print }
			/^(not )?ok / { n = 0; next }
			/^KTAP version|^1\.\./ { next }
			{ print }' "$2" | tail -n 200
		;;
	cargo)
		# The end of the output of each step of the host that failed, the table, and which.
		grep -E '^    \| ' "$2" | tail -n 120 || :
		grep -E '^test .* FAILED$|^[a-z]+ +FAILED ' "$2"
		;;
	esac | sed 's/^/    /'
}

# one NAME COMMAND...: a command as a case. With status 77 it is skipped, and its last line says why.
one() {
	local name=$1 out status=0
	shift
	out=$("$@" 2>&1) || status=$?
	if [ "$status" -eq 0 ]; then
		echo "ok - $name"
	elif [ "$status" -eq 77 ]; then
		echo "ok - $name # SKIP ${out##*$'\n'}"
		status=0
	else
		printf '%s\n' "$out" | tail -n 40 | sed 's/^/# | /'
		echo "not ok - $name (status $status)"
	fi
	return "$status"
}

# --- running them ---

passed=0 failed=0 skipped=0
# By process id of its process group: the number of the step. By that: when it began.
declare -A running=() step_began=()
# The outcome of a step that has ended, by name: "passed" or "failed".
declare -A outcome=()

stop_steps() {
	local pid
	# Each with all that it has started: a guest, say.
	for pid in "${!running[@]}"; do
		kill -- -"$pid" 2>/dev/null
	done
}

# may_start NUMBER: whether what it waits for has ended, as far as that is in this run.
may_start() {
	local before i
	for before in ${step_after[$1]} ${step_needs[$1]}; do
		for i in "${!step_names[@]}"; do
			[ "${step_names[i]}" != "$before" ] || [ -z "${step_chosen[i]}" ] ||
				[ -n "${outcome[$before]:-}" ] || return
		done
	done
}

# at_once: how many steps with a guest may run at a time.
at_once() {
	echo $((lanes > 1 ? lanes + 1 : 1))
}

# has_lane NUMBER: whether one more step may run now: in a lane, or as the one of its kind that is beside them.
has_lane() {
	local pid kind computing=0
	local -A beside=()
	for pid in "${!running[@]}"; do
		kind=${step_beside[${running[$pid]}]}
		if [ "$lanes" -gt 1 ] && [ -n "$kind" ] && [ -z "${beside[$kind]:-}" ]; then
			beside[$kind]=1
		else
			computing=$((computing + 1))
		fi
	done
	kind=${step_beside[$1]}
	if [ "$lanes" -gt 1 ] && [ -n "$kind" ] && [ -z "${beside[$kind]:-}" ]; then
		return
	fi
	[ "$kind" != idle ] || [ "$lanes" -eq 1 ] || return
	[ "$computing" -lt "$lanes" ]
}

# start_step NUMBER: in a process group of its own. Times are seconds: those that passed, and those of processors.
start_step() {
	local name=${step_names[$1]} missing
	for missing in ${step_needs[$1]}; do
		[ "${outcome[$missing]:-}" = failed ] || continue
		echo "not ok - $name: not run, for $missing failed" >"$logs/$name.log"
		end_step "$1" 1
		return
	done
	: >"$logs/$name.log"
	: >"$work/$name.boots"
	set -m
	(
		set +m
		# A process that outlives the run does not keep the next one from DIR.
		[ -z "${busy:-}" ] || exec {busy}>&-
		[ "${step_beside[$1]}" != idle ] || renice -n 19 -p "$BASHPID" >/dev/null
		TIMEFORMAT='%R %U %S'
		export GUEST_BOOTS=$work/$name.boots GUEST_LANES=$(at_once)
		{ time eval "${step_commands[$1]}" >"$logs/$name.log" 2>&1 </dev/null; } 2>"$work/$name.time"
	) &
	running[$!]=$1
	set +m
	step_began[$1]=$SECONDS
}

# end_step NUMBER STATUS: all that is printed of a step, at once.
end_step() {
	local name=${step_names[$1]} kind=${step_kinds[$1]} status=$2 log p f s cpu=0 seconds=0
	log=$logs/$name.log
	rm -f "$work/why"
	read -r p f s < <(counts "$kind" "$log")
	if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
		# It failed and no case says so.
		f=1
		{
			echo "    status $status; the end of the output:"
			tail -n 40 "$log" | sed 's/^/    | /'
		} >"$work/why"
	elif [ $((p + f + s)) -eq 0 ]; then
		f=1
		{
			echo "    no test was run; the end of the output:"
			tail -n 40 "$log" | sed 's/^/    | /'
		} >"$work/why"
	elif [ "$f" -gt 0 ]; then
		failures "$kind" "$log" >"$work/why"
	fi
	seconds=$((SECONDS - ${step_began[$1]:-$SECONDS}))
	[ ! -s "$work/$name.time" ] || cpu=$(awk 'END { printf "%.0f", $2 + $3 }' "$work/$name.time")
	say "==> $name"
	outcome[$name]=passed
	if [ "$f" -gt 0 ]; then
		outcome[$name]=failed
		cat "$work/why"
		{
			echo "$name:"
			tail -n 12 "$work/why"
		} >>"$work/failed"
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "    $p passed, $f failed, $s skipped in $seconds s"
	echo "$name|$seconds|$cpu|$(cat "$work/$name.boots" 2>/dev/null | wc -l)|$((p + f + s))" >>"$work/rows"
	# Its suites, where run.sh has them: "# NAME: P passed, F failed, S skipped, T s".
	sed -n -E 's/^# ([a-z0-9-]+): ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped, ([0-9]+) s$/\1 \2 \3 \4 \5/p' \
		"$log" | awk '$1 != "totals" { row[++n] = "- " $1 "|" $5 "|||" $2 + $3 + $4 }
			END { if (n > 1) for (i = 1; i <= n; i++) print row[i] }' >>"$work/rows"
}

# say TEXT: a line of its own, also where progress is shown.
say() {
	[ ! -t 1 ] || printf '\r\033[K'
	echo "$*"
}

show_progress() {
	local pid text='' p f s
	for pid in "${!running[@]}"; do
		read -r p f s < <(counts "${step_kinds[${running[$pid]}]}" "$logs/${step_names[${running[$pid]}]}.log")
		text+="${text:+; }${step_names[${running[$pid]}]} $((SECONDS - step_began[${running[$pid]}])) s,"
		text+=" $p passed, $f failed"
	done
	if [ -t 1 ]; then
		printf '\r\033[K==> %.*s' 110 "$text"
	else
		echo "    $((SECONDS - began)) s: $text"
	fi
}

# run_steps: in the order of their declaration, as far as what they wait for lets them.
run_steps() {
	local i pid status waiting next=60 ended=0
	began=$SECONDS
	: >"$work/rows"
	while :; do
		waiting=''
		for i in "${!step_names[@]}"; do
			[ -n "${step_chosen[i]}" ] && [ -z "${outcome[${step_names[i]}]:-}" ] &&
				[ -z "${step_began[$i]:-}" ] || continue
			waiting=1
			has_lane "$i" || continue
			! may_start "$i" || start_step "$i"
		done
		[ -n "$waiting" ] || [ "${#running[@]}" -gt 0 ] || break
		if [ "${#running[@]}" -eq 0 ]; then
			# Steps that cannot be started any more have failed; or there is nothing.
			[ "${#outcome[@]}" -gt "$ended" ] || die "steps wait for each other"
			ended=${#outcome[@]}
			continue
		fi
		sleep 0.3
		for pid in "${!running[@]}"; do
			! kill -0 "$pid" 2>/dev/null || continue
			status=0
			wait "$pid" || status=$?
			i=${running[$pid]}
			unset "running[$pid]"
			end_step "$i" "$status"
		done
		if [ "${#running[@]}" -gt 0 ] && { [ -t 1 ] || [ $((SECONDS - began)) -ge "$next" ]; }; then
			show_progress
			[ $((SECONDS - began)) -lt "$next" ] || next=$((SECONDS - began + 60))
		fi
	done
	[ ! -t 1 ] || printf '\r\033[K'
	report
}

# The table of the steps, which tools/results reads.
table() {
	awk -F'|' -v seconds="$((SECONDS - began))" '
		{ name[NR] = $1; for (i = 2; i <= 5; i++) value[NR, i] = $i }
		$1 !~ /^- / { cpu += $3; boots += $4; cases += $5 }
		function rule() { print "==================  =======  =========  =====  =====" }
		END {
			rule()
			printf "%-18s  %7s  %9s  %5s  %5s\n", "step", "seconds", "CPU", "boots", "cases"
			rule()
			for (i = 1; i <= NR; i++)
				printf "%-18s  %7s  %9s  %5s  %5s\n", name[i], value[i, 2], value[i, 3],
					value[i, 4], value[i, 5]
			rule()
			printf "%-18s  %7d  %9d  %5d  %5d\n", "in all", seconds, cpu, boots, cases
			rule()
		}' "$work/rows" | sed 's/ *$//'
}

report() {
	if [ ! -s "$work/rows" ]; then
		echo "no step was run"
		failed=$((failed + 1))
	fi
	table | tee "$logs/table.rst"
	# Again at the end, where it is not lost among the steps after it.
	if [ -e "$work/failed" ]; then
		echo "what failed:"
		cat "$work/failed"
	fi
	echo "checked in $((SECONDS - began)) s; the output of each step is in $logs"
	echo "$passed passed, $failed failed, $skipped skipped"
}
