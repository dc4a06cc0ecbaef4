// SPDX-License-Identifier: GPL-2.0
/* The wire between the namespaces, with the frames of RoCE v2 that pass there. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <sys/prctl.h>

#include "hostile.h"
#include "wire.h"

#define ROCE_PORT 4791
#define V4_LEN 20
#define V6_LEN 40
#define UDP_LEN 8
#define BTH_LEN 12
#define DETH_LEN 8
#define FRAME_MAX (ETH_HLEN + V6_LEN + UDP_LEN + BTH_LEN + DETH_LEN + MAD_LEN + 4)
/* Largest number of messages that are sent and not counted as received yet. */
#define WINDOW 128

/* A socket that receives the frames of a protocol; none, if that is 0. */
static int packet_socket(bool far, uint16_t protocol)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol) };
	int fd;

	if (far)
		in_peer();
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	at.sll_ifindex = if_nametoindex(far ? "v1" : "v0");
	if (far)
		at_home();
	REQUIRE(fd >= 0 && bind(fd, (void *)&at, sizeof(at)) == 0);
	return fd;
}

int wire(bool far)
{
	int fd = packet_socket(far, ETH_P_ALL), size = 64 << 20;

	REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) == 0);
	return fd;
}

/* --- frames --- */

static uint32_t crc_of(uint32_t crc, const uint8_t *bytes, size_t len)
{
	static uint32_t table[256];

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			table[i] = i;
			for (int bit = 0; bit < 8; bit++)
				table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320 : table[i] >> 1;
		}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xff];
	return crc;
}

/* The invariant CRC of a packet from its IP header on: fields that a router changes count as ones (IBTA annex A17). */
static void put_icrc(uint8_t *ip, size_t header, size_t len)
{
	uint8_t masked[FRAME_MAX], *udp = masked + header;
	uint32_t crc;

	memcpy(masked, ip, len);
	if (header == V4_LEN) {
		masked[1] = masked[8] = masked[10] = masked[11] = 0xff;
	} else {
		masked[0] |= 0x0f;
		masked[1] = masked[2] = masked[3] = masked[7] = 0xff;
	}
	udp[6] = udp[7] = udp[UDP_LEN + 4] = 0xff;
	crc = crc_of(crc_of(~0u, (const uint8_t[8]){ [0 ... 7] = 0xff }, 8), masked, len);
	crc = htole32(~crc);
	memcpy(ip + len, &crc, 4);
}

static uint16_t checksum(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += get(bytes + i, 2);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static size_t frame_of(uint8_t *frame, bool far, const uint8_t *src, const uint8_t *dst, const uint8_t *mad)
{
	/* As tools/guest.d/guest-init sets them. */
	static const uint8_t macs[2][ETH_ALEN] = {
		{ 0x52, 0x54, 0, 0x72, 0x63, 1 }, { 0x52, 0x54, 0, 0x72, 0x63, 2 },
	};
	static uint32_t psn;
	bool v4 = is_v4(dst);
	size_t header = v4 ? V4_LEN : V6_LEN, datagram = UDP_LEN + BTH_LEN + DETH_LEN + MAD_LEN + 4;
	uint8_t *ip = frame + ETH_HLEN, *udp = ip + header, *bth = udp + UDP_LEN;

	memset(frame, 0, FRAME_MAX);
	memcpy(frame, macs[!far], ETH_ALEN);
	memcpy(frame + ETH_ALEN, macs[far], ETH_ALEN);
	put(frame + 12, v4 ? ETH_P_IP : ETH_P_IPV6, 2);
	if (v4) {
		ip[0] = 0x45;
		put(ip + 2, V4_LEN + datagram, 2);
		ip[6] = 0x40;
		ip[8] = 64;
		ip[9] = IPPROTO_UDP;
		memcpy(ip + 12, src + 12, 4);
		memcpy(ip + 16, dst + 12, 4);
		put(ip + 10, checksum(ip, V4_LEN), 2);
	} else {
		ip[0] = 0x60;
		put(ip + 4, datagram, 2);
		ip[6] = IPPROTO_UDP;
		ip[7] = 64;
		memcpy(ip + 8, src, 16);
		memcpy(ip + 24, dst, 16);
	}
	put(udp, 0xc0de, 2);
	put(udp + 2, ROCE_PORT, 2);
	put(udp + 4, datagram, 2);
	bth[0] = 0x64;				/* a datagram */
	put(bth + 2, 0xffff, 2);
	put(bth + 4, 1, 4);			/* to queue pair 1 */
	put(bth + 9, psn++, 3);
	put(bth + 12, 0x80010000, 4);
	put(bth + 16, 1, 4);
	memcpy(bth + BTH_LEN + DETH_LEN, mad, MAD_LEN);
	put_icrc(ip, header, header + datagram - 4);
	if (!v4) {
		/* IPv6 requires the checksum of UDP. */
		uint8_t pseudo[V6_LEN + FRAME_MAX] = { 0 };
		uint16_t sum;

		memcpy(pseudo, ip + 8, 32);
		put(pseudo + 32, datagram, 4);
		pseudo[39] = IPPROTO_UDP;
		memcpy(pseudo + V6_LEN, udp, datagram);
		sum = checksum(pseudo, V6_LEN + datagram);
		put(udp + 6, sum ?: 0xffff, 2);
	}
	return ETH_HLEN + header + datagram;
}

/* --- the forger --- */

/* Returns the number of messages that the device at the other end has received since "before". */
static uint64_t received(const struct forger *f)
{
	static const char *const kinds[] = { "req", "mra", "rej", "rep", "rtu", "dreq", "drep" };
	uint64_t sum = 0;
	char path[80];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/cm_rx_msgs/%s", DEVICE_AT(!f->far),
			 kinds[i]);
		sum += read_number(path);
	}
	return sum - f->before;
}

void forger_init(struct forger *f, bool far)
{
	*f = (struct forger){ .far = far, .fd = packet_socket(far, 0) };
	f->before = received(f);
}

void forge(struct forger *f, const uint8_t *src, const uint8_t *dst, const uint8_t *mad)
{
	uint8_t frame[FRAME_MAX];
	size_t len = frame_of(frame, f->far, src, dst, mad);

	while (send(f->fd, frame, len, 0) < 0)
		REQUIRE((errno == ENOBUFS || errno == EAGAIN) && usleep(100) == 0);
	f->sent++;
	if (f->sent % WINDOW == 0)
		for (int i = 0; i < 10000 * patience() && received(f) + WINDOW < f->sent; i++)
			usleep(500);
}

void forge_req(struct forger *f, struct forged_req *req, const char *first, uint32_t number)
{
	uint8_t source[16], mad[MAD_LEN];

	gid_of(source, first);
	put(source + 12, get(source + 12, 4) + number, 4);
	req->src = source;
	req_init(mad, req);
	forge(f, source, req->dst, mad);
}

pid_t flooder(bool far, void (*next)(struct forger *f, const struct hosts *h, uint32_t number), const struct hosts *h,
	      uint64_t sent)
{
	struct forger f;
	pid_t pid = child();

	if (pid) {
		wait_for(&shared->ready);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	forger_init(&f, far);
	for (uint32_t number = 0;; number++) {
		next(&f, h, number);
		if (f.sent == sent)
			sem_post(&shared->ready);
	}
}

int forger_lost(const struct forger *f)
{
	int64_t lost = 0;

	for (int i = 0; i < 5000 * patience() && (lost = f->sent - received(f)) > 0; i++)
		usleep(1000);
	return lost > 0 ? lost : 0;
}

/* --- messages that pass --- */

bool sniff(int fd, struct seen *seen)
{
	uint8_t frame[2048];
	struct sockaddr_ll from;
	socklen_t size;
	ssize_t len;

	while (size = sizeof(from), (len = recvfrom(fd, frame, sizeof(frame), 0, (void *)&from, &size)) > 0) {
		bool v4 = get(frame + 12, 2) == ETH_P_IP;
		uint8_t *ip = frame + ETH_HLEN, *udp = ip + (v4 ? V4_LEN : V6_LEN), *bth = udp + UDP_LEN;
		uint8_t *mad = bth + BTH_LEN + DETH_LEN;

		if (len < mad + MAD_LEN - frame || (!v4 && get(frame + 12, 2) != ETH_P_IPV6))
			continue;
		if (ip[v4 ? 9 : 6] != IPPROTO_UDP || get(udp + 2, 2) != ROCE_PORT || bth[0] != 0x64 || mad[1] != 7)
			continue;
		*seen = (struct seen){
			.outgoing = from.sll_pkttype == PACKET_OUTGOING,
			.attribute = get(mad + 16, 2),
			.local_id = get(mad + LOCAL_ID, 4),
		};
		if (v4) {
			seen->dst[10] = seen->dst[11] = 0xff;
			memcpy(seen->dst + 12, ip + 16, 4);
		} else {
			memcpy(seen->dst, ip + 24, 16);
		}
		return true;
	}
	return false;
}
