// SPDX-License-Identifier: GPL-2.0
//! The rows. Each is a script for sh that starts in an empty folder, says the same each time, and takes seconds on an
//! emulated processor.

/// What must come of a program on altpipe's pipes.
#[derive(Clone, Copy)]
pub enum Expected {
    /// The status and the output that it has on native ones.
    Output,
    /// The status; the output has times or process numbers in it.
    Status,
    /// The kernel refuses what needs a pipe of its own, and the program ends and speaks like this.
    Refusal {
        /// Its exit status.
        status: i32,
        /// A part of its output.
        says: &'static str,
    },
}

/// One row.
pub struct Program {
    /// What it is.
    pub name: &'static str,
    /// What runs.
    pub script: &'static str,
    /// What must come of it.
    pub expected: Expected,
}

const fn prints(name: &'static str, script: &'static str) -> Program {
    Program {
        name,
        script,
        expected: Expected::Output,
    }
}

const fn ends(name: &'static str, script: &'static str) -> Program {
    Program {
        name,
        script,
        expected: Expected::Status,
    }
}

const fn refused(
    name: &'static str,
    script: &'static str,
    status: i32,
    says: &'static str,
) -> Program {
    Program {
        name,
        script,
        expected: Expected::Refusal { status, says },
    }
}

/// All of them, shells first: where they fail, the rest means nothing.
pub const PROGRAMS: &[Program] = &[
    prints(
        "bash",
        r#"bash -c '
seq 20000 | sort -rn | awk "{s += \$1} END {print s, NR}" | tr 0-9 a-j
set -o pipefail; false | true; echo $?; true | false | true; echo ${PIPESTATUS[@]}
cat <(seq 10) <(seq 5) | md5sum
coproc cat; echo hi >&${COPROC[1]}; read x <&${COPROC[0]}; echo $x
mapfile -t a < <(seq 100); echo ${#a[@]}
seq 5 | while read n; do echo $((n * n)) | tee >(cat >/dev/null); done
yes | head -n 2000 | md5sum; kill -l ${PIPESTATUS[0]}
'"#,
    ),
    prints(
        "dash",
        r#"dash -c '
seq 20000 | sort -rn | uniq | wc -l
echo $(echo a | cat | cat) $(true | { cat; echo b; })
yes | head -n 2000 | md5sum
x=$(seq 3000); echo "$x" | tail -n 1
cat <<END | rev
here
END
(exit 3) | (exit 4); echo $?
mkfifo f; (echo through a fifo >f &); cat f | cat
'"#,
    ),
    ends(
        "stress-ng --pipe",
        "stress-ng --pipe 2 --pipe-ops 2000 --verify --timeout 20",
    ),
    // Its number of operations does not end it.
    ends(
        "stress-ng --pipeherd",
        "stress-ng --pipeherd 1 --verify --timeout 2",
    ),
    ends(
        "stress-ng --sigio",
        "stress-ng --sigio 1 --sigio-ops 100 --verify --timeout 3",
    ),
    ends(
        "stress-ng --sigpipe",
        "stress-ng --sigpipe 1 --sigpipe-ops 100 --verify --timeout 20",
    ),
    // The second makes sockets, and no pipe of its own.
    ends(
        "stress-ng --poll and --epoll",
        "stress-ng --poll 1 --poll-ops 500 --epoll 1 --epoll-ops 200 --verify --timeout 20",
    ),
    // splice between our end and a file needs a pipe of the kernel's in between.
    refused(
        "stress-ng --splice",
        "stress-ng --splice 1 --splice-ops 500 --verify --timeout 20",
        0,
        "not splicing from /dev/zero as this is not supported",
    ),
    refused(
        "stress-ng --tee",
        "stress-ng --tee 1 --tee-ops 500 --verify --timeout 20",
        2,
        "tee failed, errno=22 (Invalid argument)",
    ),
    refused(
        "stress-ng --vm-splice",
        "stress-ng --vm-splice 1 --vm-splice-ops 500 --verify --timeout 20",
        0,
        "finished prematurely",
    ),
    // In two halves, for two processors; without the tests that wait for a second and more.
    prints(
        "python's tests of subprocess",
        r#"
(python3 -m test test_subprocess -m '*.POSIXProcessTestCase.*' -m '*.RunFuncTestCase.*' \
    -i 'test_*_dead' -i 'test_run_with_*timeout*' >posix 2>&1; echo status $? >>posix) &
python3 -m test test_subprocess -m '*.ProcessTestCase.*' -m '*.ContextManagerTests.*' \
    -i '*timeout*' -i 'test_wait*' -i 'test_io_*' -i '*leak*' -i '*threadsafe*' >general 2>&1
status=$?; wait; tail -n 3 general; tail -n 4 posix; grep -q 'status 0' posix && exit $status"#,
    ),
    prints(
        "python's tests of select, poll, epoll and popen",
        r#"
python3 -m test test_select test_poll test_popen test_epoll -i test_threaded_poll >log 2>&1
status=$?; tail -n 3 log; exit $status"#,
    ),
    prints(
        "make with a job server in a pipe",
        r#"
cat >Makefile <<'END'
all: a b c
%: ; @+$(MAKE) -s --no-print-directory -f sub.mk D=$@
END
cat >sub.mk <<'END'
all: $(addprefix $(D),1 2 3 4 5 6 7 8)
%: ; @echo $@ | tr a-z A-Z >$@
END
make -s -j8 --jobserver-style=pipe; status=$?; cat ?[1-8] | md5sum; ls | wc -l; exit $status"#,
    ),
    prints(
        "gcc -pipe",
        r#"
printf '#include <stdio.h>\nint main(void) { return puts("made") < 0; }\n' >a.c
gcc -pipe -O a.c -o a && ./a | cat"#,
    ),
    prints(
        "tar",
        "tar -C /usr/share -czf - zoneinfo | tar -tzf - | md5sum; \
         tar -C /usr/include -cf - linux | tar -xf - && diff -r linux /usr/include/linux && ls linux | wc -l",
    ),
    prints(
        "git",
        r#"
export GIT_AUTHOR_DATE=2020-01-01T00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00Z
git config --global user.name a; git config --global user.email a@b; git config --global init.defaultBranch main
git init -q r && cd r
for i in 1 2 3; do seq $i 500 >f$i; git add .; git commit -qm $i; done
cd .. && git clone -q "file://$PWD/r" c && git -C c log --format='%H %s' | cat
git -C c fsck 2>&1; git -C r gc -q; git -C c fetch -q; git -C c grep -c 77 | sort; git -C r archive HEAD | tar -t"#,
    ),
    prints(
        "pv",
        "seq 100000 | pv -q | md5sum; pv -q -B 4096 /usr/bin/make | md5sum; seq 50000 | pv -q -C -L 10m | md5sum",
    ),
    ends(
        "hackbench of processes",
        "hackbench --pipe -g 2 -f 10 -l 50",
    ),
    ends(
        "hackbench of threads",
        "hackbench --pipe -T -g 1 -f 10 -l 50",
    ),
    ends("perf bench sched pipe", "perf bench sched pipe -l 500"),
    ends(
        "perf bench sched messaging",
        "perf bench sched messaging -p -g 1 -l 20",
    ),
];
