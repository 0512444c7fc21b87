/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The user ABI of altpipe.
 *
 * /dev/altpipe makes pipes as pipe2(2) does and lets the caller choose, pipe
 * by pipe, how they behave. What it makes are ordinary FIFO descriptors: read,
 * write, poll, FIONREAD and the rest work as pipe(7) says. The calls below are
 * what a pipe(2) descriptor lacks.
 *
 * Structures grow at their end. A caller states the size it was compiled with;
 * fields that one side does not know read as zero.
 */
#ifndef _UAPI_ALTPIPE_H
#define _UAPI_ALTPIPE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Answer of ALTPIPE_IOC_VERSION; moves only when an existing call changes. */
#define ALTPIPE_ABI_VERSION	1

/* f_type of fstatfs(2) on a pipe of altpipe: the letters "altp". */
#define ALTPIPE_SUPER_MAGIC	0x616c7470

/**
 * struct altpipe_create - argument of ALTPIPE_IOC_CREATE
 * @size: size of this structure in bytes, as the caller knows it
 * @flags: O_CLOEXEC, O_NONBLOCK and O_DIRECT as for pipe2(2), or zero
 * @fd: out: fd[0] is the read end, fd[1] the write end
 * @config: address of the pipe's config, a text such as
 *	"tail_update=wait_lock,exclusive=0", not terminated; zero for none
 * @config_len: length of that text in bytes; zero takes the defaults in
 *	/sys/class/misc/altpipe/knobs as they stand
 * @pad: must be zero
 *
 * What the text does not name is taken from the current defaults.
 */
struct altpipe_create {
	__u32		size;
	__u32		flags;
	__s32		fd[2];
	__aligned_u64	config;
	__u32		config_len;
	__u32		pad;
};

/**
 * struct altpipe_text - a buffer of the caller's that receives a text
 * @buf: address of the buffer
 * @len: room in the buffer in bytes
 * @pad: must be zero
 */
struct altpipe_text {
	__aligned_u64	buf;
	__u32		len;
	__u32		pad;
};

/**
 * struct altpipe_stats - argument of ALTPIPE_IOC_GET_STATS
 * @size: size of this structure in bytes, as the caller knows it
 * @pad: must be zero
 * @pipes_created: pipes made; in the counters of one pipe always 1
 * @reads: read calls that delivered data
 * @writes: write calls that took data
 * @bytes_read: bytes delivered to readers
 * @bytes_written: bytes taken from writers
 * @reader_sleeps: times a reader went to sleep for data
 * @writer_sleeps: times a writer went to sleep for room
 * @reader_wakes: sleeping readers that a wake-up reached
 * @writer_wakes: sleeping writers that a wake-up reached
 * @wasted_wakes: of reader_wakes and writer_wakes together, those after which
 *	the sleeper found nothing to do
 * @handovers: wake-ups that a woken task passed on to the next of its kind
 * @merges: writes whose first bytes went into the page of an earlier write
 * @pages_pool: filled slots whose page was one that the pipe had kept
 * @pages_unlocked: filled slots whose page was allocated before the lock
 * @pages_locked: filled slots whose page was allocated under the lock
 * @time_updates: inode time updates that a read or a write caused
 * @tail_locks: wait queue spinlock sections that advanced the tail
 * @reader_notifies: times the rule had the readers' queue woken
 * @writer_notifies: times the rule had the writers' queue woken
 * @sync_notifies: of both, those that carried the sync hint
 * @freeze_checks: time updates that first asked whether the file system is frozen
 */
struct altpipe_stats {
	__u32	size;
	__u32	pad;
	__u64	pipes_created;
	__u64	reads;
	__u64	writes;
	__u64	bytes_read;
	__u64	bytes_written;
	__u64	reader_sleeps;
	__u64	writer_sleeps;
	__u64	reader_wakes;
	__u64	writer_wakes;
	__u64	wasted_wakes;
	__u64	handovers;
	__u64	merges;
	__u64	pages_pool;
	__u64	pages_unlocked;
	__u64	pages_locked;
	__u64	time_updates;
	__u64	tail_locks;
	__u64	reader_notifies;
	__u64	writer_notifies;
	__u64	sync_notifies;
	__u64	freeze_checks;
};

/* The type letter of all calls; unlisted in the kernel's ioctl-number.rst. */
#define ALTPIPE_IOC_TYPE	0xB9

/* On /dev/altpipe: returns ALTPIPE_ABI_VERSION. */
#define ALTPIPE_IOC_VERSION	_IO(ALTPIPE_IOC_TYPE, 0)

/*
 * On /dev/altpipe: makes a pipe. Fails with EINVAL (unknown flag, bad config,
 * a structure shorter than this one, pad not zero), E2BIG (a longer structure
 * with a non-zero tail), EFAULT, EMFILE, ENFILE or ENOMEM; nothing is left
 * open then.
 */
#define ALTPIPE_IOC_CREATE	_IOWR(ALTPIPE_IOC_TYPE, 1, struct altpipe_create)

/* On an end: returns the pipe's capacity in bytes, as fcntl(2) F_GETPIPE_SZ. */
#define ALTPIPE_IOC_GET_SIZE	_IO(ALTPIPE_IOC_TYPE, 2)

/*
 * On an end: changes the capacity to at least as many bytes as the argument
 * says (by value) and returns what it became, as fcntl(2) F_SETPIPE_SZ. Fails
 * with EINVAL (above 2^31), EPERM (above the limit, or over the quota and
 * growing), EBUSY (more is in the pipe) or ENOMEM.
 */
#define ALTPIPE_IOC_SET_SIZE	_IO(ALTPIPE_IOC_TYPE, 3)

/*
 * On an end: writes the pipe's config to the buffer and returns its length;
 * the text is not terminated. ERANGE if the buffer is too short.
 */
#define ALTPIPE_IOC_GET_CONFIG	_IOWR(ALTPIPE_IOC_TYPE, 4, struct altpipe_text)

/* On an end: fills in the pipe's counters since it was made. */
#define ALTPIPE_IOC_GET_STATS	_IOWR(ALTPIPE_IOC_TYPE, 5, struct altpipe_stats)

#endif /* _UAPI_ALTPIPE_H */
