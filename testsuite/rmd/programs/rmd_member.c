/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmd_member.c - a process of a domain that follows commands, for the tests in testsuite/rmd: it
 * speaks to rmd (protocol.h) and to the table (core.h) directly.  One command per line of
 * stdin, one answer per line of stdout:
 *
 *   join SOCKET RANK SIZE LOCAL  -> slot, or "refused STATUS MESSAGE"
 *   leave SOCKET                 -> status
 *   borrow|lend CORE             -> 0 or 1
 *   near CORE                    -> borrows the nearest free core to that one: it, or -1
 *   unname CORE                  -> clears the number of the thread that holds it, as rmd does before it takes the
 *                                   core from a thread that sleeps: 0
 *   reclaim CORE                 -> "asked", or "no" when there is no need or right to
 *   want 0|1                     -> 0
 *   rob SLOT                     -> waits for a parked worker of that process, takes its cores and
 *                                   leaves them free, and does not offer them.  As if the
 *                                   process had asked for one when it had no work: number of cores
 *   token                        -> takes one: 0 or 1
 *   announce WORKLOAD MIN MAX    -> waits for the decision: 0, or 1 after some twenty seconds
 *   flood SECONDS                -> other workloads, and a blocking wait for each, for so long: how
 *                                   many decisions there were
 *   ring SECONDS                 -> wakes rmd for nothing, for so long: how often
 *   toll SECONDS                 -> says that there is much to read for a trace, for so long: how
 *   often
 *   crowd N                      -> starts so many threads, which sleep: 0
 *   graph CORES SPEEDUP ...      -> puts these points into its slot, valid or not: 0
 *   iteration SECONDS            -> puts this into its slot: 0
 *   delivered PART MEASURED      -> puts into its slot what its cores deliver, and whether its
 *                                   workload is measured on them, 0 or 1: 0
 *   spend USEFUL WAIT            -> so many more milliseconds outside of MPI's waits and in them, as
 *                                   the MPI shim counts them: 0
 *   park ENTRY                   -> parks as that worker until it is woken: core offered, or "timeout"
 *   table                        -> MODE FREE_TOKENS {OWNER HOLDER RECLAIM}*NCORES, slots as
 *                                   numbers, -1 none
 *   holds                        -> {CPU PID THREAD EPOCH}*NCORES: what computes there, 0 nothing;
 *                                   THREAD 0: not known; EPOCH: of the word
 *   states                       -> slots that are not free
 *   assigned                     -> the core that each of these is to compute on, -1 any
 *   record LAUNCH SITES SEED     -> begins its record for `invade --report`; SEED not 0: and
 *                                   fills it with arbitrary bytes: 0
 *   submit SOCKET LAUNCH SITES SEED -> submits a remote report, of rank 3 of 4 on another node;
 *                                   SITES -1: cut off before its record; SEED not 0: with arbitrary
 *                                   bytes in it, odd: also before the record: 0, or "refused STATUS
 *                                   MESSAGE"
 *   regions COUNT THREADS BARRIERS MS -> writes down so many regions of one function, with so many
 *                                   threads and barriers each, in all so long: 0
 *   records                      -> where records begin in the table: bytes
 *   fork N SOCKET                -> makes so many children, each of which joins and stays until
 *                                   this process ends: how many are members, how many are not
 *   child                        -> starts one that does not join and stays when this process
 *                                   ends, for two minutes: its pid
 *   orphan                       -> the same of a child that has ended: its pid
 *   headless                     -> the same of one whose first thread has ended: its pid
 *   mute HOW                     -> the same of one that keeps rmd from hearing its bell: it holds
 *                                   the word's value ("hold"), or also moves the threads that sleep
 *                                   on the word to another one ("requeue"): its pid
 *   behead                       -> ends its own first thread, and goes on in another: 0
 *   scribble WHAT NUMBER         -> writes over the table, see scribble(): 0
 *   hammer                       -> from now on the table's head is written over all the time: 0
 *   storm                        -> from now on changes all words that rmd changes, all the time: 0
 *   tids                         -> all parked workers of all slots have a thread: 0
 *   rung                         -> how often its first parked worker has been woken
 *   exec                         -> this program again, same process, not joined
 *   become HOW                   -> another program that sleeps for two minutes, by the call of
 *                                   that name: "execve"; "raw", the system call; "thread", of
 *                                   another thread
 *   start HOW                    -> a child that becomes a program and ends, by "fork", "vfork" or
 *                                   "spawn": 0 when it has ended
 *   reopen SECONDS               -> opens the table's file and closes it again, for so long: how
 *   often
 */
#define _GNU_SOURCE
#include "libinvasive/table/core.h"
#include "libinvasive/base/futex.h"
#include "libinvasive/launch/launch.h"
#include "libinvasive/base/now.h"
#include "libinvasive/table/protocol.h"
#include "libinvasive/table/socket.h"
#include "libinvasive/table/trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct inv_table *table;
static int table_fd = -1; /* the descriptor that came with the table */
static unsigned me;

static int connect_to(const char *name)
{
    struct sockaddr_un a;
    socklen_t size = inv_socket_address(&a, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, size)) {
        perror("connect");
        exit(2);
    }
    return fd;
}

static struct inv_reply ask_with(const char *name, struct inv_request *request, size_t bytes,
                                 int *passed)
{
    struct inv_reply reply = {.status = 99};
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = "";
    struct iovec iov = {&reply, sizeof reply};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd = connect_to(name);
    request->magic = INV_PROTOCOL_MAGIC;
    request->version = INV_PROTOCOL_VERSION;
    if (send(fd, request, bytes, 0) < 0 || recvmsg(fd, &m, MSG_CMSG_CLOEXEC) < 0)
        perror("rmd");
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    *passed = -1;
    if (h && h->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(h), sizeof(int));
    close(fd);
    return reply;
}

static struct inv_reply ask(const char *name, struct inv_request request, int *passed)
{
    return ask_with(name, &request, sizeof request, passed);
}

static void join(const char *name, int rank, int size, int local_size, int local_rank)
{
    int fd;
    struct inv_request request = {.kind = INV_JOIN,
                                  .rank = rank,
                                  .size = size,
                                  .local_size = local_size,
                                  .local_rank = local_rank,
                                  .launch = inv_launch_mark(),
                                  .program = "member"};
    struct inv_reply reply = ask(name, request, &fd);
    if (reply.status != INV_OK) {
        printf("refused %u %s\n", reply.status, reply.message);
        return;
    }
    me = reply.slot;
    table = inv_table_map(fd, true);
    close(table_fd);
    table_fd = fd; /* closed by exec */
    atomic_store(&inv_trace_ring, me); /* traces have its changes, as any process's */
    printf("%u\n", me);
}

/* Another constraint; false: no decision within some twenty seconds. */
static bool decided(double workload, unsigned least, unsigned most, bool hurry)
{
    struct inv_slot *s = inv_slot_at(table, me);
    uint64_t bits;
    memcpy(&bits, &workload, sizeof bits);
    atomic_store(&s->workload_bits, bits);
    atomic_store(&s->min_cores, least);
    atomic_store(&s->max_cores, most);
    uint32_t seq = atomic_fetch_add(&s->constraint_seq, 1) + 1;
    atomic_fetch_add(&table->rmd_hurry, hurry);
    atomic_fetch_add(&table->rmd_bell, 1);
    inv_futex_wake(&table->rmd_bell, 1, true);
    if (hurry)
        inv_futex_wake(&table->rmd_hurry, 1, true);
    for (int tries = 0; tries < 200; tries++) {
        uint32_t seen = atomic_load(&s->decided_seq);
        if (seen == seq)
            return true;
        inv_futex_wait(&s->decided_seq, seen, 100000000, true);
    }
    return false;
}

static void flood(double seconds)
{
    double workload = 1;
    unsigned answers = 0;
    for (uint64_t end = inv_now_ns() + (uint64_t)(seconds * 1e9); inv_now_ns() < end;) {
        workload = 10 - workload;
        answers += decided(workload, 0, 0, true);
    }
    printf("%u\n", answers);
}

/* Wakes rmd for nothing: the bells do not change. */
static void ring(double seconds)
{
    unsigned rings = 0;
    for (uint64_t end = inv_now_ns() + (uint64_t)(seconds * 1e9); inv_now_ns() < end; rings++) {
        inv_futex_wake(&table->rmd_bell, 1, true);
        inv_futex_wake(&table->rmd_hurry, 1, true);
    }
    printf("%u\n", rings);
}

static void toll(double seconds)
{
    unsigned rings = 0;
    for (uint64_t end = inv_now_ns() + (uint64_t)(seconds * 1e9); inv_now_ns() < end; rings++) {
        atomic_fetch_add(&table->trace_bell, 1);
        inv_futex_wake(&table->trace_bell, 1, true);
    }
    printf("%u\n", rings);
}

static void *sleep_on(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void crowd(int n)
{
    pthread_attr_t small;
    pthread_t thread;
    int failed = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < n; i++)
        failed |= pthread_create(&thread, &small, sleep_on, NULL);
    pthread_attr_destroy(&small);
    printf("%d\n", failed);
}

static void put_graph(const char *text)
{
    struct inv_slot *s = inv_slot_at(table, me);
    unsigned cores;
    float speedup;
    int used;
    for (int i = 0; i < INV_GRAPH_WORDS; i++, text += used) {
        uint32_t bits;
        if (sscanf(text, "%u %f%n", &cores, &speedup, &used) != 2)
            break;
        memcpy(&bits, &speedup, sizeof bits);
        atomic_store(&s->scalability[i], (uint64_t)cores << 32 | bits);
    }
    printf("0\n");
}

static void put_iteration(double seconds)
{
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    atomic_store(&inv_slot_at(table, me)->iteration_bits, bits);
    printf("0\n");
}

/* What its cores deliver, and whether its workload was measured on them. */
static void put_delivered(double part, bool measured)
{
    uint64_t bits;
    memcpy(&bits, &part, sizeof bits);
    atomic_store(&inv_slot_at(table, me)->delivered_bits, bits);
    atomic_store(&inv_slot_at(table, me)->workload_measured, measured);
    printf("0\n");
}

static void spend(int useful_ms, int wait_ms)
{
    struct inv_counters *c = &inv_slot_at(table, me)->counters;
    atomic_fetch_add(&c->useful_ns, (uint64_t)useful_ms * 1000000);
    atomic_fetch_add(&c->wait_ns, (uint64_t)wait_ms * 1000000);
    printf("0\n");
}

static void park(unsigned entry)
{
    struct inv_slot *s = inv_slot_at(table, me);
    struct inv_parked *a = &s->parked_workers[entry];
    uint32_t seen = atomic_load(&a->bell);
    atomic_store(&a->tid, (int32_t)getpid());
    atomic_store(&a->core, INV_NO_CORE);
    atomic_fetch_or(&s->parked, UINT64_C(1) << entry);
    printf("parked\n");
    while (atomic_load(&s->parked) >> entry & 1)
        if (inv_futex_wait(&a->bell, seen, 10000000000, true) == -ETIMEDOUT) {
            printf("timeout\n");
            return;
        }
    while (atomic_load(&a->bell) == seen)
        inv_futex_wait(&a->bell, seen, 1000000000, true);
    printf("%d\n", (int)atomic_load(&a->core));
}

static void rob(unsigned slot)
{
    unsigned evicted, count = 0;
    for (int tries = 0; tries < 10000 && !atomic_load(&inv_slot_at(table, slot)->parked); tries++)
        usleep(1000);
    inv_want_set(table, slot, true);
    for (unsigned c = 0; c < table->ncores; c++) {
        if (inv_word_holder(atomic_load(&inv_core_at(table, c)->word)) != slot + 1)
            continue;
        inv_core_own(table, c, (int)me);
        count += inv_core_evict(table, c, me, &evicted) && inv_core_lend(table, c, me);
    }
    printf("%u\n", count);
}

static void record(unsigned long long launch, unsigned sites, unsigned seed)
{
    struct inv_record *r = inv_record_at(table, me);
    srand(seed);
    for (size_t i = 0; seed && i < sizeof *r; i++)
        ((unsigned char *)r)[i] = (unsigned char)rand();
    atomic_store(&r->launch, launch);
    atomic_store(&r->sites, sites);
    printf("0\n");
}

static void regions(int count, int threads, int barriers, int ms)
{
    struct inv_record *r = inv_record_at(table, me);
    struct inv_function *f = &r->function[1];
    uint64_t n = (uint64_t)count;
    atomic_store(&f->regions, n);
    atomic_store(&f->threads, n * (uint64_t)threads);
    atomic_store(&f->barriers, n * (uint64_t)barriers);
    atomic_store(&f->cores, n);
    atomic_store(&f->switches, n * (uint64_t)(threads * barriers));
    atomic_store(&f->elapsed_ns, (uint64_t)ms * 1000000);
    atomic_store(&f->named, INV_MODULES + 1);
    atomic_store(&r->functions, 2);
    atomic_store(&r->switches_timed, 10);
    atomic_store(&r->switches_ns, 1000);
    printf("0\n");
}

static void put_random(void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)rand();
}

static void submit_report(const char *name, uint64_t launch, int sites, unsigned seed)
{
    static struct inv_remote_report p;
    int unused;
    uint32_t bytes = sites < 0 ? 0 : (uint32_t)INV_RECORD_BYTES((size_t)sites);
    p = (struct inv_remote_report){
        .request = {.kind = INV_SUBMIT_REPORT, .rank = -1, .size = -1, .local_size = -1,
                    .local_rank = -1},
        .report = {.rank = 3, .size = 4, .alive = 1, .start_ns = 1, .end_ns = 2,
                   .program = "member", .node = 77, .node_cores = 5, .host = "other"}};
    srand(seed);
    if (seed)
        put_random(p.record, bytes);
    if (seed % 2)
        put_random(&p.report, sizeof p.report);
    p.report.record_bytes = bytes;
    memcpy(p.record + offsetof(struct inv_record, launch), &launch, sizeof launch);
    struct inv_reply reply = ask_with(name, &p.request, INV_REMOTE_REPORT_BYTES(bytes), &unused);
    if (reply.status == INV_OK)
        printf("0\n");
    else
        printf("refused %u %s\n", reply.status, reply.message);
}

/* A process may have overwritten the head, and rmd may not yet have put it right. */
static unsigned at_most(unsigned n, unsigned most)
{
    return n < most ? n : most;
}

static void show_table(void)
{
    unsigned ncores = at_most(table->ncores, INV_MAX_CORES);
    printf("%u %d", table->mode, (int)atomic_load(&table->free_tokens));
    for (unsigned c = 0; c < ncores; c++) {
        inv_word w = atomic_load(&inv_core_at(table, c)->word);
        printf(" %d %d %d", (int)inv_word_owner(w) - 1, (int)inv_word_holder(w) - 1,
               inv_word_reclaim(w));
    }
    printf("\n");
}

static void show_holds(void)
{
    unsigned ncores = at_most(table->ncores, INV_MAX_CORES);
    for (unsigned c = 0; c < ncores; c++) {
        struct inv_core *core = inv_core_at(table, c);
        inv_word w = atomic_load(&core->word);
        long slot = (long)inv_word_holder(w) - 1;
        printf("%d %d %d %u ", core->os_cpu,
               inv_slot_valid(table, slot) ? inv_slot_at(table, (unsigned)slot)->pid : 0,
               (int)atomic_load(&core->holder_tid), inv_word_epoch(w));
    }
    printf("\n");
}

static void show_states(void)
{
    unsigned nslots = at_most(table->nslots, INV_MAX_SLOTS);
    for (unsigned s = 0; s < nslots; s++)
        if (atomic_load(&inv_slot_at(table, s)->state) != INV_SLOT_FREE)
            printf("%u ", s);
    printf("\n");
}

static void show_assigned(void)
{
    unsigned nslots = at_most(table->nslots, INV_MAX_SLOTS);
    for (unsigned s = 0; s < nslots; s++)
        if (atomic_load(&inv_slot_at(table, s)->state) != INV_SLOT_FREE)
            printf("%d ", (int)atomic_load(&inv_slot_at(table, s)->assigned));
    printf("\n");
}

static void fork_and_join(int n, const char *name)
{
    int members = 0, others = 0, ends[2], answer;
    char byte;
    if (pipe(ends))
        return;
    for (int i = 0; i < n; i++) {
        if (fork() == 0) {
            struct inv_request request = {.kind = INV_JOIN, .rank = -1, .size = -1,
                                          .local_size = -1, .local_rank = -1, .program = "child"};
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            bool joined = ask(name, request, &answer).status == INV_OK;
            if (write(ends[1], joined ? "y" : "n", 1) != 1 || !joined)
                _exit(0);
            pause();
            _exit(0);
        }
        if (read(ends[0], &byte, 1) == 1)
            *(byte == 'y' ? &members : &others) += 1;
    }
    printf("%d %d\n", members, others);
}

static void stay(void)
{
    alarm(120); /* ends if no test ends it */
    fclose(stdin);
    fclose(stdout);
    for (;;)
        pause();
}

static void *stay_in_thread(void *nothing)
{
    stay();
    return nothing;
}

/* Ends the calling thread, the first one of the process. */
static void go_on_in_thread(void *(*how)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, how, argument))
        _exit(1);
    syscall(SYS_exit, 0);
}

/* Keeps the bell of the table that its parent has joined silent.  Ends as stay() does. */
static _Noreturn void mute(bool requeue)
{
    uint32_t seen = atomic_load(&table->rmd_bell);
    alarm(120);
    fclose(stdin);
    fclose(stdout);
    for (;;) {
        atomic_store(&table->rmd_bell, seen);
        if (requeue)
            syscall(SYS_futex, &table->rmd_bell, FUTEX_REQUEUE, 0, (long)INT_MAX,
                    &table->trace_bell, 0);
    }
}

static void start_child(const char *kind)
{
    bool orphan = !strcmp(kind, "orphan");
    int ends[2];
    pid_t pid = 0;
    if (pipe(ends))
        return;
    pid_t child = fork();
    if (child == 0) {
        pid = orphan ? fork() : 0;
        if (pid)
            _exit(0);
        pid = getpid();
        if (write(ends[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        if (!strcmp(kind, "headless"))
            go_on_in_thread(stay_in_thread, NULL);
        if (!strcmp(kind, "hold") || !strcmp(kind, "requeue"))
            mute(*kind == 'r');
        stay();
    }
    if (orphan)
        waitpid(child, NULL, 0);
    printf("%d\n", read(ends[0], &pid, sizeof pid) == sizeof pid ? (int)pid : -1);
    close(ends[0]);
    close(ends[1]);
}

/* tokens N: sets the free tokens to N; head N: sets the number of cores in the head to N.  With
 * random numbers from seed N: words N, the words of all cores; slots N, names and states of all
 * processes; all N, all that is before the records. */
static void scribble(const char *what, int n)
{
    srand((unsigned)n);
    if (!strcmp(what, "tokens"))
        atomic_store(&table->free_tokens, n);
    else if (!strcmp(what, "head"))
        table->ncores = (uint32_t)n;
    for (unsigned c = 0; !strcmp(what, "words") && c < INV_MAX_CORES; c++)
        put_random((void *)&inv_core_at(table, c)->word, sizeof(inv_word));
    for (unsigned s = 0; !strcmp(what, "slots") && s < INV_MAX_SLOTS; s++)
        put_random((void *)inv_slot_at(table, s), offsetof(struct inv_slot, parked));
    if (!strcmp(what, "all"))
        put_random((void *)table, INV_RECORDS_OFFSET);
    printf("0\n");
}

static void hammer(void)
{
    for (uint32_t turn = 0;; turn++) {
        *(volatile uint32_t *)&table->nslots = 0;
        *(volatile uint32_t *)&table->mode = turn & 1;
        *(volatile uint32_t *)&table->ncores = turn & 2 ? UINT32_MAX : 0;
        *(volatile uint32_t *)&table->nslots = turn;
    }
}

/* Changes words of cores, slots and rmd's ring; holders, owners and reclaims are possible ones. */
static void storm(void)
{
    for (uint64_t turn = 1;; turn = turn * 6364136223846793005u + 1) {
        for (unsigned c = 0; c < 16; c++)
            atomic_store(&inv_core_at(table, c)->word,
                         inv_word_next((inv_word)turn << 40, turn >> 33 & 7, turn >> 36 & 7,
                                       turn >> 39 & 1));
        for (unsigned s = 0; s < 8; s++)
            atomic_store(&inv_slot_at(table, s)->parked, turn);
        atomic_store(&table->wanting[0], turn);
        atomic_store(&table->free_tokens, (int32_t)(turn >> 32));
        struct inv_trace_ring *ring = inv_trace_ring_at(table, INV_TRACE_RMD);
        atomic_store(&ring->head, atomic_load(&ring->tail) + (turn >> 40 & 63));
    }
}

/* Runs `what` in a child, which ThreadSanitizer leaves alone. */
static void begin(void (*what)(void))
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        what();
    }
    printf("%d\n", child < 0);
}

static char *const sleeper[] = {"sleep", "120", NULL}, *const nothing[] = {"true", NULL};

static void *become_another(void *how)
{
    if (!strcmp(how, "raw"))
        syscall(SYS_execve, "/bin/sleep", sleeper, environ);
    else
        execve("/bin/sleep", sleeper, environ);
    return NULL;
}

static void become(char *how)
{
    pthread_t thread;
    fclose(stdin);
    if (!strcmp(how, "thread") && !pthread_create(&thread, NULL, become_another, how))
        pthread_join(thread, NULL);
    become_another(how);
}

static void start(const char *how)
{
    pid_t child = -1;
    int status = -1;
    if (!strcmp(how, "spawn")) {
        posix_spawn(&child, "/bin/true", NULL, NULL, nothing, environ);
    } else if (!strcmp(how, "vfork")) {
        if ((child = vfork()) == 0) {
            execve("/bin/true", nothing, environ);
            _exit(1);
        }
    } else if ((child = fork()) == 0) {
        execve("/bin/true", nothing, environ);
        _exit(1);
    }
    printf("%d\n", child > 0 && waitpid(child, &status, 0) == child ? status : -1);
}

static void reopen(double seconds)
{
    char path[40];
    unsigned long count = 0;
    uint64_t end = inv_now_ns() + (uint64_t)(seconds * 1e9);
    snprintf(path, sizeof path, "/proc/self/fd/%d", table_fd);
    for (; inv_now_ns() < end; count++)
        close(open(path, O_RDWR | O_CLOEXEC));
    printf("%lu\n", count);
}

static void fill_tids(void)
{
    for (unsigned s = 0; s < INV_MAX_SLOTS; s++)
        for (unsigned a = 0; a < INV_PARKED_MAX; a++)
            atomic_store(&inv_slot_at(table, s)->parked_workers[a].tid, 1);
    printf("0\n");
}

/* The core, if there is one, is held by a thread that does not exist, so that rmd does not look whether it sleeps. */
static int held_by_us(int core)
{
    if (core >= 0)
        atomic_store(&inv_core_at(table, (unsigned)core)->holder_tid, INT32_MAX);
    return core;
}

static int borrow(unsigned core)
{
    return inv_core_borrow(table, core, me) && held_by_us((int)core) >= 0;
}

static void on_core(const char *verb, unsigned core)
{
    if (!strcmp(verb, "borrow"))
        printf("%d\n", borrow(core));
    else if (!strcmp(verb, "near"))
        printf("%d\n", held_by_us(inv_core_borrow_near(table, core, me)));
    else if (!strcmp(verb, "unname")) {
        atomic_store(&inv_core_at(table, core)->holder_tid, 0);
        printf("0\n");
    }
    else if (!strcmp(verb, "reclaim"))
        printf("%s\n", inv_core_reclaim(table, core, me) == INV_RECLAIM_ASKED ? "asked" : "no");
    else if (inv_core_lend(table, core, me)) {
        inv_core_offer(table, core, me);
        printf("1\n");
    } else
        printf("0\n");
}

static void *serve(void *arguments)
{
    char line[256], name[128], **argv = arguments;
    int a, b, c, d;
    unsigned long long n;
    double w;
    while (fgets(line, sizeof line, stdin)) {
        char verb[16] = "";
        sscanf(line, "%15s", verb);
        int joining = sscanf(line, "join %127s %d %d %d %d", name, &a, &b, &c, &d);
        if (joining >= 4) {
            join(name, a, b, c, joining == 5 ? d : -1);
        } else if (sscanf(line, "leave %127s", name) == 1) {
            printf("%u\n", ask(name,
                               (struct inv_request){
                                   .kind = INV_LEAVE, .rank = -1, .size = -1, .local_size = -1,
                                   .local_rank = -1},
                               &a)
                               .status);
        } else if (sscanf(line, "announce %lf %d %d", &w, &a, &b) == 3) {
            printf("%d\n", !decided(w, (unsigned)a, (unsigned)b, false));
        } else if (sscanf(line, "flood %lf", &w) == 1) {
            flood(w);
        } else if (sscanf(line, "ring %lf", &w) == 1) {
            ring(w);
        } else if (sscanf(line, "toll %lf", &w) == 1) {
            toll(w);
        } else if (sscanf(line, "crowd %d", &a) == 1) {
            crowd(a);
        } else if (!strcmp(verb, "graph")) {
            put_graph(line + strlen("graph"));
        } else if (sscanf(line, "iteration %lf", &w) == 1) {
            put_iteration(w);
        } else if (sscanf(line, "delivered %lf %d", &w, &a) == 2) {
            put_delivered(w, a);
        } else if (sscanf(line, "spend %d %d", &a, &b) == 2) {
            spend(a, b);
        } else if (sscanf(line, "want %d", &a) == 1) {
            inv_want_set(table, me, a);
            printf("0\n");
        } else if (sscanf(line, "rob %d", &a) == 1) {
            rob((unsigned)a);
        } else if (sscanf(line, "park %d", &a) == 1) {
            park((unsigned)a);
        } else if (sscanf(line, "record %llx %d %d", &n, &a, &b) == 3) {
            record(n, (unsigned)a, (unsigned)b);
        } else if (sscanf(line, "regions %d %d %d %d", &a, &b, &c, &d) == 4) {
            regions(a, b, c, d);
        } else if (sscanf(line, "submit %127s %llx %d %d", name, &n, &a, &b) == 4) {
            submit_report(name, n, a, (unsigned)b);
        } else if (sscanf(line, "fork %d %127s", &a, name) == 2) {
            fork_and_join(a, name);
        } else if (sscanf(line, "scribble %15s %d", name, &a) == 2) {
            scribble(name, a);
        } else if (!strcmp(verb, "hammer")) {
            begin(hammer);
        } else if (!strcmp(verb, "storm")) {
            begin(storm);
        } else if (!strcmp(verb, "tids")) {
            fill_tids();
        } else if (!strcmp(verb, "rung")) {
            printf("%u\n", atomic_load(&inv_slot_at(table, me)->parked_workers[0].bell));
        } else if (!strcmp(verb, "records")) {
            printf("%d\n", INV_RECORDS_OFFSET);
        } else if (!strcmp(verb, "token")) {
            printf("%d\n", inv_token_take(table, me));
        } else if (!strcmp(verb, "table")) {
            show_table();
        } else if (!strcmp(verb, "child") || !strcmp(verb, "orphan") || !strcmp(verb, "headless")) {
            start_child(verb);
        } else if (sscanf(line, "mute %15s", verb) == 1) {
            start_child(verb);
        } else if (!strcmp(verb, "behead")) {
            printf("0\n");
            go_on_in_thread(serve, argv);
        } else if (!strcmp(verb, "holds")) {
            show_holds();
        } else if (!strcmp(verb, "states")) {
            show_states();
        } else if (!strcmp(verb, "assigned")) {
            show_assigned();
        } else if (!strcmp(verb, "exec")) {
            execv("/proc/self/exe", argv);
        } else if (sscanf(line, "become %15s", name) == 1) {
            become(name);
        } else if (sscanf(line, "start %15s", name) == 1) {
            start(name);
        } else if (sscanf(line, "reopen %lf", &w) == 1) {
            reopen(w);
        } else if (sscanf(line, "%15s %d", verb, &a) == 2) {
            on_core(verb, (unsigned)a);
        }
    }
    exit(0);
}

int main(int argc, char **argv)
{
    (void)argc;
    setlinebuf(stdout);
    setvbuf(stdin, NULL, _IONBF, 0); /* what follows "exec" is for the next program */
    serve(argv);
}
