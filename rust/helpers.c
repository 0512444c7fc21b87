// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros that Rust cannot call, and the module's facts that the module!
 * macro has no key for. A helper costs a call: whatever has an exported function, or is a plain
 * load or store, is done in Rust instead.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
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

void altpipe_put_page(struct page *page)
{
	put_page(page);
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
