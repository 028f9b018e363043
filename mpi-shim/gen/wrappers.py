# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The bodies of the wrappers, by kind; generate.py writes them out."""

# Any rank of the domain may complete the request.
SET_ALL_AS_PEER = "shim_request_set_peer(*request, SHIM_DOMAIN_RANK_ALL);"


def request_form(f, args=None, request="request"):
    """A call of the non-blocking function."""
    values = f.values() if args is None else args
    small = f.name.removesuffix(f.large)
    return f"shim_pmpi.I{small.lower()}{f.large}({values}{', ' if values else ''}&{request})"


def start(f, args=None):
    """Calls the non-blocking function.  The wrapper returns its errors.  With MPICH an error
    handler may turn an error into a success, and then there is no request."""
    yield "    MPI_Request request = MPI_REQUEST_NULL;"
    yield f"    int result = {request_form(f, args)};"
    yield "    if (result != MPI_SUCCESS)\n        return result;"


def only_if(condition, f):
    """A call that MPI will refuse goes to MPI's own function, which reports the error."""
    yield f"    if (!({condition}))"
    yield f"        return {f.direct()};"


def only_if_managed(condition, f):
    """As only_if.  Ranks of other jobs may not be managed, so MPI's own function is watched."""
    yield f"    if (!({condition}))"
    yield "        return SHIM_WATCH_UNMANAGED(c,"
    yield f"                                  {f.direct()});"


def watched(f, comm="NULL", peer="SHIM_DOMAIN_RANK_NONE", other="SHIM_DOMAIN_RANK_NONE"):
    """Where the library calls the shim while it polls, MPI's own function is called, watched."""
    yield f"    if ({'shim_watches' if comm == 'NULL' else 'shim_hooked'}())"
    yield f"        return SHIM_WATCH({comm}, {peer}, {other},"
    yield f"                          {f.direct()});"


def polled(f, comm="c"):
    yield f"    return polled_{f.name}({comm}, {f.values()});"


# The fast path of a guard (fast_path.h): its condition, what comes before MPI's function, and what
# rings other ranks after it.

def fast_path_send(f):
    yield "shim_fast_path_peer(c, dest)"
    yield "shim_watch_start(site, NULL, false, c->domain_rank_of[dest], SHIM_DOMAIN_RANK_NONE);"
    yield "shim_ring(shim_watch.peer[0]);"


def fast_path_recv(f):
    yield "shim_fast_path_peer(c, source)"
    yield "shim_watch_start(site, NULL, false, c->domain_rank_of[source], SHIM_DOMAIN_RANK_NONE);"
    yield "shim_ring(shim_watch.peer[0]);"


def fast_path_sendrecv(f):
    yield "shim_fast_path_peer(c, dest) && shim_fast_path_peer(c, source)"
    yield "shim_watch_start(site, NULL, false, c->domain_rank_of[dest], c->domain_rank_of[source]);"
    yield "shim_ring(shim_watch.peer[0]);\n    shim_ring(shim_watch.peer[1]);"


def fast_path_sync(f):
    yield f"c->line && {valid_arguments(f)}"
    yield "shim_fast_path_arrival(site, c);"
    yield "shim_ring_sleepers(shim_watch.comm, true);"


def fast_path_coll(f):
    yield f"c->board_tried && {valid_arguments(f)} && !shim_alone(c)"
    yield "shim_watch_start(site, c, false, SHIM_DOMAIN_RANK_NONE, SHIM_DOMAIN_RANK_NONE);"
    yield "shim_ring_sleepers(shim_watch.comm, false);"


def wrapper_send(f):
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield from only_if("shim_send_valid(c, buf, count, datatype, dest, tag)", f)
    yield from watched(f, peer="shim_domain_rank(c, dest)")
    yield from polled(f)


def polled_send(f):
    yield from start(f)
    yield "    shim_ring_rank(c, dest);"
    yield "    bool suspended = shim_errhandler_suspend(c);"
    yield "    int domain_rank = shim_domain_rank(c, dest);"
    yield "    result = shim_wait_one(&request, MPI_STATUS_IGNORE, domain_rank, SHIM_SITE);"
    yield "    return shim_errhandler_resume(suspended, comm, result);"


def wrapper_recv(f):
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield from only_if("shim_recv_valid(c, buf, count, datatype, source, tag)", f)
    yield from watched(f, peer="shim_domain_rank(c, source)")
    yield from polled(f)


def polled_recv(f):
    yield from start(f, f.values().removesuffix(", status"))
    yield "    int domain_rank = shim_domain_rank(c, source);"
    yield "    shim_ring(domain_rank);"
    yield "    bool suspended = shim_errhandler_suspend(c);"
    yield "    result = shim_wait_one(&request, status, domain_rank, SHIM_SITE);"
    yield "    return shim_errhandler_resume(suspended, comm, result);"


def wrapper_mrecv(f):
    yield from only_if("shim_matched_valid(message, count, datatype)", f)
    yield from watched(f, peer="SHIM_DOMAIN_RANK_ALL")
    yield from polled(f, "NULL")


def polled_mrecv(f):
    yield "    (void)c;"
    yield from start(f, f.values().removesuffix(", status"))
    yield "    shim_ring(SHIM_DOMAIN_RANK_ALL);"
    yield "    return shim_wait_one(&request, status, SHIM_DOMAIN_RANK_ALL, SHIM_SITE);"


def wrapper_sendrecv(f):
    """One end may be MPI_PROC_NULL: then the other end is all there is."""
    large = f.large
    recv = "recvbuf, recvcount, recvtype, source, recvtag, comm"
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield "    bool sends = shim_send_valid(c, sendbuf, sendcount, sendtype, dest, sendtag);"
    yield "    bool receives = shim_recv_valid(c, recvbuf, recvcount, recvtype, source, recvtag);"
    yield "    if (receives && dest == MPI_PROC_NULL &&"
    yield "        shim_data_valid(c, sendbuf, sendcount, sendtype, sendtag))"
    yield f"        return shim_Recv{large}({recv}, status);"
    yield from only_if("sends && receives", f)
    yield from watched(f, peer="shim_domain_rank(c, dest)", other="shim_domain_rank(c, source)")
    yield from polled(f)


def polled_sendrecv(f):
    large = f.large
    send = "sendbuf, sendcount, sendtype, dest, sendtag, comm"
    recv = "recvbuf, recvcount, recvtype, source, recvtag, comm"
    yield "    struct shim_exchange e = {.receive = MPI_REQUEST_NULL, .send = MPI_REQUEST_NULL,"
    yield "                              .source = source, .dest = dest, .call_site = SHIM_SITE};"
    yield f"    e.result = shim_pmpi.Irecv{large}({recv}, &e.receive);"
    yield "    if (shim_begun(e.receive, e.result, source))"
    yield f"        e.result = shim_pmpi.Isend{large}({send}, &e.send);"
    yield "    return shim_exchange_wait(&e, c, status);"


def done(f, *then):
    """The function itself; `then` where it has succeeded."""
    yield f"    int result = {f.direct()};"
    yield "    if (result == MPI_SUCCESS) {"
    yield from (f"        {line}" for line in then)
    yield "    }\n    return result;"


def wrapper_push(f):
    yield from done(f, "shim_ring_rank(shim_comm(comm), dest);")


def wrapper_post(f):
    """A matched message does not say whose it was."""
    if f.arg("message"):
        yield from done(f, SET_ALL_AS_PEER, "shim_ring(SHIM_DOMAIN_RANK_ALL);")
        return
    peer = f.arg("dest", "source")
    domain_rank, rings = f"shim_domain_rank(c, {peer})", [f"shim_ring_rank(c, {peer});"]
    if f.arg("dest") and f.arg("source"):
        domain_rank = "source == dest ? shim_domain_rank(c, dest) : SHIM_DOMAIN_RANK_ALL"
        rings = ["shim_ring_rank(c, source);", *rings]
    yield from done(f, "struct shim_comm *c = shim_comm(comm);",
                    f"shim_request_set_peer(*request, {domain_rank});", *rings)


def wrapper_init(f):
    domain_rank = f"shim_domain_rank(shim_comm(comm), {f.arg('dest', 'source')})"
    yield from done(f, f"shim_request_set_peer(*request, {domain_rank});")


def valid_arguments(f):
    """A test for errors in what every rank must pass."""
    tests = ["shim_managed(c)"]
    count, datatype = f.arg("count", "recvcount"), f.arg("datatype", "recvtype")
    if count and not (f.arg("root") and count == "recvcount"):  # for the root only, or not
        tests.append(f"{count} >= 0 && {datatype} != MPI_DATATYPE_NULL")
    if f.arg("op"):
        tests.append("op != MPI_OP_NULL")
    if f.arg("root"):
        tests.append("shim_root_valid(c, root)")
    if f.name.startswith("Neighbor"):
        tests.append("c->topology")
    return " && ".join(tests)


def wrapper_sync(f):
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield from only_if_managed(valid_arguments(f), f)
    yield "    struct shim_arrival a;"
    condition = "shim_arrival_begin(&a, c, SHIM_SITE)"
    if f.name.startswith(("Alltoallv", "Alltoallw")):
        # Open MPI 4.1's non-blocking ones give wrong data in place where messages are long, and
        # tags that differ between ranks where counts are 0 (coll/libnbc).
        yield "    bool in_place = sendbuf == MPI_IN_PLACE;"
        yield "    if (in_place)\n        shim_arrival_barrier(&a, c, SHIM_SITE);"
        condition = f"in_place || {condition}"
    yield f"    if ({condition}) {{"
    yield f"        int direct = {f.direct()};"
    yield "        shim_arrival_end(&a);\n        return direct;\n    }"
    yield from start(f)
    yield "    bool suspended = shim_errhandler_suspend(c);"
    yield "    return shim_errhandler_resume(suspended, comm,"
    yield "                                  shim_arrival_wait_request(&a, &request));"


def wrapper_coll(f):
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield from only_if_managed(valid_arguments(f) + " && !shim_alone(c)", f)
    yield "    shim_comm_board(c);"
    yield from watched(f, comm="c")
    if f.name == "Bcast":  # MPICH 4.0's MPI_Ibcast between two groups sends nothing, or aborts
        yield from only_if("!c->inter", f)
    if f.name.startswith("Neighbor_alltoall"):  # Open MPI: github.com/open-mpi/ompi/issues/14430
        yield from only_if("!c->repeated_neighbour", f)
    yield from polled(f)


def polled_coll(f):
    if f.name == "Reduce":  # not Reduce_c: a MPI_User_function's count is an int
        yield "    op = shim_reduce_op(c, count, datatype, op);"
    yield from start(f)
    yield "    bool suspended = shim_errhandler_suspend(c);"
    yield "    return shim_errhandler_resume(suspended, comm,"
    yield "                                  shim_wait_collective(&request, c, SHIM_SITE));"


def wrapper_icoll(f):
    yield from done(f, SET_ALL_AS_PEER, "shim_ring_comm(shim_comm(comm));")


def wrapper_cinit(f):
    yield from done(f, SET_ALL_AS_PEER)


def valid_construction(f):
    """A test for errors that one rank alone may make, and that MPI reports before it waits for the
    other ranks."""
    tests = ["shim_managed(c)"]
    if f.name == "Intercomm_merge":
        tests.append("c->inter")
    elif f.name not in ("Comm_split", "Comm_create"):
        tests.append("!c->inter")
    if f.arg("newcomm"):
        tests.append("newcomm")
    for name, test in (
        ("color", "(color >= 0 || color == MPI_UNDEFINED)"),
        ("group", "group != MPI_GROUP_NULL"),
        ("ndims", "ndims >= 0"),
        ("nnodes", "nnodes >= 0"),
        ("n", "n >= 0"),
        ("indegree", "indegree >= 0 && outdegree >= 0"),
        ("root", "shim_root_valid(c, root)"),
        ("size", "size >= 0"),
        ("disp_unit", "disp_unit > 0"),
        ("filename", "filename"),
    ):
        if f.arg(name):
            tests.append(test)
    return " && ".join(tests)


def wrapper_arrive(f):
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield from only_if_managed(valid_construction(f), f)
    yield "    struct shim_arrival a;"
    yield "    shim_arrival_barrier(&a, c, SHIM_SITE);"
    yield f"    int result = {f.direct()};"
    yield "    shim_arrival_end(&a);"
    yield "    return result;"


def wrapper_garrive(f):
    yield from watched(f)
    yield "    if (newcomm)"
    yield "        shim_arrival_barrier_group(group, tag, SHIM_SITE);"
    yield f"    return {f.direct()};"


def wrapper_create(f):
    made = f.arg("win", "file")
    yield "    struct shim_comm *c = shim_comm(comm);"
    yield from only_if_managed(f"{valid_construction(f)} && {made}", f)
    yield "    int tag = shim_hooked() ? 0 : shim_arrival_barrier_tag(c, SHIM_SITE);"
    none = f"MPI_{made.upper()}_NULL"
    yield f"    *{made} = {none}; /* stays so where an error handler makes a success of an error */"
    yield f"    int result = SHIM_WATCH_OR_CALL(SHIM_DOMAIN_RANK_NONE, {f.direct()});"
    yield f"    if (result == MPI_SUCCESS && *{made} != {none})"
    yield f"        shim_remember_{made}(*{made}, tag);"
    yield "    return result;"


def wrapper_warrive(f):
    yield from watched(f, peer="SHIM_DOMAIN_RANK_ALL")
    if f.arg("info"):
        yield "    if (info != MPI_INFO_NULL)"
    indent = "    " * (2 if f.arg("info") else 1)
    yield indent + "shim_opened_group_barrier(shim_opened_group_of_win(win), SHIM_SITE);"
    yield f"    return {f.direct()};"


def wrapper_farrive(f):
    tests = []
    yield from watched(f)
    for name, test in (
        ("count", "count >= 0 && datatype != MPI_DATATYPE_NULL"),
        ("offset", "offset >= 0" if not f.arg("whence") else None),
        ("size", "size >= 0"),
    ):
        if f.arg(name) and test:
            tests.append(test)
    if tests:
        yield f"    if ({' && '.join(tests)})"
    indent = "    " * (2 if tests else 1)
    yield indent + "shim_opened_group_barrier(shim_opened_group_of_file(file), SHIM_SITE);"
    yield f"    return {f.direct()};"


def wrapper_wake(f):
    change = {"Win_lock": 1, "Win_unlock": -1}.get(f.name.removesuffix("_all"))
    yield f"    int domain_rank = shim_wake_target(win, {f.arg('rank') or 'SHIM_RANKS_ALL'});"
    yield f"    int result = SHIM_WATCH_OR_CALL(domain_rank, {f.direct()});"
    if change:
        yield f"    shim_window_locked(win, result == MPI_SUCCESS ? {change} : 0);"
    yield "    return result;"


def wrapper_rpost(f):
    yield from done(f, "shim_request_set_peer(*request, shim_wake_target(win, rank));")


def wrapper_fpost(f):
    yield from done(f, SET_ALL_AS_PEER, "shim_opened_group_ring(shim_opened_group_of_file(file));")


def wrapper_drop(f):
    yield "    shim_forget_comm(comm);"
    yield f"    return {f.direct()};"
