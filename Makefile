# SPDX-License-Identifier: GPL-2.0
#
# The door to everything. What needs a kernel tree takes KDIR=<prepared tree>, and
# then uses the compilers on the PATH; without KDIR, Debian's kernel and the tool
# chain of Debian 13 are set up and used. `make -C <tree> M=$PWD modules` works too:
# it reads Kbuild, not this file.

PREFIX ?= /usr/local
RESULTS ?= demo-results

cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/altpipe
programs := tools/target/x86_64-unknown-linux-gnu/release
vm := $(programs)/altpipe-vm

ifeq ($(KDIR),)
override KDIR := $(cache)/kernels/current/build
in-toolchain := tools/in-toolchain.sh
modules: kernel
endif

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z_-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 25

# Costs are counted with one processor that is emulated to the instruction, in
# more boots than five; what needs two processors is counted in switches.
counted := boots --icount --count 6 --jobs 2
threaded := boots --smp 2 --count 5
reproduce = $(vm) $(1) --out $(RESULTS)/$(2) -- \
	altpipe reproduce $(3) --rounds $(4) --seed {seed} --json /out/report.json

.PHONY: demo
demo: tools kernel modules ## re-create the three regressions in a virtual machine: three tables
	rm -rf $(RESULTS)
	$(call reproduce,$(threaded),2008-inode-diet,inode-diet,10)
	$(call reproduce,$(counted),2014-frozen-fs,frozen-fs,2)
	$(call reproduce,$(counted),2020-tail-spinlock,tail-spinlock,2)
	$(call reproduce,$(threaded),2020-herd,tail-spinlock,2)
	$(programs)/altpipe report $(RESULTS)/*/*/report.json

.PHONY: test
test: tools kernel ## every test: on the host, then in a virtual machine
	$(vm) test $(TESTFLAGS)

.PHONY: test-debug
test-debug: tools kernel-debug ## the kernel's own bug finders: KASAN, lockdep, KUnit, faults, a fuzzer
	$(vm) test --debug

.PHONY: test-long
test-long: tools kernel-debug ## the long forms, some hours
	$(vm) test --long

.PHONY: check
check: tools kernel ## every lint
	$(vm) check

.PHONY: vm
vm: tools kernel modules ## a shell in the virtual machine, with the module loaded
	$(vm) shell

.PHONY: run
run: override export CMD := $(value CMD)
run: tools kernel modules ## one command there: make run CMD='altpipe status'
	$(vm) run -- sh -c "$$CMD"

.PHONY: modules
modules: ## the kernel module, rust/altpipe.ko
	tools/timed.sh "kernel module" $(in-toolchain) $(MAKE) -C $(KDIR) M=$(CURDIR) modules

.PHONY: modules_install
modules_install: ## install it below $(INSTALL_MOD_PATH)/lib/modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

.PHONY: tools
tools: bootstrap ## the command-line tools
	cd tools && ./cargo.sh build --release --workspace && ./preload.sh

.PHONY: install
install: ## install the tools, their manual pages and the header below PREFIX
	install -D -t $(DESTDIR)$(PREFIX)/bin $(programs)/altpipe
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/altpipe $(programs)/libaltpipe_preload.so
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 Documentation/man/*.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/linux rust/uapi/altpipe.h

.PHONY: kernel
kernel: tools ## fetch and prepare the kernel to build for and to boot
	$(vm) setup

.PHONY: kernel-debug
kernel-debug: tools ## build the debug kernel, once
	$(vm) setup --debug

.PHONY: modules-debug
modules-debug: tools ## the module for it: for altpipe-vm run --debug
	$(vm) setup --debug --modules

.PHONY: setup
setup: tools kernel modules ## all of the set-up, nothing else

.PHONY: bootstrap
bootstrap: ## install the packages that are missing
	tools/bootstrap.sh

.PHONY: clean
clean: ## remove what was built in the checkout; the cache stays
	$(if $(wildcard $(KDIR)),$(in-toolchain) $(MAKE) -C $(KDIR) M=$(CURDIR) clean)
	$(MAKE) -C samples clean
	rm -rf tools/target $(RESULTS)
