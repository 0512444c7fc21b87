/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What helpers.c offers. bindgen reads this header too, so that Rust's idea of a helper's type
 * is the C compiler's.
 */
#ifndef _ALTPIPE_HELPERS_H
#define _ALTPIPE_HELPERS_H

#include <linux/types.h>

struct inode;
struct page;
struct pipe_inode_info;
struct super_block;
struct user_struct;
struct wait_queue_head;

struct user_struct *altpipe_get_current_user(void);
void altpipe_inode_assume_dirty(struct inode *inode);
bool altpipe_try_get_page(struct page *page);
void altpipe_put_page(struct page *page);
void altpipe_copy_range(struct page *to, struct page *from, size_t offset, size_t len);
bool altpipe_pipe_is_direct(const struct pipe_inode_info *pipe);
bool altpipe_pipe_is_begun(const struct pipe_inode_info *pipe);
bool altpipe_pipe_has_readers(const struct pipe_inode_info *pipe);
bool altpipe_pipe_is_full(const struct pipe_inode_info *pipe);
struct wait_queue_head *altpipe_pipe_writers_queue(struct pipe_inode_info *pipe);
bool altpipe_sb_start_write_trylock(struct super_block *sb);
void altpipe_sb_end_write(struct super_block *sb);
void altpipe_wait_lock_irq(struct wait_queue_head *wait);
void altpipe_wait_unlock_irq(struct wait_queue_head *wait);

#endif
