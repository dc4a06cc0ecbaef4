// SPDX-License-Identifier: GPL-2.0
/*
 * cmstorm: storms of connections through librdmacm, timed.
 *
 * Without --qp no queue pairs are made, so that the connection manager alone is
 * timed. Nothing spins: the client and the server sleep in rdma_get_cm_event().
 */
#include "cmstorm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
"usage: cmstorm server|client|both|ids [option...]\n"
"\n"
"  server               listen and accept until killed\n"
"  client               connect, print one line of JSON\n"
"  both                 a server and a client in one process\n"
"  ids                  make ids, bind them to the address, destroy them, print one\n"
"                       line of JSON\n"
"\n"
"  -a, --address=A      of the server (client: required; server: any); of the ids\n"
"  -s, --source=A       the client's own address\n"
"  -p, --port=N         1 to 65535 (7471)\n"
"      --ports=N        serve, or connect to, so many ports from there on (1)\n"
"  -n, --connections=N  that are timed, or how many ids (1000)\n"
"  -f, --flight=N       at most so many at once (1)\n"
"  -o, --open=N         made before, and kept open (0)\n"
"      --dead=A         a host that does not answer\n"
"      --dead-count=N   connects to it that are under way meanwhile (300)\n"
"  -b, --backlog=N      of the server (1024)\n"
"      --accept-delay=N us before each accept (0)\n"
"      --resolve=N      ms for each step of resolution (2000)\n"
"      --pace=N         us from one start to the next (0: as --flight allows)\n"
"  -t, --seconds=N      give up then and count the rest as unfinished (0: never)\n"
"      --qpn=N          first number of the imagined QPs, 1 to 8388607 (1); those of a\n"
"                       server are 8388608 larger\n"
"  -q, --qp             with real QPs\n"
"      --numbers=N      name the numbers of N real QPs, one after the other, which are\n"
"                       made before\n"
"      --quantiles      report 101 quantiles of the times\n"
"      --hold           wait for a line of standard input before the end\n"
"      --steps          what --profile of tools/guest counts is each message of the\n"
"                       connection apart, what was before the first one too; the\n"
"                       server has this option, too\n"
"      --finish=WHAT    none, disconnect, destroy or close: what is timed in the\n"
"                       end (none)\n"
"  -h, --help\n";

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void die(const char *format, ...)
{
	va_list args;

	fputs("cmstorm: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void die_errno(const char *format, ...)
{
	int error = errno;
	va_list args;

	fputs("cmstorm: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(1);
}

void socket_address(const char *address, uint16_t port, struct sockaddr_storage *out)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found;
	char service[8];
	int error;

	snprintf(service, sizeof(service), "%u", port);
	error = getaddrinfo(address, service, &hints, &found);
	if (error)
		die("address %s: %s", address, gai_strerror(error));
	memcpy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

/* Longer than a message takes, and shorter than the time until it is sent again (us). */
#define STEP_TIME 1000

void end_step(const struct options *options)
{
	if (!options->steps)
		return;
	usleep(STEP_TIME);
	mark_end();
}

void next_step(const struct options *options)
{
	if (!options->steps)
		return;
	end_step(options);
	mark_begin();
}

/* A number between the two, or die. */
static int number(const char *name, const char *text, long low, long high)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < low || value > high)
		die("--%s is a number from %ld to %ld, not \"%s\"", name, low, high, text);
	return (int)value;
}

static enum finish finish_of(const char *text)
{
	static const char *const names[] = {
		[FINISH_NONE] = "none",
		[FINISH_DISCONNECT] = "disconnect",
		[FINISH_DESTROY] = "destroy",
		[FINISH_CLOSE] = "close",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i]))
			return i;
	die("--finish is none, disconnect, destroy or close, not \"%s\"", text);
}

/* Each id with a QP of its own costs files and memory, never more than this. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	enum { PORTS = 256, DEAD, DEAD_COUNT, ACCEPT_DELAY, RESOLVE, PACE, QPN, NUMBERS, QUANTILES,
	       HOLD, STEPS, FINISH };
	static const struct option longs[] = {
		{ "address", required_argument, NULL, 'a' },
		{ "source", required_argument, NULL, 's' },
		{ "port", required_argument, NULL, 'p' },
		{ "ports", required_argument, NULL, PORTS },
		{ "connections", required_argument, NULL, 'n' },
		{ "flight", required_argument, NULL, 'f' },
		{ "open", required_argument, NULL, 'o' },
		{ "dead", required_argument, NULL, DEAD },
		{ "dead-count", required_argument, NULL, DEAD_COUNT },
		{ "backlog", required_argument, NULL, 'b' },
		{ "accept-delay", required_argument, NULL, ACCEPT_DELAY },
		{ "resolve", required_argument, NULL, RESOLVE },
		{ "pace", required_argument, NULL, PACE },
		{ "seconds", required_argument, NULL, 't' },
		{ "qpn", required_argument, NULL, QPN },
		{ "qp", no_argument, NULL, 'q' },
		{ "numbers", required_argument, NULL, NUMBERS },
		{ "quantiles", no_argument, NULL, QUANTILES },
		{ "hold", no_argument, NULL, HOLD },
		{ "steps", no_argument, NULL, STEPS },
		{ "finish", required_argument, NULL, FINISH },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options o = {
		.port = 7471, .ports = 1, .connections = 1000, .flight = 1, .dead_count = 300,
		.backlog = 1024, .resolve_timeout = 2000, .qpn = 1,
	};
	const char *role;
	int c;

	while ((c = getopt_long(argc, argv, "a:s:p:n:f:o:b:t:qh", longs, NULL)) != -1) {
		switch (c) {
		case 'a': o.address = optarg; break;
		case 's': o.source = optarg; break;
		case 'p': o.port = number("port", optarg, 1, 65535); break;
		case PORTS: o.ports = number("ports", optarg, 1, 1024); break;
		case 'n': o.connections = number("connections", optarg, 0, 10000000); break;
		case 'f': o.flight = number("flight", optarg, 1, 1000000); break;
		case 'o': o.open = number("open", optarg, 0, 10000000); break;
		case DEAD: o.dead = optarg; break;
		case DEAD_COUNT: o.dead_count = number("dead-count", optarg, 1, 1000000); break;
		case 'b': o.backlog = number("backlog", optarg, 0, INT_MAX); break;
		case ACCEPT_DELAY: o.accept_delay = number("accept-delay", optarg, 0, 10000000); break;
		case RESOLVE: o.resolve_timeout = number("resolve", optarg, 1, 3600000); break;
		case PACE: o.pace = number("pace", optarg, 0, 1000000000); break;
		case 't': o.seconds = number("seconds", optarg, 0, 86400); break;
		case QPN: o.qpn = number("qpn", optarg, 1, 0x7fffff); break;
		case 'q': o.qp = true; break;
		case NUMBERS: o.numbers = number("numbers", optarg, 1, 100000); break;
		case QUANTILES: o.quantiles = true; break;
		case HOLD: o.hold = true; break;
		case STEPS: o.steps = true; break;
		case FINISH: o.finish = finish_of(optarg); break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (optind != argc - 1) {
		fputs(usage, stderr);
		return 2;
	}
	role = argv[optind];
	if (o.port + o.ports - 1 > 65535)
		die("there is no port %d", o.port + o.ports - 1);
	if (strcmp(role, "server") && strcmp(role, "client") && strcmp(role, "both") && strcmp(role, "ids"))
		die("\"%s\" is none of server, client, both and ids", role);
	if (o.steps && strcmp(role, "server") && (o.connections != 1 || o.finish != FINISH_DISCONNECT))
		die("--steps goes with --connections 1 and --finish disconnect");
	raise_limits();
	if (!strcmp(role, "server"))
		return run_server(&o);
	if (!strcmp(role, "ids")) {
		if (!o.address)
			die("ids need an --address of this host");
		return run_ids(&o);
	}
	if (!o.address)
		die("a client needs the server's --address");
	if (!strcmp(role, "both"))
		start_server(&o);
	return run_client(&o);
}
