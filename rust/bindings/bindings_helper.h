/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads. It writes only the names in the file allowlist: all else comes from the
 * kernel crate's own bindings.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/poll.h>
#include <linux/pseudo_fs.h>
#include <linux/splice.h>

#include "../helpers.h"
#include "../uapi/altpipe.h"

/*
 * Macros that end in a cast are invisible to bindgen. A constant of the right type shows it
 * their value; the Kbuild rule strips the prefix from the name.
 */
static const fmode_t ALTPIPE_CONST_FMODE_READ = FMODE_READ;
static const fmode_t ALTPIPE_CONST_FMODE_WRITE = FMODE_WRITE;
static const fmode_t ALTPIPE_CONST_FMODE_NOWAIT = FMODE_NOWAIT;
static const fmode_t ALTPIPE_CONST_FMODE_CAN_ODIRECT = FMODE_CAN_ODIRECT;
static const fmode_t ALTPIPE_CONST_FMODE_NONOTIFY_PERM = FMODE_NONOTIFY_PERM;
static const fmode_t ALTPIPE_CONST_FMODE_FSNOTIFY_MASK = FMODE_FSNOTIFY_MASK;
static const int ALTPIPE_CONST_IOCB_NOWAIT = IOCB_NOWAIT;
static const int ALTPIPE_CONST_IOCB_NOSIGNAL = IOCB_NOSIGNAL;

static const gfp_t ALTPIPE_CONST_GFP_HIGHUSER = GFP_HIGHUSER;
static const gfp_t ALTPIPE_CONST___GFP_ACCOUNT = __GFP_ACCOUNT;

static const __poll_t ALTPIPE_CONST_EPOLLIN = EPOLLIN;
static const __poll_t ALTPIPE_CONST_EPOLLOUT = EPOLLOUT;
static const __poll_t ALTPIPE_CONST_EPOLLERR = EPOLLERR;
static const __poll_t ALTPIPE_CONST_EPOLLHUP = EPOLLHUP;
static const __poll_t ALTPIPE_CONST_EPOLLRDNORM = EPOLLRDNORM;
static const __poll_t ALTPIPE_CONST_EPOLLWRNORM = EPOLLWRNORM;
static const __poll_t ALTPIPE_CONST_EPOLLET = EPOLLET;

static const unsigned int ALTPIPE_CONST_ALTPIPE_IOC_VERSION = ALTPIPE_IOC_VERSION;
static const unsigned int ALTPIPE_CONST_ALTPIPE_IOC_CREATE = ALTPIPE_IOC_CREATE;
static const unsigned int ALTPIPE_CONST_ALTPIPE_IOC_GET_SIZE = ALTPIPE_IOC_GET_SIZE;
static const unsigned int ALTPIPE_CONST_ALTPIPE_IOC_SET_SIZE = ALTPIPE_IOC_SET_SIZE;
static const unsigned int ALTPIPE_CONST_ALTPIPE_IOC_GET_CONFIG = ALTPIPE_IOC_GET_CONFIG;
static const unsigned int ALTPIPE_CONST_ALTPIPE_IOC_GET_STATS = ALTPIPE_IOC_GET_STATS;
