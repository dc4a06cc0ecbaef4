// SPDX-License-Identifier: GPL-2.0
/* The device node, sysfs, sysctl and netlink. */
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "abi.h"

#define BACKLOG "/proc/sys/net/rdma_ucm/max_backlog"

TEST(device, node)
{
	struct stat st;

	REQUIRE_EQ(0, stat(DEVICE, &st));
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(0666, st.st_mode & 07777);
	CHECK_EQ(10, major(st.st_rdev));
}

TEST(device, uevent)
{
	FILE *f = fopen("/sys/class/misc/rdma_cm/uevent", "r");
	bool name = false, mode = false;
	char line[100];

	REQUIRE(f);
	while (fgets(line, sizeof(line), f)) {
		name |= strcmp(line, "DEVNAME=infiniband/rdma_cm\n") == 0;
		mode |= strcmp(line, "DEVMODE=0666\n") == 0;
	}
	CHECK(name);
	CHECK(mode);
}

TEST(device, abi_version)
{
	const char *path = "/sys/class/misc/rdma_cm/abi_version";
	struct stat st;
	char text[8] = "";
	int fd;

	REQUIRE_EQ(0, stat(path, &st));
	CHECK_EQ(0444, st.st_mode & 07777);
	fd = open(path, O_RDONLY);
	REQUIRE(fd >= 0);
	CHECK_EQ(2, read(fd, text, sizeof(text)));
	CHECK_EQ(0, strcmp(text, "4\n"));
}

TEST(device, max_backlog_default)
{
	struct stat st;

	REQUIRE_EQ(0, stat(BACKLOG, &st));
	CHECK_EQ(0644, st.st_mode & 07777);
	CHECK_EQ(1024, read_number(BACKLOG));
}

static int put(const char *text)
{
	int fd = open(BACKLOG, O_WRONLY);
	int ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;

	close(fd);
	return ret;
}

TEST(device, max_backlog_range)
{
	CHECK_OK(put("0"));
	CHECK_EQ(0, read_number(BACKLOG));
	CHECK_OK(put("2147483647"));
	CHECK_EQ(2147483647, read_number(BACKLOG));
	CHECK_ERR(EINVAL, put("-1"));
	CHECK_ERR(EINVAL, put("2147483648"));
	CHECK_EQ(2147483647, read_number(BACKLOG));
	CHECK_OK(put("1024"));
}

TEST(device, netlink_chardev)
{
	struct chardev c = { 0 };
	struct stat st;

	REQUIRE_EQ(0, stat(DEVICE, &st));
	REQUIRE_OK(get_chardev(&c, -1));
	/* huge_encode_dev(): the same encoding as st_rdev. */
	CHECK_EQ(major(st.st_rdev), (c.devt >> 8) & 0xfff);
	CHECK_EQ(minor(st.st_rdev), (c.devt & 0xff) | ((c.devt >> 12) & 0xfff00));
	CHECK_EQ(4, c.abi);
	CHECK_EQ(0, strcmp(c.name, "rdma_cm"));
}

TEST(device, netlink_chardev_of_a_device)
{
	struct rdma_ucm_query_addr_resp addr;
	union addr src = addr4(ADDR4, 0);
	struct chardev c = { 0 };
	int fd = cm_open(O_RDWR);
	uint32_t id = REQUIRE_ID(create_id(fd, PS_TCP, 1));
	long index;

	REQUIRE_OK(bind_addr(fd, id, &src));
	REQUIRE_OK(query_addr(fd, id, &addr));
	index = device_index_of_guid(addr.node_guid);
	REQUIRE(index >= 0);
	CHECK_EQ(index, addr.ibdev_index);
	CHECK_ERR(EOPNOTSUPP, get_chardev(&c, index));
}

TEST(device, module_alias)
{
	/* "rdma-client-rdma_cm" is how ib_core finds the module. */
	if (is_rust())
		CHECK_EQ(0, system("modinfo -F alias rust_rdma_cm | grep -qx rdma-client-rdma_cm"));
	else
		CHECK_EQ(0, system("modinfo -F alias rdma_ucm | grep -qx rdma-client-rdma_cm"));
}

TEST(device, open_pins_module)
{
	const char *path = is_rust() ? "/sys/module/rust_rdma_cm/refcnt"
				     : "/sys/module/rdma_ucm/refcnt";
	long before = read_number(path);
	int fd = cm_open(O_RDWR);

	CHECK_EQ(before + 1, read_number(path));
	close(fd);
	for (int i = 0; i < 100 && read_number(path) != before; i++)
		usleep(10000);
	CHECK_EQ(before, read_number(path));
}

TEST(device, open_as_anybody)
{
	int fd;

	REQUIRE_EQ(0, setuid(65534));
	fd = cm_open(O_RDWR);
	REQUIRE_ID(create_id(fd, PS_TCP, 1));
}

TEST(device, read_is_EINVAL)
{
	char c;

	errno = 0;
	CHECK_EQ(-1, read(cm_open(O_RDWR), &c, 1));
	CHECK_EQ(EINVAL, errno);
}

TEST(device, lseek_is_ESPIPE)
{
	int fd = cm_open(O_RDWR);

	CHECK_EQ(-1, lseek(fd, 0, SEEK_SET));
	CHECK_EQ(ESPIPE, errno);
	CHECK_EQ(-1, pwrite(fd, "", 1, 0));
	CHECK_EQ(ESPIPE, errno);
}

TEST(device, readonly_write_is_EBADF)
{
	CHECK_ERR(EBADF, create_id(cm_open(O_RDONLY), PS_TCP, 1));
}

TEST(device, writeonly_write)
{
	REQUIRE_ID(create_id(cm_open(O_WRONLY), PS_TCP, 1));
}

TEST(device, ioctl_is_ENOTTY)
{
	extern int ioctl(int, unsigned long, ...);

	CHECK_EQ(-1, ioctl(cm_open(O_RDWR), 0x5401, NULL));
	CHECK_EQ(ENOTTY, errno);
}

TEST(device, mmap_is_ENODEV)
{
	extern void *mmap(void *, size_t, int, int, int, off_t);

	CHECK(mmap(NULL, 4096, 1, 1, cm_open(O_RDWR), 0) == (void *)-1);
	CHECK_EQ(ENODEV, errno);
}

TEST(device, poll_idle)
{
	int fd = cm_open(O_RDWR);
	struct pollfd p = { .fd = fd, .events = ~0 };

	/* Neither writable nor anything else. */
	CHECK_EQ(0, poll(&p, 1, 0));
	CHECK_EQ(0, p.revents);
	REQUIRE_ID(create_id(fd, PS_TCP, 1));
	CHECK_EQ(0, poll(&p, 1, 0));
}

TEST(device, poll_with_event)
{
	int fd = cm_open(O_RDWR);
	struct pollfd p = { .fd = fd, .events = ~0 };
	union addr dst = addr4(ADDR4, 7471);
	uint32_t id = REQUIRE_ID(create_id(fd, PS_TCP, 1));

	REQUIRE_OK(resolve_addr(fd, id, NULL, &dst, 2000));
	CHECK_EQ(1, poll(&p, 1, 5000));
	CHECK_EQ(POLLIN | POLLRDNORM, p.revents);
	NEED_EVENT(fd, EV_ADDR_RESOLVED, NULL);
	CHECK_EQ(0, poll(&p, 1, 0));
}
