// SPDX-License-Identifier: GPL-2.0
/* The settings of an administrator in configfs, and their effects. */
#include <sys/stat.h>

#include "abi.h"

#define ROOT "/sys/kernel/config/rdma_cm"
#define PORT ROOT "/rxe0/ports/1"
#define MODE PORT "/default_roce_mode"
#define TOS PORT "/default_roce_tos"

static long put(const char *path, const char *text)
{
	int f = open(path, O_WRONLY);
	long n;

	if (f < 0)
		return -errno;
	n = write(f, text, strlen(text));
	if (n < 0)
		n = -errno;
	close(f);
	return n;
}

static long get(const char *path, char *text, size_t size)
{
	int f = open(path, O_RDONLY);
	long n;

	if (f < 0)
		return -errno;
	n = read(f, text, size - 1);
	if (n < 0)
		n = -errno;
	else
		text[n] = 0;
	close(f);
	return n;
}

static void expect(int line, const char *path, const char *want)
{
	char text[64] = "";
	long n = get(path, text, sizeof(text));

	check_eq(__FILE__, line, path, strlen(want), n);
	if (strcmp(text, want) != 0)
		fail(__FILE__, line, "%s: want %s, got %s", path, want, text);
}
#define EXPECT(path, want) expect(__LINE__, path, want)

static void begin(void)
{
	if (access(ROOT, F_OK) != 0)
		skip("no " ROOT);
	rmdir(ROOT "/rxe0");
	REQUIRE_EQ(0, mkdir(ROOT "/rxe0", 0755));
}

static void end(void)
{
	CHECK_EQ(0, rmdir(ROOT "/rxe0"));
}

TEST(configfs, directories)
{
	struct stat st;

	begin();
	CHECK_EQ(0, stat(MODE, &st));
	CHECK_EQ(0100644, st.st_mode);
	CHECK_EQ(0, stat(TOS, &st));
	CHECK_EQ(0100644, st.st_mode);
	CHECK_EQ(-1, stat(ROOT "/rxe0/ports/2", &st));
	CHECK_ERR(EEXIST, mkdir(ROOT "/rxe0", 0755) ? -errno : 0);
	CHECK_ERR(ENODEV, mkdir(ROOT "/rxe9", 0755) ? -errno : 0);
	CHECK_ERR(EPERM, mkdir(ROOT "/rxe0/x", 0755) ? -errno : 0);
	CHECK_ERR(EPERM, mkdir(ROOT "/rxe0/ports/2", 0755) ? -errno : 0);
	CHECK_ERR(EPERM, rmdir(ROOT "/rxe0/ports") ? -errno : 0);
	CHECK_ERR(EPERM, rmdir(PORT) ? -errno : 0);
	end();
	CHECK_EQ(-1, stat(MODE, &st));
	for (int i = 0; i < 50; i++) {
		REQUIRE_EQ(0, mkdir(ROOT "/rxe0", 0755));
		end();
	}
}

TEST(configfs, mode)
{
	begin();
	EXPECT(MODE, "RoCE v2\n");
	CHECK_EQ(7, put(MODE, "RoCE v2"));
	CHECK_EQ(8, put(MODE, "RoCE v2\n"));
	/* rxe has nothing else. */
	CHECK_ERR(EINVAL, put(MODE, "IB/RoCE v1"));
	CHECK_ERR(EINVAL, put(MODE, "RoCE v1"));
	CHECK_ERR(EINVAL, put(MODE, "RoCE v2\n\n"));
	CHECK_ERR(EINVAL, put(MODE, "\n"));
	CHECK_ERR(EINVAL, put(MODE, "2"));
	EXPECT(MODE, "RoCE v2\n");
	end();
}

TEST(configfs, tos_text)
{
	begin();
	EXPECT(TOS, "0\n");
	CHECK_EQ(3, put(TOS, "105"));
	EXPECT(TOS, "105\n");
	CHECK_EQ(5, put(TOS, "0x1f\n"));
	EXPECT(TOS, "31\n");
	CHECK_EQ(3, put(TOS, "010"));
	EXPECT(TOS, "8\n");
	CHECK_EQ(3, put(TOS, "+9\n"));
	EXPECT(TOS, "9\n");
	CHECK_ERR(ERANGE, put(TOS, "256"));
	CHECK_ERR(ERANGE, put(TOS, "99999999999999999999"));
	CHECK_ERR(EINVAL, put(TOS, "-1"));
	CHECK_ERR(EINVAL, put(TOS, "x"));
	CHECK_ERR(EINVAL, put(TOS, "1 "));
	CHECK_ERR(EINVAL, put(TOS, "\n"));
	EXPECT(TOS, "9\n");
	CHECK_EQ(1, put(TOS, "0"));
	end();
	/* The directory goes, the value stays. */
	begin();
	EXPECT(TOS, "0\n");
	end();
}

static int traffic_class(int fd, uint32_t id)
{
	struct { struct rdma_ucm_query_path_resp h; struct ib_path_rec_data d[2]; } r = { 0 };

	REQUIRE_OK(query(fd, id, RDMA_USER_CM_QUERY_PATH, &r, sizeof(r)));
	REQUIRE_EQ(1, r.h.num_paths);
	/* In a PathRecord on the wire: behind lids, flow label and hop limit. */
	return ((const uint8_t *)r.d[0].path_rec)[48];
}

TEST(configfs, tos_of_paths)
{
	int f = cm_open(O_RDWR | O_NONBLOCK);
	union addr a = addr4(ADDR4, 7490);
	uint32_t before, after, own;
	uint8_t tos = 0x30;

	begin();
	before = routed_client(f, 1, &a);
	own = REQUIRE_ID(create_id(f, PS_TCP, 3));
	REQUIRE_OK(set_option(f, own, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	REQUIRE_EQ(2, put(TOS, "72"));
	after = routed_client(f, 2, &a);
	route_id(f, own, &a);
	CHECK_EQ(0, traffic_class(f, before));
	CHECK_EQ(72, traffic_class(f, after));
	CHECK_EQ(0x30, traffic_class(f, own));
	CHECK_EQ(1, put(TOS, "0"));
	end();
}

TEST(configfs, device_goes)
{
	char text[64];

	if (access(ROOT, F_OK) != 0)
		skip("no " ROOT);
	REQUIRE_EQ(0, system("[ ! -e /sys/class/net/vt0 ] || ip link del vt0; "
			     "ip link add vt0 type veth peer name vt1 && ip link set vt0 up && "
			     "rdma link add rxet type rxe netdev vt0"));
	REQUIRE_EQ(0, mkdir(ROOT "/rxet", 0755));
	REQUIRE_EQ(1, put(ROOT "/rxet/ports/1/default_roce_tos", "7"));
	REQUIRE_EQ(0, run_within(10, "rdma link del rxet"));
#define T ROOT "/rxet/ports/1/default_roce_tos"
#define M ROOT "/rxet/ports/1/default_roce_mode"
	CHECK_ERR(ENODEV, get(T, text, sizeof(text)));
	CHECK_ERR(ENODEV, get(M, text, sizeof(text)));
	CHECK_ERR(ENODEV, put(T, "1"));
	CHECK_ERR(EINVAL, put(T, "x"));
	CHECK_ERR(ENODEV, put(M, "RoCE v2"));
	CHECK_ERR(ENODEV, put(M, "x"));
	/* Another one of the same name is a new one. */
	REQUIRE_EQ(0, system("rdma link add rxet type rxe netdev vt0"));
	EXPECT(T, "0\n");
	CHECK_EQ(1, put(T, "1"));
	CHECK_EQ(0, system("ip link del vt0"));
	CHECK_EQ(0, rmdir(ROOT "/rxet"));
}
