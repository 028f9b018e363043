/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cancelled_joiner HOW: a thread waits for the answer of a resource manager that never comes, and
 *     deferred, asynchronous   is cancelled: it ends, and the process goes on
 *     longjmp                  its handler of a signal leaves by longjmp: it goes on elsewhere
 *     exit                     its handler calls exit: so the process ends, by an exit handler with a region
 * Run by test_cancelled.py, which plays the manager: "cancel" on standard input says that the
 * request has come.
 * @helper
 */
#include "../check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int type = PTHREAD_CANCEL_DEFERRED;

static void region(void)
{
    int n = 0;
#pragma omp parallel reduction(+ : n) num_threads(2)
    n++;
    CHECK(n == 2, "%d threads", n);
}

static void *joins(void *unused)
{
    pthread_setcanceltype(type, NULL);
    region(); /* asynchronous: the cancellation comes while the thread waits for the manager */
    pthread_testcancel();
    return unused;
}

/* Not by the stream, which another thread's exit may flush at the same time. */
static void say_cancelled(void)
{
    static const char text[] = "cancelled\n";
    CHECK(write(STDOUT_FILENO, text, sizeof text - 1) == sizeof text - 1, "stdout");
}

static pthread_t main_thread;
static sigjmp_buf elsewhere;
static const char *how = "deferred";

static void handler(int number)
{
    (void)number;
    CHECK(pthread_equal(pthread_self(), main_thread), "another thread's signal");
    if (!strcmp(how, "exit"))
        exit(3);
    siglongjmp(elsewhere, 1);
}

static void *interrupts(void *unused)
{
    char line[32];
    CHECK(fgets(line, sizeof line, stdin) && !strcmp(line, "cancel\n"), "stdin");
    CHECK(pthread_kill(main_thread, SIGUSR1) == 0, "pthread_kill");
    say_cancelled();
    return unused;
}

static int interrupted(void)
{
    pthread_t thread;
    main_thread = pthread_self();
    CHECK(atexit(region) == 0, "atexit");
    CHECK(signal(SIGUSR1, handler) != SIG_ERR, "signal");
    CHECK(pthread_create(&thread, NULL, interrupts, NULL) == 0, "pthread_create");
    if (!sigsetjmp(elsewhere, 1)) {
        region();
        CHECK(0, "no signal has come");
    }
    CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
    region();
    return check_ok();
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *end;
    char line[32];
    if (argc > 1)
        how = argv[1];
    if (!strcmp(how, "longjmp") || !strcmp(how, "exit"))
        return interrupted();
    if (!strcmp(how, "asynchronous"))
        type = PTHREAD_CANCEL_ASYNCHRONOUS;
    CHECK(pthread_create(&thread, NULL, joins, NULL) == 0, "pthread_create");
    CHECK(fgets(line, sizeof line, stdin) && !strcmp(line, "cancel\n"), "stdin");
    CHECK(pthread_cancel(thread) == 0, "pthread_cancel");
    say_cancelled();
    CHECK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED, "pthread_join");
    region();
    return check_ok();
}
