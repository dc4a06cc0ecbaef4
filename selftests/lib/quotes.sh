# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# These functions compare what a page quotes with what was seen. To be sourced, by a script that has set PAGES, the directory
# of the documentation, and QUOTE, the file with what was typed and printed.

# Lines that are left out: rping ends before it complains of what it waits for, or afterwards.
BY_CHANCE='^(wait for CONNECTED state|connect error|waiting for addr|rdma_get_cm_event: Bad file)'

# quote_on_page NAME: the lines that a page has for it.
quote_on_page() {
	sed -n "/^\.\. Output $1: /,/^\.\. End of the output\./s/^   //p" "$PAGES"/*.rst
}

# normal: the words, one in a line, with others for numbers that differ from run to run, for which columns of tables move.
# VARIES is a script of sed for those of a case.
normal() {
	sed -E -e 's/[[:space:]]+/ /g' -e 's/^\[ *[0-9]+\.[0-9]+\] //' \
		-e 's/\b20[0-9]{2}-[0-9-]+T[0-9:.]+Z/TIME/' -e 's/\b[67]\.[0-9]+\.[0-9]+\+deb[^ ]*/RELEASE/' \
		-e 's#\b([a-z_]+|python3)/[0-9]+( |$)#\1/N\2#g' -e 's/([0-9]|\]):[3-6][0-9]{4}\b/\1:PORT/g' \
		-e 's/\b[0-9]+(\.[0-9])?(us|ms|s|m)\b/AGE/g' -e 's/\b(INCOMPLETE|FAILED)\b/UNKNOWN/' -e "${VARIES:-}" | tr -s ' ' '\n' | sed '/^$/d'
}

# on_page NAME: whether the page has what was typed and printed. With ORDER=sort lines may come in any order.
on_page() {
	diff -U 8 --label "the page" <(quote_on_page "$1" | normal | ${ORDER:-cat}) --label "here" <(normal <"$QUOTE" | ${ORDER:-cat})
}
