/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Conformance tests of /dev/infiniband/rdma_cm with raw write(): what each file
 * of tests shares.
 *
 * Each TEST runs in a process of its own with a time limit, so that a hang or a
 * crash costs one case. After each one, the harness waits for the counts of ids
 * and open files to be what they were.
 *
 * Functions that issue commands return what the kernel said: 0 or a positive
 * value, or a negative errno.
 */
#ifndef ABI_H
#define ABI_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>

#define DEVICE "/dev/infiniband/rdma_cm"
/* OVER_IB: for the programs of ../walk, of IPoIB (../lib/softib.sh). */
#ifdef OVER_IB
#define ADDR4 "10.78.0.1"	/* of the interface of ib_a */
#define ADDR6 "fd78::1"
#define FAR4 "10.78.0.2"	/* of that of ib_b */
#define FAR6 "fd78::2"
#define ABSENT4 "10.78.0.250"	/* there, but of nobody */
#else
#define ADDR4 "10.0.0.1"	/* of the netdev below rxe0 */
#define ADDR6 "fd00::1"
#define FAR4 "10.0.0.2"	/* of that of rxe1 */
#define FAR6 "fd00::2"
#define ABSENT4 "10.0.0.250"
#endif

#define PS_IPOIB 0x0002
#define PS_IB 0x013f
#define PS_TCP 0x0106
#define PS_UDP 0x0111

/* Commands and events that the headers of a release may lack. */
#define CMD_RESOLVE_IB_SERVICE 23
#define CMD_WRITE_CM_EVENT 24
#define CMD_END 25

/* enum ib_qp_type */
#define QPT_RC 2
#define QPT_UC 3
#define QPT_UD 4
#define QPT_XRC_INI 9
#define QPT_XRC_TGT 10

enum event {
	EV_ADDR_RESOLVED, EV_ADDR_ERROR, EV_ROUTE_RESOLVED, EV_ROUTE_ERROR,
	EV_CONNECT_REQUEST, EV_CONNECT_RESPONSE, EV_CONNECT_ERROR, EV_UNREACHABLE,
	EV_REJECTED, EV_ESTABLISHED, EV_DISCONNECTED, EV_DEVICE_REMOVAL,
	EV_MULTICAST_JOIN, EV_MULTICAST_ERROR, EV_ADDR_CHANGE, EV_TIMEWAIT_EXIT,
};

#ifndef AF_IB
#define AF_IB 27
#endif

struct sockaddr_ib {
	unsigned short family;
	uint16_t pkey;		/* big endian, as all that follows */
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t sid;
	uint64_t sid_mask;
	uint64_t scope_id;	/* host order */
};

union addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
	struct sockaddr_storage ss;
};

/* --- harness.c: tests and checks --- */

struct test {
	const char *name;
	void (*fn)(void);
	int seconds;
	struct test *next;
};

void test_register(struct test *t);

#define TEST_LIMIT(topic, what, limit)						\
	static void topic##_##what(void);					\
	__attribute__((constructor)) static void topic##_##what##_register(void)\
	{									\
		static struct test t = {					\
			.name = #topic "." #what,				\
			.fn = topic##_##what,					\
			.seconds = limit,					\
		};								\
		test_register(&t);						\
	}									\
	static void topic##_##what(void)
#define TEST(topic, what) TEST_LIMIT(topic, what, 30)

/* Print a diagnostic line; fail() also marks the test as failed. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void stop(void);
const char *errno_name(long err);

bool check_err(const char *file, int line, const char *what, int want, long got);
bool check_eq(const char *file, int line, const char *what, uint64_t want, uint64_t got);
bool check_mem(const char *file, int line, const char *what,
	       const void *want, const void *got, size_t len);

/* The call returns -want, or 0 if want is 0. */
#define CHECK_ERR(want, call) check_err(__FILE__, __LINE__, #call, want, call)
#define CHECK_OK(call) CHECK_ERR(0, call)
#define CHECK_EQ(want, value) check_eq(__FILE__, __LINE__, #value, want, value)
#define CHECK_MEM(want, got, len) check_mem(__FILE__, __LINE__, #got, want, got, len)
#define CHECK(condition) CHECK_EQ(true, !!(condition))
/* Like the macro before, and the test ends here on failure. */
#define REQUIRE_OK(call) do { if (!CHECK_OK(call)) stop(); } while (0)
#define REQUIRE_EQ(want, value) do { if (!CHECK_EQ(want, value)) stop(); } while (0)
#define REQUIRE(condition) do { if (!CHECK(condition)) stop(); } while (0)
/* The call gives an id; the test ends here if not. */
#define REQUIRE_ID(call) ({							\
	long id_ = (call);							\
	if (id_ < 0) {								\
		check_err(__FILE__, __LINE__, #call, 0, id_);			\
		stop();								\
	}									\
	(uint32_t)id_;								\
})

/* A command of the shell that is ended after so many seconds. */
int run_within(int seconds, const char *command);

/* Returns the expected value where the module differs on purpose: see difference.c. */
int differs(const char *key);

/* --- kernel.c: what the programs run on --- */

/* Returns true if the Rust module is tested. */
bool is_rust(void);

/* Returns the factor by which everything may take longer: more than once on a kernel with all the checks. */
int patience(void);

/* The number in a file, which may be hexadecimal, or a negative errno. */
long read_number(const char *path);

/* --- clock.c: the clock, from any moment on --- */

uint64_t now_ns(void);
uint64_t now_ms(void);

/* --- watch.c: the time that a guest loses --- */

/* Returns the time, from which on slack_ms() counts what the guest loses. */
uint64_t begin_ms(void);
/* Returns how much later than its time something may come: a little, and what the guest has lost on a busy host. */
long slack_ms(void);

/* --- namespace.c: network namespaces --- */

/* Moves this thread to the namespace "peer". */
void in_peer(void);
/* Moves it back to where it was. */
void at_home(void);

/* --- memory.c: buffers at the edge of what is mapped --- */

/* A buffer of size bytes whose end is the end of what is mapped. */
void *edge(size_t size);
/* Like the function before, but filled with a byte. */
void *edge_fill(size_t size, uint8_t byte);
/* Copies the contents. */
void *edge_copy(const void *data, size_t size);
/* An address that is not mapped at all. */
void *unmapped(void);
/* A buffer that can be read and not written. */
void *readonly(size_t size);
/* Nothing of these is used any more. */
void unmap_all(void);

/* --- command.c: one function per command --- */

int cm_open(int flags);
long cm_raw(int fd, const void *buf, size_t len);
/* A request of in bytes that ends where the mapping ends. */
long cm_cmd(int fd, uint32_t cmd, const void *req, uint16_t in, uint16_t out);
uint64_t ptr(const void *p);

union addr addr4(const char *ip, uint16_t port);
union addr addr6(const char *ip, uint16_t port);
union addr addr_ib(uint64_t sid, uint64_t mask);
size_t addr_size(const union addr *a);
uint16_t addr_port(const union addr *a);
/* The IPv6 addresses of the netdev below rxe0; skip() if it has none. */
union addr global6(uint16_t port);
union addr linklocal6(uint16_t port);
/* A host of the same network that is not there. */
union addr absent4(uint16_t port);

long create_id(int fd, uint16_t ps, uint64_t uid);
long create_id_type(int fd, uint16_t ps, uint8_t qp_type, uint64_t uid);
/* The number of events that were read from the id. */
long destroy_id(int fd, uint32_t id);
long bind_ip(int fd, uint32_t id, const union addr *a);
long bind_addr(int fd, uint32_t id, const union addr *a);
long bind4(int fd, uint32_t id, const char *ip, uint16_t port);
long resolve_ip(int fd, uint32_t id, const union addr *src, const union addr *dst, int ms);
long resolve_addr(int fd, uint32_t id, const union addr *src, const union addr *dst, int ms);
long resolve_route(int fd, uint32_t id, int ms);
long listen_id(int fd, uint32_t id, int backlog);
long connect_id(int fd, uint32_t id, const struct rdma_ucm_conn_param *p);
long accept_id(int fd, uint32_t id, uint64_t uid, const struct rdma_ucm_conn_param *p);
long reject_id(int fd, uint32_t id, const void *data, uint8_t len, uint8_t reason);
long disconnect_id(int fd, uint32_t id);
long notify_id(int fd, uint32_t id, uint32_t event);
long set_option(int fd, uint32_t id, uint32_t level, uint32_t name,
		const void *value, uint32_t len);
/* Tunes an id to send nothing early and to park nothing, as C. */
void as_c(int fd, uint32_t id);
long init_qp_attr(int fd, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *attr);
long query_route(int fd, uint32_t id, struct rdma_ucm_query_route_resp *resp);
long query(int fd, uint32_t id, uint32_t option, void *resp, uint16_t out);
long query_addr(int fd, uint32_t id, struct rdma_ucm_query_addr_resp *resp);
/* The number of the port of the address that an id has. */
uint16_t bound_port(int fd, uint32_t id);
long query_gid(int fd, uint32_t id, struct rdma_ucm_query_addr_resp *resp);
long migrate_id(int to, uint32_t id, int from);

/* One GET_EVENT, then one that waits with poll at most ms. */
long get_event(int fd, struct rdma_ucm_event_resp *ev);
long wait_event(int fd, struct rdma_ucm_event_resp *ev, int ms);
/* The next event is this one, or the test ends. */
void need_event(const char *file, int line, int fd, enum event want,
		struct rdma_ucm_event_resp *ev);
#define NEED_EVENT(fd, want, ev) need_event(__FILE__, __LINE__, fd, want, ev)
const char *event_name(uint32_t event);
/* Addresses, and then a route, are resolved, or the test ends. */
void need_addr(const char *file, int line, int fd, uint32_t id, const union addr *src, const union addr *dst);
#define NEED_ADDR(fd, id, src, dst) need_addr(__FILE__, __LINE__, fd, id, src, dst)
void need_route(const char *file, int line, int fd, uint32_t id);
#define NEED_ROUTE(fd, id) need_route(__FILE__, __LINE__, fd, id)
/* No event comes for that long. */
bool no_event(int fd, int ms);

/* --- pair.c: a connection on the loopback path, step by step --- */

struct pair {
	uint16_t ps;			/* port space: PS_TCP if none is given */
	uint8_t qp_type;		/* for PS_IB */
	uint8_t listener_type;		/* the one that fits if none is given */
	int sfd, cfd;			/* server's and client's channel */
	uint32_t listener, server, client;
	uint64_t listener_uid, server_uid, client_uid;
	union addr addr;		/* of the listener, with its port */
	struct rdma_ucm_conn_param cparam, sparam;
	struct rdma_ucm_event_resp request, response;
};

struct rdma_ucm_conn_param conn_param(void);
uint32_t fake_qpn(void);
/* Each goes through all the steps before it, and ends the test if one fails. */
void pair_resolved_addr(struct pair *p, const union addr *a);
void pair_listen(struct pair *p, const union addr *a);
void pair_routed(struct pair *p, const union addr *a);
void pair_requested(struct pair *p, const union addr *a);
void pair_accepted(struct pair *p, const union addr *a);
void pair_established(struct pair *p, const union addr *a);
/* A client of its own channel, resolved up to the route. */
void route_id(int fd, uint32_t id, const union addr *dst);
uint32_t routed_client(int fd, uint64_t uid, const union addr *dst);
union addr any_port4(void);

/* --- t_removal.c: a device that can go, over a network interface of its own --- */

#define PLUG_ADDR "10.78.0.1"
void plug(void);
void unplug(void);	/* the device */
void unwire(void);	/* the interface */

/* --- footprint.c --- */

/*
 * The visible effects of an id on others, beside its own answers: what may be bound beside it, how
 * "rdma resource" shows the ids of this process, and whether an event can be read. A call that
 * fails leaves all of it alone.
 */
struct footprint {
	uint64_t bind, shown, events;
};

/* To be taken of an id of fd; nothing changes by it. */
void footprint(struct footprint *f, int fd, uint32_t id);
/* Returns the difference, or NULL. */
const char *footprint_differs(const struct footprint *a, const struct footprint *b);

/* --- netlink.c --- */

/* The sum of what "rdma resource" shows as cm_id; negative errno. */
long count_cm_ids(void);
/* A sum of how the ids of this process are shown; 0 if none are. */
uint64_t shown_cm_ids(void);
struct chardev {
	uint64_t devt;
	uint64_t abi;
	char name[64];
};
int get_chardev(struct chardev *c, int dev_index);
/* The index that ib_core has for a device, or a negative error; a GUID is one of QUERY. */
long device_index(const char *name);
long device_index_of_guid(uint64_t node_guid);

#endif
