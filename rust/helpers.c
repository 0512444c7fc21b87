// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros that Rust cannot call, and the module's facts that the module!
 * macro has no key for. A helper costs a call: whatever has an exported function, or is a plain
 * load or store, is done in Rust instead.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pipe_fs_i.h>
#include <linux/sched/user.h>
#include <linux/wait.h>

#include "helpers.h"

struct user_struct *altpipe_get_current_user(void)
{
	return get_current_user();
}

/*
 * An inode that counts as dirty from birth is never put on a write-back list. A pipe has nothing
 * to write back.
 */
void altpipe_inode_assume_dirty(struct inode *inode)
{
	inode_state_assign_raw(inode, I_DIRTY);
}

bool altpipe_try_get_page(struct page *page)
{
	return try_get_page(page);
}

void altpipe_put_page(struct page *page)
{
	put_page(page);
}

/* Fills a page from its start. The range may go on in the pages that follow its first. */
void altpipe_copy_range(struct page *to, struct page *from, size_t offset, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t at = offset_in_page(offset + done);
		size_t count = min(len - done, PAGE_SIZE - at);

		memcpy_page(to, done, from + ((offset + done) >> PAGE_SHIFT), at, count);
		done += count;
	}
}

/*
 * The indices of a pipe are a union without a name, which bindgen does not see: so all of struct
 * pipe_inode_info is looked at from here. The first two hold for a pipe whose mutex the caller has,
 * or which is his alone; the others may be asked by anybody, as the next answer may differ.
 */

/* Whether no file leads to the pipe: it is the one by which sendfile(2) works, and has no lock. */
bool altpipe_pipe_is_direct(const struct pipe_inode_info *pipe)
{
	return !pipe->files;
}

/* Whether such a pipe has handed on a buffer in this call: each call finds its indices at zero. */
bool altpipe_pipe_is_begun(const struct pipe_inode_info *pipe)
{
	return pipe->tail != 0;
}

bool altpipe_pipe_has_readers(const struct pipe_inode_info *pipe)
{
	return READ_ONCE(pipe->readers) != 0;
}

bool altpipe_pipe_is_full(const struct pipe_inode_info *pipe)
{
	/* Both indices by one load, or the pair may be one that never was. */
	union pipe_index seen = { .head_tail = READ_ONCE(pipe->head_tail) };

	return pipe_full(seen.head, seen.tail, READ_ONCE(pipe->max_usage));
}

struct wait_queue_head *altpipe_pipe_writers_queue(struct pipe_inode_info *pipe)
{
	return &pipe->wr_wait;
}

bool altpipe_sb_start_write_trylock(struct super_block *sb)
{
	return sb_start_write_trylock(sb);
}

void altpipe_sb_end_write(struct super_block *sb)
{
	sb_end_write(sb);
}

void altpipe_wait_lock_irq(struct wait_queue_head *wait)
{
	spin_lock_irq(&wait->lock);
}

void altpipe_wait_unlock_irq(struct wait_queue_head *wait)
{
	spin_unlock_irq(&wait->lock);
}

MODULE_VERSION("0.1");
MODULE_ALIAS_FS("altpipefs");
