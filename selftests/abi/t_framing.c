// SPDX-License-Identifier: GPL-2.0
/* The checks of a request before its command is looked at. */
#include <sys/uio.h>
#include <sys/wait.h>

#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static long header(int f, uint32_t cmd, uint16_t in, uint16_t out, size_t len)
{
	struct rdma_ucm_cmd_hdr h = { .cmd = cmd, .in = in, .out = out };
	char *buf = edge_fill(len, 0);

	memcpy(buf, &h, len < sizeof(h) ? len : sizeof(h));
	return cm_raw(f, buf, len);
}

TEST(framing, shorter_than_header)
{
	int f = fd();

	for (size_t len = 1; len < 8; len++)
		CHECK_ERR(EINVAL, header(f, 0, 0, 0, len));
}

TEST(framing, empty_write)
{
	CHECK_ERR(EINVAL, header(fd(), 0, 0, 0, 0));
}

TEST(framing, header_not_mapped)
{
	CHECK_ERR(EFAULT, cm_raw(fd(), unmapped(), 8));
	CHECK_ERR(EFAULT, cm_raw(fd(), NULL, 64));
}

TEST(framing, header_half_mapped)
{
	CHECK_ERR(EFAULT, cm_raw(fd(), edge_fill(4, 0), 8));
}

TEST(framing, unknown_commands)
{
	static const uint32_t commands[] = {
		CMD_END, CMD_END + 1, 64, 255, 256, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff,
	};
	int f = fd();

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		CHECK_ERR(EINVAL, header(f, commands[i], 0, 0, 8));
		CHECK_ERR(EINVAL, header(f, commands[i], 64, 400, 72));
	}
}

TEST(framing, unknown_command_before_length)
{
	/* Both are EINVAL; what counts is that a bad length is not read. */
	CHECK_ERR(EINVAL, header(fd(), CMD_END, 0xffff, 0, 8));
}

TEST(framing, get_option)
{
	int f = fd();

	CHECK_ERR(ENOSYS, header(f, RDMA_USER_CM_CMD_GET_OPTION, 0, 0, 8));
	CHECK_ERR(ENOSYS, header(f, RDMA_USER_CM_CMD_GET_OPTION, 64, 64, 72));
	/* The length is checked first. */
	CHECK_ERR(EINVAL, header(f, RDMA_USER_CM_CMD_GET_OPTION, 1, 0, 8));
}

TEST(framing, length_beyond_buffer)
{
	int f = fd();

	for (uint32_t cmd = 0; cmd < CMD_END; cmd++) {
		CHECK_ERR(EINVAL, header(f, cmd, 1, 0xffff, 8));
		CHECK_ERR(EINVAL, header(f, cmd, 400, 0xffff, 407));
		CHECK_ERR(EINVAL, header(f, cmd, 0xffff, 0xffff, 8));
	}
}

static const struct rdma_ucm_create_id *create_request(uint32_t *resp)
{
	static struct rdma_ucm_create_id req;

	req = (struct rdma_ucm_create_id){ .uid = 1, .response = ptr(resp), .ps = PS_TCP };
	return &req;
}

static long create_framed(int f, size_t trailing, uint16_t more_in, uint16_t out, int offset)
{
	struct rdma_ucm_cmd_hdr h = { RDMA_USER_CM_CMD_CREATE_ID, 24 + more_in, out };
	uint32_t *resp = edge_fill(4, 0xff);
	size_t len = 32 + more_in + trailing;
	char *buf = (char *)edge_fill(len + offset, 0xa5);
	long ret;

	memcpy(buf, &h, 8);
	memcpy(buf + 8, create_request(resp), 24);
	ret = cm_raw(f, buf, len);
	if (ret < 0)
		return ret;
	CHECK_EQ(len, ret);
	return *resp;
}

TEST(framing, trailing_bytes)
{
	/* More than the header says: all of it counts as written. */
	REQUIRE_ID(create_framed(fd(), 1, 0, 4, 0));
	REQUIRE_ID(create_framed(fd(), 4096, 0, 4, 0));
}

TEST(framing, longer_request)
{
	REQUIRE_ID(create_framed(fd(), 0, 1, 4, 0));
	REQUIRE_ID(create_framed(fd(), 0, 1000, 4, 0));
	REQUIRE_ID(create_framed(fd(), 7, 0xffff - 24, 4, 0));
}

TEST(framing, unaligned_request)
{
	for (int offset = 1; offset < 8; offset++)
		REQUIRE_ID(create_framed(fd(), 0, 0, 4, offset));
}

TEST(framing, larger_answer_buffer)
{
	REQUIRE_ID(create_framed(fd(), 0, 0, 5, 0));
	REQUIRE_ID(create_framed(fd(), 0, 0, 0xffff, 0));
}

TEST(framing, writev_in_one_piece)
{
	/*
	 * The file has no write_iter: each part of a vector is a request of its
	 * own, and the first is too short to be one.
	 */
	uint32_t resp = 0;
	struct rdma_ucm_cmd_hdr h = { RDMA_USER_CM_CMD_CREATE_ID, 24, 4 };
	struct iovec v[2] = {
		{ &h, 8 }, { (void *)create_request(&resp), 24 },
	};
	long ret = writev(fd(), v, 2);

	CHECK_EQ(-1, ret);
	CHECK_EQ(EINVAL, errno);
}

static int in_child(int f)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(-create_id(f, PS_TCP, 1));
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

TEST(framing, forked_child)
{
	int f = fd();

	CHECK_EQ(EACCES, in_child(f));
	REQUIRE_ID(create_id(f, PS_TCP, 1));
}

TEST(framing, changed_credentials)
{
	int f = fd();

	REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_EQ(0, seteuid(65534));
	CHECK_ERR(EACCES, create_id(f, PS_TCP, 1));
	/* Even before the length. */
	CHECK_ERR(EACCES, header(f, 0, 0, 0, 4));
}

TEST(framing, nothing_changed_by_errors)
{
	int f = fd();
	uint32_t first = REQUIRE_ID(create_id(f, PS_TCP, 1));

	for (uint32_t cmd = 0; cmd < CMD_END; cmd++) {
		header(f, cmd, 0xffff, 0xffff, 8);
		header(f, cmd, 0, 0, 5);
	}
	REQUIRE_EQ(first + 1, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}
