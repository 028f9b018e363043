/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * blocks.cpp - a process that blocks in the kernel while another one computes.
 *
 *   blocks computes WAKE END   dynamic loops of OpenMP until END
 *   blocks HOW WAKE END        a region, "blocks" on stdout, blocked until a line comes through WAKE,
 *                              "woken", computes outside OpenMP until END, a region, "good"
 *   with MPI                   the last rank does the former, all others the latter
 *
 * WAKE and END are FIFOs: a line in WAKE is read, in END it is left to all.  HOW: block() has the ways
 * to wait, with MPI also mpi-io; workers joins two threads that compute until END; exit, kill and exec end the program, or
 * replace it, from another thread while the first one sleeps.  borrows: "borrows" on stdout and loops of OpenMP until
 * SIGUSR1, then two implicit tasks, of which one blocks.
 */
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static int wake_fd, end_fd;
static const char *wake_name;

static bool readable(int fd, int patience_ms)
{
    pollfd asked{fd, POLLIN, 0};
    return poll(&asked, 1, patience_ms) > 0;
}

static bool ended() { return readable(end_fd, 0); }

static void hear()
{
    char line[2];
    if (read(wake_fd, line, sizeof line) != sizeof line)
        abort();
}

static void say(const char *word)
{
    puts(word);
    fflush(stdout);
}

static double spin(long steps)
{
    volatile double x = 0;
    for (long i = 0; i < steps; i++)
        x = x + 1;
    return x;
}

static void region()
{
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 10) reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
    if (sum != 499500)
        abort();
}

static void compute_in_loops()
{
    while (!ended()) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < 400; i++)
            spin(30000);
    }
}

static void compute_alone()
{
    while (!ended())
        spin(100000);
}

static void wait_for_futex()
{
    static int word;
    std::thread waker([] {
        hear();
        __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    });
    while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    waker.join();
}

static void wait_for_condition()
{
    std::mutex mutex;
    std::condition_variable condition;
    bool woken = false;
    std::thread waker([&] {
        hear();
        std::lock_guard<std::mutex> lock(mutex);
        woken = true;
        condition.notify_one();
    });
    {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [&] { return woken; });
    }
    waker.join();
}

static void wait_for_epoll()
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, wake_fd, &event) ||
        epoll_wait(fd, &event, 1, -1) != 1)
        abort();
    close(fd);
    hear();
}

static void wait_for_child()
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        hear();
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status)
        abort();
}

static void wait_for_command()
{
    if (system((std::string("read line <") + wake_name).c_str()))
        abort();
}

/* A page that comes from slow storage: another thread brings it. */
static void wait_for_page()
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    uffdio_api api{UFFD_API, 0, 0};
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register all{{(uintptr_t)page, bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || page == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &all))
        abort();
    std::thread storage([&] {
        hear();
        uffdio_zeropage empty{{(uintptr_t)page, bytes}, 0, 0};
        if (ioctl(fd, UFFDIO_ZEROPAGE, &empty))
            abort();
    });
    if (*static_cast<volatile char *>(page))
        abort();
    storage.join();
    close(fd);
    munmap(page, bytes);
}

/* The calling thread's next system call of this number sleeps in the kernel until another thread hears,
 * and is carried out then.  Returns that thread.  Its signal makes the sleep uninterruptible, as that of
 * a call to a disk is. */
static std::thread slow_storage(unsigned call)
{
    sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter{sizeof lines / sizeof *lines, lines};
    int fd = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -1 : (int)syscall(
        SYS_seccomp, SECCOMP_SET_MODE_FILTER,
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
    pthread_t caller = pthread_self();
    if (fd < 0 || signal(SIGUSR1, [](int) {}) == SIG_ERR)
        abort();
    return std::thread([fd, caller] {
        seccomp_notif asked{};
        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) || pthread_kill(caller, SIGUSR1))
            abort();
        hear();
        seccomp_notif_resp answer{asked.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer))
            abort();
    });
}

static std::string data_name() { return std::string(wake_name) + ".data"; }

static void wait_for_fsync()
{
    int fd = open(data_name().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    std::thread storage = slow_storage(SYS_fsync);
    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd))
        abort();
    storage.join();
    close(fd);
}

static void wait_for_mpi_io()
{
#ifdef WITH_MPI
    MPI_File file;
    if (MPI_File_open(MPI_COMM_SELF, data_name().c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                      MPI_INFO_NULL, &file))
        abort();
    std::thread storage = slow_storage(SYS_pwrite64);
    if (MPI_File_write_at(file, 0, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE))
        abort();
    storage.join();
    MPI_File_close(&file);
#endif
}

/* Of two implicit tasks, one blocks on the core that the process has borrowed. */
static volatile sig_atomic_t asked;

static void wait_on_borrowed_core()
{
    signal(SIGUSR1, [](int) { asked = 1; });
    say("borrows");
    while (!asked) {
#pragma omp parallel for schedule(dynamic, 1)
        for (int i = 0; i < 40; i++)
            spin(30000);
    }
    volatile bool begun = false;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) {
            begun = true;
            say("blocks");
            hear();
        } else {
            while (!begun)
                spin(1000);
        }
    }
}

static void wait_for_another_program(const char *how)
{
    std::thread other([how] {
        hear();
        if (!strcmp(how, "exit"))
            exit(0);
        if (!strcmp(how, "kill"))
            raise(SIGKILL);
        std::string line = std::string("exec sleep 60 <>") + wake_name;
        execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char *>(nullptr));
    });
    other.join();
    abort();
}

/* Connected TCP sockets of the loopback interface. */
static void connect_sockets(int &one, int &other)
{
    sockaddr_in address = {};
    socklen_t bytes = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr *name = reinterpret_cast<sockaddr *>(&address);
    int listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listens < 0 || one < 0 || bind(listens, name, bytes) || listen(listens, 1) ||
        getsockname(listens, name, &bytes) || connect(one, name, bytes) ||
        (other = accept4(listens, nullptr, nullptr, SOCK_CLOEXEC)) < 0)
        abort();
    close(listens);
}

/* recv, from a thread that has read what wakes us. */
static void wait_for_socket(bool tcp)
{
    int ends[2];
    char byte;
    if (tcp)
        connect_sockets(ends[0], ends[1]);
    else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        abort();
    std::thread sender([&ends] {
        hear();
        if (send(ends[1], "x", 1, 0) != 1)
            abort();
    });
    if (recv(ends[0], &byte, 1, 0) != 1)
        abort();
    sender.join();
    close(ends[0]);
    close(ends[1]);
}

static void block(const std::string &how)
{
    if (how == "sleep") {
        while (!readable(wake_fd, 0))
            usleep(200000);
        hear();
    } else if (how == "poll") {
        readable(wake_fd, -1);
        hear();
    } else if (how == "read") {
        hear();
    } else if (how == "epoll") {
        wait_for_epoll();
    } else if (how == "waitpid") {
        wait_for_child();
    } else if (how == "system") {
        wait_for_command();
    } else if (how == "join") {
        std::thread(hear).join();
    } else if (how == "condition") {
        wait_for_condition();
    } else if (how == "future") {
        std::async(std::launch::async, hear).get();
    } else if (how == "futex") {
        wait_for_futex();
    } else if (how == "socket" || how == "tcp") {
        wait_for_socket(how == "tcp");
    } else if (how == "fault") {
        wait_for_page();
    } else if (how == "fsync") {
        wait_for_fsync();
    } else if (how == "mpi-io") {
        wait_for_mpi_io();
    } else if (how == "workers") {
        std::thread one(compute_alone), other(compute_alone);
        one.join();
        other.join();
    } else {
        wait_for_another_program(how.c_str());
    }
}

int main(int argc, char **argv)
{
    std::string how = argc == 4 ? argv[1] : "";
    wake_name = argv[2];
    if (how.empty() || (wake_fd = open(wake_name, O_RDWR)) < 0 ||
        (end_fd = open(argv[3], O_RDWR)) < 0)
        return 2;
#ifdef WITH_MPI
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1)
        how = "computes";
#endif
    region();
    if (how == "computes") {
        compute_in_loops();
    } else {
        if (how == "borrows") {
            wait_on_borrowed_core();
        } else {
            say("blocks");
            block(how);
        }
        say("woken");
        compute_alone();
        region();
        say("good");
    }
#ifdef WITH_MPI
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
#endif
    return 0;
}
