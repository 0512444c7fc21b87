// SPDX-License-Identifier: GPL-2.0
/*
 * Faults on demand: a bug finder that is never seen to find a bug proves nothing
 * by its silence.
 *
 *   # insmod provoke.ko
 *   # echo use_after_free >/sys/module/provoke/parameters/fault
 *
 * makes the kernel report that fault, and lives on. Whoever wants to see several
 * in one boot begins with lock_order, since lockdep retires at the first report of
 * any kind. The one KUnit test fails.
 */

#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

/* Two locks in both orders: a dead-lock that does not happen this time. */
static DEFINE_MUTEX(provoke_first);
static DEFINE_MUTEX(provoke_second);

static int lock_order(void)
{
	mutex_lock(&provoke_first);
	mutex_lock(&provoke_second);
	mutex_unlock(&provoke_second);
	mutex_unlock(&provoke_first);

	mutex_lock(&provoke_second);
	mutex_lock(&provoke_first);
	mutex_unlock(&provoke_first);
	mutex_unlock(&provoke_second);
	return 0;
}

static int sleep_in_atomic(void)
{
	static DEFINE_SPINLOCK(lock);
	void *object;

	spin_lock(&lock);
	object = kmalloc(64, GFP_KERNEL);
	spin_unlock(&lock);
	kfree(object);
	return 0;
}

/* Reads a byte that the compiler may neither foresee nor leave out. */
static int look_at(const u8 *address)
{
	OPTIMIZER_HIDE_VAR(address);
	(void)READ_ONCE(*address);
	return 0;
}

static int use_after_free(void)
{
	u8 *object = kmalloc(64, GFP_KERNEL);

	if (!object)
		return -ENOMEM;
	kfree(object);
	return look_at(object + 8);
}

static int use_of_free_page(void)
{
	struct page *page = alloc_page(GFP_KERNEL);

	if (!page)
		return -ENOMEM;
	__free_page(page);
	return look_at(page_address(page));
}

static int beyond_vmalloc(void)
{
	u8 *area = vmalloc(100);

	if (!area)
		return -ENOMEM;
	look_at(area + 100);
	vfree(area);
	return 0;
}

static void never(struct timer_list *timer)
{
}

/* Memory that is freed with a timer in it that still runs. */
static int free_active_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return -ENOMEM;
	timer_setup(timer, never, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer);
	return 0;
}

static int corrupt_list(void)
{
	struct list_head head, entry, other;

	INIT_LIST_HEAD(&head);
	INIT_LIST_HEAD(&other);
	list_add(&entry, &head);
	entry.prev = &other;
	list_del(&entry);
	return 0;
}

static int sleep_deeply(void *unused)
{
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_timeout(10 * HZ);
	return 0;
}

/*
 * For the detector of hung tasks, whose patience is a sysctl. Not by the caller, who
 * holds the lock of the module's parameters.
 */
static int hang(void)
{
	return PTR_ERR_OR_ZERO(kthread_run(sleep_deeply, NULL, "provoke"));
}

/* Several, since a stale copy of a pointer on some stack would hide a single one. */
static int leak(void)
{
	int i;

	for (i = 0; i < 100; i++)
		if (!kmalloc(128, GFP_KERNEL))
			return -ENOMEM;
	return 0;
}

static const struct {
	const char *name;
	int (*provoke)(void);
} faults[] = {
	{ "lock_order", lock_order },
	{ "sleep_in_atomic", sleep_in_atomic },
	{ "use_after_free", use_after_free },
	{ "use_of_free_page", use_of_free_page },
	{ "beyond_vmalloc", beyond_vmalloc },
	{ "free_active_timer", free_active_timer },
	{ "corrupt_list", corrupt_list },
	{ "hang", hang },
	{ "leak", leak },
};

static int fault_set(const char *text, const struct kernel_param *param)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (sysfs_streq(text, faults[i].name))
			return faults[i].provoke();
	return -EINVAL;
}

static const struct kernel_param_ops fault_ops = {
	.set = fault_set,
};

module_param_cb(fault, &fault_ops, NULL, 0200);
MODULE_PARM_DESC(fault, "the fault to provoke");

static void fails(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1, 2);
}

static struct kunit_case provoke_cases[] = {
	KUNIT_CASE(fails),
	{}
};

static struct kunit_suite provoke_suite = {
	.name = "provoke",
	.test_cases = provoke_cases,
};

kunit_test_suite(provoke_suite);

MODULE_DESCRIPTION("Faults on demand, to see that the kernel finds them");
MODULE_AUTHOR("The altpipe developers");
MODULE_LICENSE("GPL");
