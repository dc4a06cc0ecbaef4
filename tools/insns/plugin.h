/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The common part of the plugins of QEMU in this directory.
 *
 *	-plugin FILE,out=PATH
 *
 * They look at what runs between two marks, which are eight-byte nops that no compiler makes (see
 * mark_begin() in tools/cmstorm/cmstorm.h). Such a stretch is appended to PATH when it ends, as
 * lines of numbers and a last line "end N", N being the number of the stretch. One virtual CPU.
 *
 * Debian has no package with QEMU's header for plugins: what is used of its interface (version 4,
 * qemu-plugin.h) is declared here.
 */
#ifndef INSNS_PLUGIN_H
#define INSNS_PLUGIN_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum registers { NO_REGISTERS, READ_REGISTERS };
enum access { READS = 1, WRITES };

typedef void executed_fn(unsigned int cpu, void *data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
		void (*translate)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, executed_fn *executed,
		enum registers registers, void *data);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
		executed_fn *executed, enum registers registers, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

int qemu_plugin_version = 4;

static const char *path;
static unsigned int stretch;

/* Sets the path that the arguments name; returns false if they do not. */
static inline bool set_path(int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "out=PATH is wanted\n");
		return false;
	}
	path = strdup(argv[0] + 4);
	return path;
}

/* Opens the file for the lines of a stretch. */
static inline FILE *open_stretch(void)
{
	FILE *file = fopen(path, "a");

	if (!file) {
		perror(path);
		exit(1);
	}
	return file;
}

static inline void close_stretch(FILE *file)
{
	fprintf(file, "end %u\n", stretch++);
	fclose(file);
}

/* Calls these functions, which may read registers, when an instruction of the block that is a mark is executed. */
static inline void watch_marks(const struct qemu_plugin_tb *tb, executed_fn *begin, executed_fn *end)
{
	static const uint8_t mark[7] = { 0x0f, 0x1f, 0x84, 0x00, 0x43, 0x4d, 0x53 };

	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t data[8];

		if (qemu_plugin_insn_size(insn) != sizeof(data) ||
		    qemu_plugin_insn_data(insn, data, sizeof(data)) != sizeof(data) ||
		    memcmp(data, mark, sizeof(mark)))
			continue;
		if (data[7] == 1)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, READ_REGISTERS, NULL);
		else if (data[7] == 2)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, end, READ_REGISTERS, NULL);
	}
}

/* Returns the last instruction of a block. */
static inline struct qemu_plugin_insn *last_insn(const struct qemu_plugin_tb *tb)
{
	return qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);
}

/* Returns the address behind a block. */
static inline uint64_t block_end(const struct qemu_plugin_tb *tb)
{
	const struct qemu_plugin_insn *last = last_insn(tb);

	return qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
}

#endif
