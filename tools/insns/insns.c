// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts the instructions of a guest exactly, by address.
 *
 *   -plugin FILE,out=PATH
 *
 * Counted is what runs between two marks, which are eight-byte nops that no compiler
 * makes (see mark_begin() in tools/cmstorm/cmstorm.h). After each such stretch a line
 * "end N" and before it a line "ADDRESS COUNT" for each block of code that ran is
 * appended to PATH, N being the number of the stretch. One virtual CPU.
 *
 * Debian has no package with QEMU's header for plugins: what is used of its interface
 * (version 4, qemu-plugin.h) is declared here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;

struct counter {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
};

enum op { INLINE_ADD_U64 };
enum registers { NO_REGISTERS };

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
		void (*translate)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb,
		enum op op, struct counter counter, uint64_t add);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
		void (*executed)(unsigned int cpu, void *data), enum registers registers, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
extern struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
extern void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int cpu);

int qemu_plugin_version = 4;

/* Blocks that are told apart, by address and length; the rest is counted as address 0. */
#define BLOCKS (1u << 21)

static struct {
	uint64_t address;
	uint32_t insns;
	uint64_t before;	/* what its counter was when the stretch began */
} *blocks;
static struct qemu_plugin_scoreboard *score;
static unsigned int used = 1, stretch;
static const char *path;

static unsigned int block_of(uint64_t address, uint32_t insns)
{
	uint64_t hash = (address ^ (uint64_t)insns << 48) * UINT64_C(0x9e3779b97f4a7c15);
	unsigned int i = (unsigned int)(hash >> 43);

	for (;; i = (i + 1) & (BLOCKS - 1)) {
		if (!i)
			continue;
		if (blocks[i].address == address && blocks[i].insns == insns)
			return i;
		if (!blocks[i].insns)
			break;
	}
	if (used >= BLOCKS / 4 * 3)
		return 0;
	used++;
	blocks[i].address = address;
	blocks[i].insns = insns;
	return i;
}

static void begin(unsigned int cpu, void *unused)
{
	const uint64_t *count = qemu_plugin_scoreboard_find(score, cpu);

	(void)unused;
	for (unsigned int i = 0; i < BLOCKS; i++)
		blocks[i].before = count[i];
}

static void end(unsigned int cpu, void *unused)
{
	const uint64_t *count = qemu_plugin_scoreboard_find(score, cpu);
	FILE *file = fopen(path, "a");

	(void)unused;
	if (!file) {
		perror(path);
		exit(1);
	}
	for (unsigned int i = 0; i < BLOCKS; i++)
		if (count[i] != blocks[i].before)
			fprintf(file, "%" PRIx64 " %" PRIu64 "\n", blocks[i].address,
				count[i] - blocks[i].before);
	fprintf(file, "end %u\n", stretch++);
	fclose(file);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const uint8_t mark[7] = { 0x0f, 0x1f, 0x84, 0x00, 0x43, 0x4d, 0x53 };
	size_t insns = qemu_plugin_tb_n_insns(tb);
	struct counter counter = { .score = score };

	(void)id;
	counter.offset = block_of(qemu_plugin_tb_vaddr(tb), (uint32_t)insns) * sizeof(uint64_t);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD_U64, counter, insns);
	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t data[8];

		if (qemu_plugin_insn_size(insn) != sizeof(data) ||
		    qemu_plugin_insn_data(insn, data, sizeof(data)) != sizeof(data) ||
		    memcmp(data, mark, sizeof(mark)))
			continue;
		if (data[7] == 1)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, NO_REGISTERS, NULL);
		else if (data[7] == 2)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, end, NO_REGISTERS, NULL);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "insns: out=PATH is wanted\n");
		return 1;
	}
	path = strdup(argv[0] + 4);
	blocks = calloc(BLOCKS, sizeof(*blocks));
	score = qemu_plugin_scoreboard_new(BLOCKS * sizeof(uint64_t));
	if (!path || !blocks || !score)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
