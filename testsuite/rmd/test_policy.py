# SPDX-License-Identifier: GPL-3.0-or-later
"""The policies (how many cores each process owns) and the placement (which ones) keep what
policy.h and placement.h promise, on random input."""

import random
import subprocess

import pytest

pytestmark = pytest.mark.sanitize
ROUNDS = 400


@pytest.fixture(scope="session")
def ask(build):
    """ask(QUESTIONS) - one list of numbers per question."""

    def run(questions):
        done = subprocess.run([build / "testsuite/rmd/programs/rmd_policy"],
                              input="\n".join(questions), capture_output=True, text=True,
                              timeout=60, check=True)
        return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]

    return run


def question(what, ncores, needs, rest=()):
    words = [what, ncores, len(needs), *(x for need in needs for x in need), *rest]
    return " ".join(str(word) for word in words)


def random_case(seed, known=False, ranges=True):
    r = random.Random(seed)
    nprocs = r.randint(1, 20)
    ncores = r.choice([r.randint(1, 64), r.randint(nprocs, 4 * nprocs), 1024])
    needs = []
    for _ in range(nprocs):
        low = r.choice([0, 0, r.randint(0, ncores)]) if ranges else 0
        high = r.choice([0, 0, r.randint(low, ncores)]) if ranges else 0
        load = 10 ** r.uniform(-3, 3) if known or r.random() < 0.8 else 0
        needs.append((low, high, r.randint(0, 3), load))
    return ncores, needs


@pytest.mark.parametrize("policy", ["equal", "workload"])
def test_every_distribution_keeps_to_cores_and_ranges(ask, policy):
    cases = [random_case(seed) for seed in range(ROUNDS)]
    answers = ask([question(policy, *case) for case in cases])
    assert len(answers) == ROUNDS
    for (ncores, needs), target in zip(cases, answers):
        minima = [max(need[0], 1) for need in needs]
        maxima = [max(need[1] or ncores, low) for need, low in zip(needs, minima)]
        where = f"{ncores} cores, {needs} -> {target}"
        assert sum(target) == min(ncores, sum(maxima)), where
        if ncores >= len(needs):
            assert min(target) >= 1, where
        if sum(minima) <= ncores:
            assert all(a <= d <= b for a, d, b in zip(minima, target, maxima)), where
        elif ncores >= len(needs):
            assert all(1 <= d <= a for a, d in zip(minima, target)), where


def test_without_ranges_a_share_is_within_one_core_of_its_quota(ask):
    cases = [random_case(seed, known=True, ranges=False) for seed in range(ROUNDS)]
    answers = ask([question("workload", *case) for case in cases])
    for (ncores, needs), target in zip(cases, answers):
        quota = [ncores * need[3] / sum(n[3] for n in needs) for need in needs]
        if min(quota) >= 1:
            assert all(abs(d - q) < 1 + 1e-6 for d, q in zip(target, quota)), (needs, target)


def test_more_workload_never_gets_fewer_cores(ask):
    questions = []
    for seed in range(ROUNDS):
        ncores, needs = random_case(seed, known=True)
        who = seed % len(needs)
        for factor in (1, 1.0001, 1.1, 2, 50):
            more = list(needs)
            more[who] = (*needs[who][:3], needs[who][3] * factor)
            questions.append(question("workload", ncores, more))
    answers = ask(questions)
    for seed in range(ROUNDS):
        five = answers[5 * seed:5 * seed + 5]
        who = seed % len(five[0])
        got = [target[who] for target in five]
        assert got == sorted(got), (questions[5 * seed], got)


def test_equal_needs_get_equal_shares(ask):
    for target in ask([question(p, 10, [(0, 0, 0, w)] * 4) for p in ("equal", "workload")
                       for w in (0, 1, 1e300, 1e-300)]):
        assert sorted(target) == [2, 2, 3, 3]


def test_small_machines_are_divided_as_in_the_examples(ask):
    assert ask([question("workload", 2, [(0, 0, 1, 1), (0, 0, 1, 9)]),
                question("workload", 10, [(0, 0, 5, 1), (0, 0, 5, 9)]),
                question("workload", 20, [(0, 0, 0, 1), (0, 0, 0, 2), (0, 0, 0, 1)]),
                question("workload", 8, [(0, 0, 0, 0), (0, 0, 0, 0)]),
                question("workload", 8, [(0, 2, 0, 9), (0, 0, 0, 1)]),
                question("workload", 1, [(0, 0, 0, 1), (0, 0, 1, 1)])]) == [
        [1, 1], [1, 9], [5, 10, 5], [4, 4], [2, 6], [0, 1]]


@pytest.mark.parametrize("load", ["nan", "inf", "-1", "1e999", "-inf"])
def test_a_senseless_workload_is_an_unknown_one(ask, load):
    needs = [(0, 0, 0, load), (0, 0, 0, 5), (0, 0, 0, 5)]
    assert ask([question("workload", 9, needs)]) == [[3, 3, 3]]


def test_a_gain_of_noise_moves_nothing_and_a_broken_range_always_does(ask):
    def needs(*loads):
        return [(0, 0, 8, load) for load in loads]

    assert ask([question("worthwhile", 16, needs(1, 1), (8, 8)),
                question("worthwhile", 16, needs(1, 1.01), (7, 9)),
                question("worthwhile", 16, needs(1, 9), (2, 14)),
                question("worthwhile", 16, [(0, 4, 8, 1), (0, 0, 8, 1)], (4, 12)),
                question("worthwhile", 17, needs(1, 1), (8, 9))]) == [[0], [0], [1], [1], [1]]


# --- throughput: scalability graphs

def random_graph(r, ncores):
    """Points of a random monotone and concave speed-up, some of them none."""
    if r.random() < 0.2:
        return []
    cores = sorted(r.sample(range(1, ncores + 1), min(ncores, r.randint(1, 8))))
    points, steepest, last = [], 1.0, (0, 0.0)
    for c in cores:
        steepest *= r.choice([1, 1, r.random(), 0.01 if points else 1])
        last = (c, last[1] + steepest * (c - last[0]))
        points.append(last)
    return points


def speedup(points, cores):
    """S(cores), as invasive.h says."""
    known = [(0, 0.0), *points]
    i = 1
    while i < len(known) - 1 and known[i][0] < cores:
        i += 1
    (c0, s0), (c1, s1) = known[i - 1], known[i]
    return s0 + (s1 - s0) / (c1 - c0) * (cores - c0)


def throughput(graphs, distribution):
    return sum(speedup(g, d) for g, d in zip(graphs, distribution))


def graph_words(graphs):
    return [x for g in graphs for x in (len(g), *(f"{v:.9g}" for point in g for v in point))]


def distributions(ncores, ranges):
    """All distributions within the ranges that give out every core."""
    if len(ranges) == 1:
        low, high = ranges[0]
        return [(ncores,)] if low <= ncores <= high else []
    return [(d, *rest) for d in range(ranges[0][0], min(ranges[0][1], ncores) + 1)
            for rest in distributions(ncores - d, ranges[1:])]


def test_no_distribution_has_more_throughput_than_the_policys(ask):
    cases = []
    for seed in range(ROUNDS // 2):
        r = random.Random(seed)
        n = r.randint(1, 3)
        ncores = r.randint(n, 14)
        graphs = [random_graph(r, ncores) or [(1, 1.0)] for _ in range(n)]
        needs = []
        for _ in range(n):
            low = r.choice([0, 0, r.randint(1, max(1, ncores // n))])
            needs.append((low, r.choice([0, 0, r.randint(max(low, 1), ncores)]), 0, r.random()))
        cases.append((ncores, needs, graphs))
    answers = ask([question("throughput", ncores, needs, graph_words(graphs))
                   for ncores, needs, graphs in cases])
    for (ncores, needs, graphs), target in zip(cases, answers):
        ranges = [(max(low, 1), high or ncores) for low, high, *_ in needs]

        room = min(ncores, sum(high for _, high in ranges))
        assert sum(target) == room
        best = max(throughput(graphs, d) for d in distributions(room, ranges))
        assert throughput(graphs, target) >= best - 1e-3, (ncores, needs, graphs, target)


def test_throughput_keeps_to_cores_and_ranges(ask):
    cases = []
    for seed in range(ROUNDS):
        ncores, needs = random_case(seed)
        graphs = [random_graph(random.Random(seed), ncores) for _ in needs]
        cases.append((ncores, needs, graphs))
    answers = ask([question("throughput", ncores, needs, graph_words(graphs))
                   for ncores, needs, graphs in cases])
    for (ncores, needs, _), target in zip(cases, answers):
        minima = [max(need[0], 1) for need in needs]
        maxima = [max(need[1] or ncores, low) for need, low in zip(needs, minima)]
        assert sum(target) == min(ncores, sum(maxima))
        if sum(minima) <= ncores:
            assert all(a <= d <= b for a, d, b in zip(minima, target, maxima))


def test_cores_go_where_they_speed_something_up(ask):
    flat, half, unknown = [(1, 1), (2, 1)], [(1, 1), (8, 4.5)], []
    needs = [(0, 0, 0, 1), (0, 0, 0, 1)]
    assert ask([question("throughput", 8, needs, graph_words(graphs))
                for graphs in ([flat, half], [half, flat], [half, half], [unknown, flat],
                               [unknown, unknown])]) == [
        [1, 7], [7, 1], [4, 4], [4, 4], [4, 4]]


@pytest.mark.parametrize("points", [
    [(2, 1), (2, 1)], [(2, 2), (1, 1)], [(1, "nan")], [(4, "inf")], [(1, -1)], [(1, 0)]])
def test_points_out_of_order_or_without_speed_are_not_valid(ask, points):
    words = [len(points), *(x for point in points for x in point)]
    assert ask([question("throughput", 8, [(0, 0, 0, 1)], words)]) == [[-1]]


# --- placement

def runs(owner, who):
    return sum(o == who and (i == 0 or owner[i - 1] != who) for i, o in enumerate(owner))


def test_a_placement_moves_as_few_cores_as_it_can(ask):
    cases = []
    for seed in range(ROUNDS):
        r = random.Random(seed)
        n, ncores = r.randint(1, 8), r.randint(1, 40)
        owner = [r.randint(-1, n - 1) for _ in range(ncores)]
        cuts = sorted(r.randint(0, ncores) for _ in range(n))
        target = [b - a for a, b in zip([0, *cuts], cuts)]
        keep = [r.choice([-1, r.randint(0, ncores - 1)]) for _ in range(n)]
        cases.append((ncores, owner, target, keep))
    answers = ask([question("place", ncores, [(t, k, -1) for t, k in zip(target, keep)], owner)
                   for ncores, owner, target, keep in cases])
    for (ncores, before, target, keep), (moved, *after) in zip(cases, answers):
        assert len(after) == ncores
        assert [after.count(p) for p in range(len(target))] == target
        assert moved == sum(a != b for a, b in zip(before, after))
        for core, (a, b) in enumerate(zip(before, after)):
            if a == b:
                continue
            assert a == -1 or before.count(a) > target[a], "taken from one who had not too many"
            assert b == -1 or before.count(b) < target[b], "given to one who had not too few"
            assert a == -1 or keep[a] != core or target[a] == 0 or all(
                before[c] != a or after[c] != a for c in range(ncores)), "its home was taken"


def test_contiguous_ranges_stay_contiguous(ask):
    for n, shares in ((2, [(8, 8), (2, 14), (14, 2), (1, 15), (8, 8)]),
                      (3, [(5, 5, 6), (2, 6, 8), (10, 3, 3)])):
        owner = [-1] * 16
        for target in shares:
            (moved, *owner), = ask([question("place", 16, [(t, -1, -1) for t in target], owner)])
            assert n != 2 or [runs(owner, p) for p in range(n)] == [1, 1], (target, owner)


def test_a_process_without_cores_begins_where_it_wishes(ask):
    assert ask([question("place", 4, [(2, -1, 2), (0, -1, 0)], [-1] * 4)]) == [[2, -1, -1, 0, 0]]
