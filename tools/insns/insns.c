// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts the instructions of a guest exactly, by address.
 *
 * A line of a stretch is "ADDRESS COUNT", for each block of code that ran.
 */
#include "plugin.h"

struct qemu_plugin_scoreboard;

struct counter {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
};

enum op { INLINE_ADD_U64 };

extern void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb,
		enum op op, struct counter counter, uint64_t add);
extern struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
extern void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int cpu);

/* Blocks that are told apart, by address and length; the rest is counted as address 0. */
#define BLOCKS (1u << 21)

static struct {
	uint64_t address;
	uint32_t insns;
	uint64_t before;	/* what its counter was when the stretch began */
} *blocks;
static struct qemu_plugin_scoreboard *score;
static unsigned int used = 1;

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
	FILE *file = open_stretch();

	(void)unused;
	for (unsigned int i = 0; i < BLOCKS; i++)
		if (count[i] != blocks[i].before)
			fprintf(file, "%" PRIx64 " %" PRIu64 "\n", blocks[i].address,
				count[i] - blocks[i].before);
	close_stretch(file);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	struct counter counter = { .score = score };

	(void)id;
	counter.offset = block_of(qemu_plugin_tb_vaddr(tb), (uint32_t)insns) * sizeof(uint64_t);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD_U64, counter, insns);
	watch_marks(tb, begin, end);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	if (!set_path(argc, argv))
		return 1;
	blocks = calloc(BLOCKS, sizeof(*blocks));
	score = qemu_plugin_scoreboard_new(BLOCKS * sizeof(uint64_t));
	if (!blocks || !score)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
