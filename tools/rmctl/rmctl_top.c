/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * rmctl_top.c - rmctl top: what status shows, orders too, again and again, with rates between two
 * looks and a map of cores x processes.  On a terminal by ncurses, which knows terminals, their
 * sizes and how to leave them as they were; elsewhere, or with --batch, as plain text or lines of
 * JSON.
 */
#define _GNU_SOURCE
#include "client/client.h"
#include "tools/rmctl/rmctl.h"
#include "tools/rmctl/rmctl_admin_snapshot.h"
#include "tools/rmctl/rmctl_view.h"

#include <errno.h>
#include <fcntl.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DOMAINS = 16, COLOURS = 6, BATCH_COLUMNS = 100, PLAIN = -1 };

static const struct argp_option top_options[] = {
    {"delay", 'd', "S", 0, "a frame every S seconds (default 1; 0.05 to 3600)", 0},
    {"batch", 'b', NULL, 0, "plain text, one frame after the other, as without a terminal", 0},
    {"frames", 'n', "N", 0, "end after N frames", 0},
    RMCTL_USER_OPTION("of this user, for an operator; default: your own"),
    {0}};

struct top {
    double delay_s;
    bool batch;
    unsigned frames; /* 0: no end */
    struct rmd_client_user of;
    struct {
        /* What is shown.  Writer: read_views */
        struct view looks[2][DOMAINS]; /* of this frame and the one before, in turns */
        struct inv_admin_snapshot *orders[DOMAINS]; /* of this frame; NULL: unknown */
        unsigned turn, ndomains;
        /* And where.  Writers: the functions that draw, and those that run in batch or on a
         * terminal */
        bool on_terminal;
        int columns, row, column;
        int rows; /* in which something stands, also below the screen */
    } frame;
};

static error_t parse_top_option(int key, char *arg, struct argp_state *state)
{
    struct top *t = state->input;
    char *end;
    switch (key) {
    case 'd':
        t->delay_s = strtod(arg, &end);
        if (end == arg || *end || !(t->delay_s >= 0.05 && t->delay_s <= 3600))
            argp_error(state, "--delay '%s': use seconds from 0.05 to 3600", arg);
        return 0;
    case 'b':
        t->batch = true;
        return 0;
    case 'n':
        t->frames = rmctl_number(state, "-n", arg, 1, 1u << 30);
        return 0;
    case RMCTL_USER_KEY:
        t->of.uid = rmctl_user(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is one argument too many", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- looking */

static void read_views(struct top *t, const struct rmctl_sockets *s)
{
    t->frame.turn = !t->frame.turn;
    t->frame.ndomains = 0;
    for (unsigned i = 0; i < s->count && t->frame.ndomains < DOMAINS; i++) {
        struct inv_table *table = rmd_client_observe(s->name[i], &t->of);
        if (!table)
            continue;
        view_read(&t->frame.looks[t->frame.turn][t->frame.ndomains], table, s->name[i]);
        inv_table_unmap(table);
        free(t->frame.orders[t->frame.ndomains]);
        t->frame.orders[t->frame.ndomains++] = rmd_client_admin_snapshot(s->name[i], t->of.uid);
    }
}

/* The same domain or process as it was before; NULL: it is new. */
static const struct view *view_before(const struct top *t, const struct view *now)
{
    for (unsigned i = 0; i < DOMAINS; i++) {
        const struct view *v = &t->frame.looks[!t->frame.turn][i];
        if (!strcmp(v->socket, now->socket) && v->rmd_pid == now->rmd_pid)
            return v;
    }
    return NULL;
}

struct rates {
    bool known;
    double lends, borrows, reclaims, evictions; /* a second */
    double efficiency;                          /* -1: it does not wait in MPI */
    double reclaim_us;                          /* mean time; -1: there was none */
};

static struct rates rates_of(const struct top *t, const struct view *now,
                             const struct view_process *p)
{
    const struct view *v = view_before(t, now);
    const struct view_process *q = v ? view_find_process(v, (int)p->slot) : NULL;
    if (!q || q->pid != p->pid || v->time_ns >= now->time_ns)
        return (struct rates){.efficiency = -1, .reclaim_us = -1};
    double s = (double)(now->time_ns - v->time_ns) * 1e-9;
    double useful = (double)(p->useful_ns - q->useful_ns), wait = (double)(p->wait_ns - q->wait_ns);
    uint64_t reclaims = p->reclaims - q->reclaims;
    return (struct rates){
        true,
        (double)(p->lends - q->lends) / s,
        (double)(p->borrows - q->borrows) / s,
        (double)reclaims / s,
        (double)(p->evictions - q->evictions) / s,
        useful + wait > 0 ? useful / (useful + wait) : -1,
        reclaims ? (double)(p->reclaim_wait_ns - q->reclaim_wait_ns) / (double)reclaims * 1e-3
                 : -1};
}

/* --- drawing: the same text for ncurses and for files */

static void draw_char(struct top *t, int colour, char c)
{
    t->frame.rows = t->frame.row + 1;
    if (t->frame.column++ >= t->frame.columns)
        return;
    if (!t->frame.on_terminal)
        putchar(c);
    else if (t->frame.row < LINES)
        mvaddch(t->frame.row, t->frame.column - 1,
                (chtype)(unsigned char)c |
                    (colour == PLAIN ? 0 : (chtype)COLOR_PAIR(colour % COLOURS + 1)));
}

static void __attribute__((format(printf, 3, 4)))
draw_text(struct top *t, int colour, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *c = text; *c; c++)
        draw_char(t, colour, *c);
}

static void end_line(struct top *t)
{
    if (!t->frame.on_terminal)
        putchar('\n');
    t->frame.row++;
    t->frame.column = 0;
}

static void draw_number(struct top *t, double value, const char *format)
{
    char text[32];
    snprintf(text, sizeof text, format, value);
    draw_text(t, PLAIN, " %8s", value < 0 ? "-" : text);
}

static void draw_process(struct top *t, const struct view *v, const struct view_process *p)
{
    struct rates r = rates_of(t, v, p);
    char rank[16] = "-";
    if (p->rank >= 0)
        snprintf(rank, sizeof rank, "%d", p->rank);
    draw_text(t, (int)p->slot, "%5u %8d %5s %-16.16s", p->slot, p->pid, rank, p->program);
    draw_text(t, PLAIN, " %5u %5u", p->owned, p->held);
    draw_number(t, r.efficiency < 0 ? -1 : r.efficiency * 100, "%.1f%%");
    draw_number(t, r.known ? r.lends : -1, "%.0f");
    draw_number(t, r.known ? r.borrows : -1, "%.0f");
    draw_number(t, r.known ? r.reclaims : -1, "%.0f");
    draw_number(t, r.reclaim_us, "%.0f");
    end_line(t);
}

/* Of the process's cores from..to-1: # computed on by it, + of another's, . lent. */
static char cell_of(const struct view *v, int slot, unsigned from, unsigned to)
{
    unsigned own = 0, borrowed = 0, lent = 0;
    for (unsigned c = from; c < to; c++) {
        const struct view_core *core = &v->core[c];
        own += core->holder == slot && core->owner == slot;
        borrowed += core->holder == slot && core->owner != slot;
        lent += core->holder != slot && core->owner == slot;
    }
    return own && own >= borrowed ? '#' : borrowed ? '+' : lent ? '.' : ' ';
}

static void draw_map(struct top *t, const struct view *v)
{
    int width = t->frame.columns - 8 > 8 ? t->frame.columns - 8 : 8;
    unsigned each = (v->ncores + (unsigned)width - 1) / (unsigned)width;
    draw_text(t, PLAIN, " cores x processes%s: # computing, + borrowed, . lent%s",
              each > 1 ? ", several cores a sign" : "", each > 1 ? "" : ", away ~");
    end_line(t);
    for (unsigned i = 0; i < v->nprocs; i++) {
        int slot = (int)v->process[i].slot;
        draw_text(t, slot, "%5d |", slot);
        for (unsigned c = 0; c < v->ncores; c += each)
            draw_char(t, slot, cell_of(v, slot, c, c + each < v->ncores ? c + each : v->ncores));
        draw_text(t, PLAIN, "|");
        end_line(t);
    }
    draw_text(t, PLAIN, " idle |");
    for (unsigned c = 0; c < v->ncores; c += each) {
        bool idle = false, away = false;
        for (unsigned k = c; k < c + each && k < v->ncores; k++) {
            away |= v->core[k].owner == VIEW_AWAY;
            idle |= v->core[k].holder == VIEW_NOBODY && v->core[k].owner != VIEW_AWAY;
        }
        draw_char(t, PLAIN, idle ? '-' : away ? '~' : ' ');
    }
    draw_text(t, PLAIN, "|");
    end_line(t);
}

/* Draws what a function of rmctl_admin_snapshot.h prints. */
static void draw_printed(struct top *t, void print(FILE *, const struct inv_admin_snapshot *),
                         const struct inv_admin_snapshot *o)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return;
    print(to, o);
    bool whole = !fclose(to);
    for (const char *c = text; whole && *c; c++) {
        if (*c == '\n')
            end_line(t);
        else
            draw_char(t, PLAIN, *c);
    }
    free(text);
}

static void draw_domain(struct top *t, const struct view *v, const struct inv_admin_snapshot *o)
{
    const struct view *before = view_before(t, v);
    unsigned held = 0;
    for (unsigned i = 0; i < v->nprocs; i++)
        held += v->process[i].held;
    draw_text(t, PLAIN, "%s: ", v->socket);
    if (rmctl_of_another(t->of.uid))
        draw_text(t, PLAIN, "user %u, ", (unsigned)t->of.uid);
    draw_text(t, PLAIN, "%u %scores, %u in use, %u process%s", v->ncores,
              v->emulated ? "emulated " : "", held, v->nprocs, v->nprocs == 1 ? "" : "es");
    if (!v->pinned)
        draw_text(t, PLAIN, ", counted by tokens, %d free", v->free_tokens);
    else if (before && v->time_ns > before->time_ns)
        draw_text(t, PLAIN, ", owners change %.1f times a second",
                  (double)(v->owner_moves - before->owner_moves) * 1e9 /
                      (double)(v->time_ns - before->time_ns));
    end_line(t);
    if (o)
        draw_printed(t, admin_print_head, o);
    draw_text(t, PLAIN, "%5s %8s %5s %-16s %5s %5s %8s %8s %8s %8s %8s", "slot", "pid", "rank",
              "program", "owned", "held", "useful", "lends/s", "borrow/s", "recl./s", "mean us");
    end_line(t);
    for (unsigned i = 0; i < v->nprocs; i++)
        draw_process(t, v, &v->process[i]);
    if (o)
        draw_printed(t, admin_print_orders, o);
    if (v->pinned)
        draw_map(t, v);
    end_line(t);
}

/* In the last line of the screen, where there are rows below it. */
static void draw_rows_left_out(struct top *t)
{
    int more = t->frame.rows - (LINES - 1);
    if (t->frame.rows <= LINES)
        return;
    t->frame.row = LINES - 1;
    t->frame.column = 0;
    move(t->frame.row, 0);
    clrtoeol();
    draw_text(t, PLAIN, "%d more lines: a taller terminal shows them, or --batch", more);
}

static void draw_frame(struct top *t)
{
    char clock[16];
    time_t now = time(NULL);
    struct tm tm;
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
    t->frame.row = t->frame.column = t->frame.rows = 0;
    draw_text(t, PLAIN, "rmctl top  %s  every %g s%s", clock, t->delay_s,
              t->frame.on_terminal ? "  q: quit" : "");
    end_line(t);
    for (unsigned i = 0; i < t->frame.ndomains; i++)
        draw_domain(t, &t->frame.looks[t->frame.turn][i], t->frame.orders[i]);
    if (!t->frame.ndomains) {
        draw_text(t, PLAIN, "%s", *t->of.why ? t->of.why : "no rmd answers");
        end_line(t);
    }
    if (t->frame.on_terminal)
        draw_rows_left_out(t);
}

/* --- JSON */

static json_t *number_or_null(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

static void add_rates(const struct top *t, json_t *process, const struct view *v,
                      const struct view_process *p)
{
    struct rates r = rates_of(t, v, p);
    json_object_set_new(process, "lends_per_s", number_or_null(r.known, r.lends));
    json_object_set_new(process, "borrows_per_s", number_or_null(r.known, r.borrows));
    json_object_set_new(process, "reclaims_per_s", number_or_null(r.known, r.reclaims));
    json_object_set_new(process, "evictions_per_s", number_or_null(r.known, r.evictions));
    json_object_set_new(process, "efficiency", number_or_null(r.efficiency >= 0, r.efficiency));
}

static int print_frame_as_json(const struct top *t)
{
    json_t *domains = json_array();
    for (unsigned i = 0; i < t->frame.ndomains; i++) {
        const struct view *v = &t->frame.looks[t->frame.turn][i];
        json_t *domain = admin_snapshot_json(t->frame.orders[i], v),
               *processes = json_object_get(domain, "processes");
        for (unsigned p = 0; p < v->nprocs; p++)
            add_rates(t, json_array_get(processes, p), v, &v->process[p]);
        json_array_append_new(domains, domain);
    }
    return rmctl_print_json(json_pack("{so}", "domains", domains));
}

/* --- frames */

static void handle_end_signal(int signal)
{
    int error = errno;
    (void)signal;
    rmctl_common.end_signal_came = 1;
    if (write(rmctl_common.end_pipe[1], "", 1) < 0) /* full: there is enough to read */
        errno = error;
}

static void end_on_signals(void)
{
    /* no SA_RESTART: other waits end, too */
    struct sigaction a = {.sa_handler = handle_end_signal};
    if (rmctl_common.end_pipe[0] < 0 && pipe2(rmctl_common.end_pipe, O_NONBLOCK | O_CLOEXEC))
        /* then a signal may be slept through, for one frame */
        rmctl_common.end_pipe[0] = rmctl_common.end_pipe[1] = -1;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
}

/* Waits until the time has passed, a signal has come, or `fd` (-1: none) can be read.  False: it
 * never can be again. */
static bool wait_for_input(int fd, double seconds)
{
    struct pollfd p[] = {{.fd = rmctl_common.end_pipe[0], .events = POLLIN},
                         {.fd = fd, .events = POLLIN}};
    if (poll(p, 2, (int)(seconds * 1000)) <= 0)
        return true;
    return !(p[1].revents & (POLLHUP | POLLERR | POLLNVAL));
}

static int print_frame(struct top *t)
{
    if (rmctl_common.json)
        return print_frame_as_json(t);
    draw_frame(t);
    return fflush(stdout) ? RMCTL_FAILED : RMCTL_OK;
}

static int run_in_batch(struct top *t, const struct rmctl_sockets *s)
{
    const char *said = getenv("COLUMNS");
    t->frame.columns = said && atoi(said) > 0 ? atoi(said) : BATCH_COLUMNS;
    for (unsigned n = 0; !rmctl_common.end_signal_came && (!t->frames || n < t->frames); n++) {
        if (n)
            wait_for_input(-1, t->delay_s);
        if (rmctl_common.end_signal_came)
            break;
        read_views(t, s);
        if (print_frame(t) != RMCTL_OK)
            return RMCTL_FAILED;
    }
    return RMCTL_OK;
}

static void use_colours(void)
{
    static const short colours[COLOURS] = {COLOR_GREEN, COLOR_CYAN, COLOR_YELLOW,
                                           COLOR_MAGENTA, COLOR_BLUE, COLOR_RED};
    if (!has_colors())
        return;
    start_color();
    use_default_colors();
    for (short i = 0; i < COLOURS; i++)
        init_pair((short)(i + 1), colours[i], -1);
}

/* Waits for a key, a change of the size (a key to ncurses) or the next frame.  False: that was
 * the end. */
static bool wait_for_key(const struct top *t)
{
    bool quit = !wait_for_input(STDIN_FILENO, t->delay_s), resized = false;
    timeout(0);
    for (int key; !quit && (key = getch()) != ERR;) {
        resized |= key == KEY_RESIZE;
        quit = key == 'q' || key == 'Q';
    }
    if (resized)
        clearok(curscr, TRUE); /* terminals leave all sorts of things behind */
    return !rmctl_common.end_signal_came && !quit;
}

static int run_on_terminal(struct top *t, const struct rmctl_sockets *s)
{
    unsetenv("COLUMNS"); /* they would win over the terminal, also when its size changes */
    unsetenv("LINES");
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        fprintf(stderr, "rmctl top: terminal type '%s' is unknown: set TERM, or use --batch\n",
                getenv("TERM") ? getenv("TERM") : "");
        return RMCTL_FAILED;
    }
    t->frame.on_terminal = true;
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    use_colours();
    end_on_signals(); /* after ncurses has set its own */
    for (unsigned n = 0; !rmctl_common.end_signal_came && (!t->frames || n < t->frames); n++) {
        if (n && !wait_for_key(t))
            break;
        read_views(t, s);
        t->frame.columns = COLS;
        erase();
        draw_frame(t);
        refresh();
    }
    endwin();
    delscreen(terminal);
    return RMCTL_OK;
}

static int show_domains(struct top *t)
{
    struct rmctl_sockets sockets;
    if (!rmctl_find_for(&sockets, t->of.uid))
        return RMCTL_FAILED;
    read_views(t, &sockets);
    if (!t->frame.ndomains) {
        rmctl_complain_of("look into", sockets.name[0], &t->of);
        return RMCTL_FAILED;
    }
    end_on_signals();
    bool plain = t->batch || rmctl_common.json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
    return plain ? run_in_batch(t, &sockets) : run_on_terminal(t, &sockets);
}

static int run_top(int argc, char **argv)
{
    struct top *t = calloc(1, sizeof *t);
    if (!t) {
        fprintf(stderr, "rmctl: no memory\n");
        return RMCTL_FAILED;
    }
    t->delay_s = 1;
    t->of.uid = INV_UNSAID;
    rmctl_parse(argc, argv, top_options, parse_top_option, "",
                "Cores, processes and rates, again and again.", t);
    int status = show_domains(t);
    for (unsigned i = 0; i < DOMAINS; i++)
        free(t->frame.orders[i]);
    free(t);
    return status;
}

const struct rmctl_command rmctl_top_command = {
    "top", "the same, live, with rates", run_top, top_options};
