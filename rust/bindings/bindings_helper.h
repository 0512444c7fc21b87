/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads. It writes only the names in the file allowlist: all else comes from the
 * kernel crate's own bindings.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/poll.h>
#include <linux/pseudo_fs.h>

#include "../helpers.h"
#include "../uapi/altpipe.h"

/*
 * Macros that end in a cast are invisible to bindgen. A constant of the right type shows it
 * their value; the Kbuild rule strips the prefix from the name.
 */
#define ALTPIPE_CONST(type, name) static const type ALTPIPE_CONST_##name = name

ALTPIPE_CONST(fmode_t, FMODE_READ);
ALTPIPE_CONST(fmode_t, FMODE_WRITE);
ALTPIPE_CONST(fmode_t, FMODE_NOWAIT);
ALTPIPE_CONST(fmode_t, FMODE_NONOTIFY_PERM);
ALTPIPE_CONST(fmode_t, FMODE_FSNOTIFY_MASK);
ALTPIPE_CONST(int, IOCB_NOWAIT);
ALTPIPE_CONST(int, IOCB_NOSIGNAL);

ALTPIPE_CONST(gfp_t, GFP_HIGHUSER);
ALTPIPE_CONST(gfp_t, __GFP_ACCOUNT);

ALTPIPE_CONST(__poll_t, EPOLLIN);
ALTPIPE_CONST(__poll_t, EPOLLOUT);
ALTPIPE_CONST(__poll_t, EPOLLERR);
ALTPIPE_CONST(__poll_t, EPOLLHUP);
ALTPIPE_CONST(__poll_t, EPOLLRDNORM);
ALTPIPE_CONST(__poll_t, EPOLLWRNORM);
ALTPIPE_CONST(__poll_t, EPOLLET);

ALTPIPE_CONST(unsigned int, ALTPIPE_IOC_VERSION);
ALTPIPE_CONST(unsigned int, ALTPIPE_IOC_CREATE);
ALTPIPE_CONST(unsigned int, ALTPIPE_IOC_GET_CONFIG);
ALTPIPE_CONST(unsigned int, ALTPIPE_IOC_GET_STATS);
