# SPDX-License-Identifier: GPL-3.0-or-later
"""Every policy against what policy.h and rmd-policies(7) promise of it, on input that hypothesis
thinks of, and against exhaustive search where cases are small."""

import copy
import itertools
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.asked import Asked
from lib.building.build import FEWER

pytestmark = [pytest.mark.sanitize]
POLICIES = ("workload", "equal", "throughput", "makespan", "jobs", "fair", "energy", "interference")
BY_JOB = ("jobs", "fair", "energy", "interference")
# The same examples in every run, no deadline for one, nothing written to disk.
RULES = settings(derandomize=True, deadline=None, database=None, max_examples=150 // FEWER,
                 suppress_health_check=list(HealthCheck))


class Program(Asked):
    """testsuite/rmd/programs/rmd_policy."""

    def decide(self, policy, case, loss=0.05):
        ncores, needs = case
        return self.numbers("decide", policy, ncores, len(needs), loss,
                            *(word for n in needs for word in n.words()))

    def worth(self, policy, case, target, cost=0.001, within=0.1):
        ncores, needs = case
        answer = self.ask("worth", policy, ncores, len(needs), 0.05, cost, within,
                          *(word for n in needs for word in n.words()), *target)
        return answer[0] == "1", float(answer[1])

    def limited(self, policy, case, most, launches):
        ncores, needs = case
        return self.numbers("limited", policy, ncores, len(needs), 0.05, most, *launches,
                            *(word for n in needs for word in n.words()))

    def prioritized(self, policy, case, most, launches, priorities):
        ncores, needs = case
        return self.numbers("prioritized", policy, ncores, len(needs), 0.05, most, *launches,
                            *priorities, *(word for n in needs for word in n.words()))

    def curve(self, ncores, points):
        return [0.0, *(float(word) for word in
                       self.ask("curve", ncores, len(points), *itertools.chain(*points)))]


@pytest.fixture(scope="module")
def rmd(build):
    program = Program(build / "testsuite/rmd/programs/rmd_policy")
    yield program
    program.close()


class Need:
    """What is known of a process."""

    def __init__(self, least=0, most=0, owned=0, load=1.0, job=0, delivered=1.0, iteration=0.0,
                 graph=()):
        self.least, self.most, self.owned, self.load, self.job = least, most, owned, load, job
        self.delivered, self.iteration, self.graph = delivered, iteration, list(graph)

    def words(self):
        return [self.least, self.most, self.owned, self.load, self.job, self.delivered,
                self.iteration, len(self.graph), *itertools.chain(*self.graph)]

    def range(self, ncores):
        low = min(max(self.least, 1), ncores)
        return low, max(low, min(self.most or ncores, ncores))

    def __repr__(self):
        return f"Need{self.words()}"


@st.composite
def graphs(draw, ncores):
    """Any points that a process may announce: noisy, not concave, or none."""
    cores = draw(st.lists(st.integers(1, max(2, ncores)), max_size=5, unique=True))
    return [(c, round(draw(st.floats(0.2, 1)) * c, 4)) for c in sorted(cores)]


@st.composite
def cases(draw, most_procs=8, most_cores=40, ranges=True, plain=False):
    """(cores, needs); plain: one process a job, a known workload, whole cores."""
    n = draw(st.integers(1, most_procs))
    ncores = draw(st.integers(1 if ranges else n, most_cores))
    needs = []
    for i in range(n):
        least = draw(st.integers(0, ncores)) if ranges and draw(st.booleans()) else 0
        most = draw(st.integers(least, ncores)) if ranges and draw(st.booleans()) else 0
        load = draw(st.floats(0.01, 100)) if plain or draw(st.booleans()) else 0
        needs.append(Need(least, most, draw(st.integers(0, ncores)), load,
                          i if plain else draw(st.integers(0, n - 1)),
                          1 if plain else draw(st.sampled_from([0, 1, 0.5, 0.9])),
                          0 if plain else draw(st.sampled_from([0, 0, 0.01, 0.013])),
                          draw(graphs(ncores))))
    return ncores, needs


def ranges_of(case):
    ncores, needs = case
    return [need.range(ncores) for need in needs]


def fits(case):
    """Are there as many cores as all need at least?"""
    return sum(low for low, _ in ranges_of(case)) <= case[0]


def distributions(ncores, ranges):
    """All distributions within the ranges that give out as many cores as possible."""
    room = min(ncores, sum(high for _, high in ranges))
    return [d for d in itertools.product(*(range(low, high + 1) for low, high in ranges))
            if sum(d) == room]


def small_cases(most_procs=3, most_cores=10):
    return cases(most_procs, most_cores, plain=True).filter(fits)


# --- what holds for all

def test_all_policies_are_tried_here(rmd):
    assert tuple(rmd.ask("policies")) == POLICIES


@pytest.mark.parametrize("policy", POLICIES)
@RULES
@given(case=cases())
def test_every_distribution_keeps_to_cores_and_ranges(rmd, policy, case):
    ncores, needs = case
    ranges, target = ranges_of(case), rmd.decide(policy, case)
    most = min(ncores, sum(high for _, high in ranges))
    assert len(target) == len(needs)
    assert sum(target) <= most if policy == "energy" else sum(target) == most
    if ncores >= len(needs):
        assert min(target) >= 1
    if sum(low for low, _ in ranges) <= ncores:
        assert all(low <= d <= high for d, (low, high) in zip(target, ranges))
    elif ncores >= len(needs):
        assert all(1 <= d <= low for d, (low, _) in zip(target, ranges))


def decide_part(rmd, policy, needs, ncores, members):
    """The decision of the policy on `part` alone, whose jobs are numbered anew."""
    if not members or not ncores:
        return [0] * len(members)
    part = [copy.copy(needs[i]) for i in members]
    jobs = [need.job for need in part]
    for need in part:
        need.job = jobs.index(need.job)
    return rmd.decide(policy, (ncores, part))


def limited_part_by_part(rmd, policy, case, most, launches):
    """One by one, each launch that has too many cores becomes a machine of its own."""
    ncores, needs = case
    free, everybody = ncores, list(range(len(needs)))
    target = dict(zip(everybody, rmd.decide(policy, case)))
    while True:
        over = [of for of in (launches[i] for i in everybody)
                if sum(target[i] for i in everybody if launches[i] == of) > most]
        if not over:
            return [target[i] for i in range(len(needs))]
        its = [i for i in everybody if launches[i] == over[0]]
        target.update(zip(its, decide_part(rmd, policy, needs, most, its)))
        free -= sum(target[i] for i in its)
        everybody = [i for i in everybody if i not in its]
        target.update(zip(everybody, decide_part(rmd, policy, needs, free, everybody)))


@pytest.mark.parametrize("policy", POLICIES)
@RULES
@given(case=cases(), most=st.integers(1, 12), data=st.data())
def test_no_launch_owns_more_than_its_limit_and_others_have_the_rest(rmd, policy, case, most,
                                                                     data):
    """Launches are not the policy's jobs: each may have parts of several."""
    ncores, needs = case
    launches = [data.draw(st.integers(0, 2)) for _ in needs]
    target = rmd.limited(policy, case, most, launches)
    room = 0
    for launch in set(launches):
        its = [i for i, of in enumerate(launches) if of == launch]
        room += min(most, sum(needs[i].range(ncores)[1] for i in its))
        assert sum(target[i] for i in its) <= most
        if len(its) <= most and ncores >= len(needs):
            assert all(target[i] for i in its)
    assert sum(target) == min(ncores, room) or (policy == "energy" and sum(target) < room)
    assert rmd.limited(policy, case, ncores, launches) == rmd.decide(policy, case)
    assert target == limited_part_by_part(rmd, policy, case, most, launches)


@pytest.mark.parametrize("policy", POLICIES)
@RULES
@given(case=cases(), data=st.data())
def test_a_higher_priority_gets_all_that_it_can_use_but_the_least_of_the_others(rmd, policy, case,
                                                                               data):
    ncores, needs = case
    priorities = [data.draw(st.sampled_from([0, 50, 100])) for _ in needs]
    target = rmd.prioritized(policy, case, 0, [0] * len(needs), priorities)
    ranges, left = ranges_of(case), ncores
    assert sum(target) <= ncores
    if ncores >= len(needs):
        assert min(target) >= 1
    parts = sum(low for low, _ in ranges) <= ncores and len(set(priorities)) > 1
    for priority in sorted(set(priorities), reverse=True):
        its = [i for i, of in enumerate(priorities) if of == priority]
        least = sum(ranges[i][0] for i, of in enumerate(priorities) if of < priority)
        if parts:
            assert [target[i] for i in its] == decide_part(rmd, policy, needs, left - least, its)
        left -= sum(target[i] for i in its)
    assert rmd.prioritized(policy, case, 0, [0] * len(needs), [7] * len(needs)) == rmd.decide(
        policy, case)


@pytest.mark.parametrize("policy", POLICIES)
@RULES
@given(case=cases(), data=st.data())
def test_a_decision_depends_on_nothing_but_the_needs(rmd, policy, case, data):
    other = data.draw(cases())
    first = rmd.decide(policy, case)
    rmd.decide(policy, other)
    assert rmd.decide(policy, case) == first


@pytest.mark.parametrize("policy", ["workload", "makespan"])
@RULES
@given(case=cases(plain=True), who=st.integers(0, 7), factor=st.floats(1, 50))
def test_more_workload_never_gets_fewer_cores(rmd, policy, case, who, factor):
    ncores, needs = case
    who %= len(needs)
    before = rmd.decide(policy, case)
    needs[who].load *= factor
    assert rmd.decide(policy, (ncores, needs))[who] >= before[who]


@pytest.mark.parametrize("policy", POLICIES)
@RULES
@given(n=st.integers(1, 12), share=st.integers(1, 9), load=st.floats(0.001, 1000))
def test_processes_that_are_alike_get_the_same(rmd, policy, n, share, load):
    for graph in ([], [(1, 1), (4, 3), (8, 4)]):
        target = rmd.decide(policy, (n * share, [Need(load=load, job=i, graph=graph)
                                                 for i in range(n)]), loss=0)
        assert target == [share] * n or policy == "energy"


@pytest.mark.parametrize("policy", POLICIES)
@RULES
@given(case=cases())
def test_what_was_decided_is_decided_again(rmd, policy, case):
    """Otherwise cores would go to and fro: at a tie the owner keeps the core."""
    ncores, needs = case
    for need in needs:
        need.delivered, need.iteration = 1, 0
    target = rmd.decide(policy, case)
    for need, cores in zip(needs, target):
        need.owned = cores
    assert not rmd.worth(policy, case, rmd.decide(policy, case))[0] or \
        not fits(case)


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "energy"])
@pytest.mark.parametrize("owned", [(1, 2), (2, 1)])
def test_a_tie_is_for_the_process_that_has_the_core(rmd, policy, owned):
    assert rmd.decide(policy, (3, [Need(owned=o, job=i) for i, o in enumerate(owned)])) == \
        list(owned)


# --- curves

@RULES
@given(points=graphs(40))
def test_a_curve_is_the_least_monotone_concave_one_above_the_points(rmd, points):
    curve = rmd.curve(40, points)
    gains = [b - a for a, b in zip(curve, curve[1:])]
    assert all(0 <= b <= a + 1e-5 for a, b in zip(gains, gains[1:]))
    assert all(curve[c] >= s - 1e-4 for c, s in points)
    if points:  # nothing less would do: each kink is a point
        kinks = [c for c in range(1, 40) if gains[c] < gains[c - 1] - 1e-4]
        announced = dict(points)
        assert all(abs(curve[c] - announced.get(c, -1)) < 1e-3 for c in kinks)


@pytest.mark.parametrize("points", [[(1, "nan")], [(4, "inf")], [(3, -2)], [(1, 0)], [(2, 1e-9)]])
def test_points_that_cannot_be_are_left_out(rmd, points):
    assert rmd.curve(8, points) == list(range(9))
    assert rmd.curve(8, [(1, 1), *((c + 1, s) for c, s in points), (8, 4.5)]) == \
        rmd.curve(8, [(1, 1), (8, 4.5)]) or points == [(2, 1e-9)]


def test_a_speed_up_is_no_more_than_the_cores(rmd):
    assert rmd.curve(4, [(2, 1e30)]) == [0, 1, 2, 3, 4]


# --- workload

def quotas_at_a_level(ncores, ranges, wishes):
    """min(hi, max(lo, wish(x))), with the x at which they add up to the cores, or to all hi."""
    def at(x):
        return [min(high, max(low, wish(x))) for wish, (low, high) in zip(wishes, ranges)]

    low, high = 0.0, 1.0
    while sum(at(high)) < min(ncores, sum(most for _, most in ranges)):
        high *= 2
    for _ in range(60):
        x = (low + high) / 2
        low, high = (x, high) if sum(at(x)) <= ncores else (low, x)
    return at(high)


def quotas_of(case):
    """q = min(hi, max(lo, x W))"""
    return quotas_at_a_level(case[0], ranges_of(case),
                             [lambda x, load=need.load: x * load for need in case[1]])


def assert_rounded(target, quotas):
    """By the largest remainders."""
    assert all(q - 1 < d + 1e-4 and d < q + 1 + 1e-4 for d, q in zip(target, quotas)), quotas
    below = [q - d for d, q in zip(target, quotas) if d < q - 1e-4]  # rounded down: the remainders
    above = [q - (d - 1) for d, q in zip(target, quotas) if d > q + 1e-4]
    assert not below or not above or max(below) <= min(above) + 1e-4, quotas


@pytest.mark.parametrize("policy", ["workload", "equal"])
@RULES
@given(case=cases(plain=True))
def test_quotas_within_ranges_are_rounded_by_the_largest_remainders(rmd, policy, case):
    ncores, needs = case
    for need in needs:
        need.load = 1 if policy == "equal" else need.load
    if not fits(case):
        return
    assert_rounded(rmd.decide(policy, case), quotas_of(case))


# --- throughput

@RULES
@given(case=cases(plain=True))
def test_throughput_without_graphs_is_workload(rmd, case):
    for need in case[1]:
        need.graph = []
    if fits(case):
        assert rmd.decide("throughput", case) == rmd.decide("workload", case)


@RULES
@given(loads=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), ncores=st.integers(2, 40))
def test_a_process_without_a_graph_gains_by_its_share_and_by_no_more(rmd, loads, ncores):
    """Beside a process that gains less, but by every core."""
    graph = [(1, 1), (ncores, 1 + (ncores - 1) * 0.3)]
    case = ncores, [Need(load=loads[0], job=0), Need(load=loads[1], job=1, graph=graph)]
    assert rmd.decide("throughput", case) == rmd.decide("workload", case)


@RULES
@given(loads=st.lists(st.floats(0.1, 10), min_size=1, max_size=6), each=st.integers(2, 9))
def test_processes_that_gain_alike_share_by_workload_and_jobs_equally(rmd, loads, each):
    """All cores but the first gain 0.7."""
    ncores = each * len(loads)
    needs = [Need(load=load, job=i, graph=[(1, 1), (ncores, 1 + (ncores - 1) * 0.7)])
             for i, load in enumerate(loads)]
    target = rmd.decide("throughput", (ncores, needs))
    quotas = quotas_of((ncores, needs))
    assert all(abs(d - q) < 1 + 1e-4 for d, q in zip(target, quotas)), (target, quotas)
    assert rmd.decide("jobs", (ncores, needs)) == [each] * len(loads)


def sum_of_speedups(rmd, case, target):
    ncores, needs = case
    return sum(rmd.curve(ncores, need.graph)[d] for need, d in zip(needs, target))


@RULES
@given(case=small_cases())
def test_no_distribution_has_more_throughput(rmd, case):
    ncores, needs = case
    for need in needs:
        need.graph = need.graph or [(1, 1)]
    curves = [rmd.curve(ncores, need.graph) for need in needs]
    best = max(sum(curve[c] for curve, c in zip(curves, d))
               for d in distributions(ncores, ranges_of(case)))
    for policy in ("throughput", "jobs"):
        assert sum_of_speedups(rmd, case, rmd.decide(policy, case)) >= best - 1e-3


# --- makespan

def time_of(curve, load, cores):
    return load / curve[cores]


@RULES
@given(case=small_cases())
def test_no_distribution_ends_earlier(rmd, case):
    ncores, needs = case
    for need in needs:
        need.job = 0
    curves = [rmd.curve(ncores, need.graph) for need in needs]

    def times(d):
        return sorted((time_of(curve, need.load, c) for curve, need, c in zip(curves, needs, d)),
                      reverse=True)

    best = min(times(d)[0] for d in distributions(ncores, ranges_of(case)))
    for policy in ("makespan", "jobs", "fair"):
        assert times(rmd.decide(policy, case))[0] <= best * (1 + 1e-4)


@RULES
@given(case=small_cases(most_procs=4))
def test_of_those_that_end_as_early_the_second_slowest_is_as_fast_as_can_be(rmd, case):
    """And so on: no distribution has a lower time at the first place where the two differ.  The
    policy does not compare the gains of ranks that would end at the same time."""
    ncores, needs = case
    for i, need in enumerate(needs):
        need.load *= 1 + i * 1e-3
    curves = [rmd.curve(ncores, need.graph) for need in needs]

    def times(d):
        return sorted((time_of(curve, need.load, c) for curve, need, c in zip(curves, needs, d)),
                      reverse=True)

    ours = times(rmd.decide("makespan", case))
    for other in distributions(ncores, ranges_of(case)):
        first = next(((a, b) for a, b in zip(ours, times(other)) if abs(a - b) > 1e-4 * a), (0, 0))
        assert first[0] <= first[1], (ours, other)


# --- two levels

def by_job(needs, target):
    jobs = {}
    for need, cores in zip(needs, target):
        jobs.setdefault(need.job, []).append((need, cores))
    return jobs


@pytest.mark.parametrize("policy", BY_JOB[:3])
@RULES
@given(case=cases(6, 12, plain=True), njobs=st.integers(1, 3))
def test_ranks_of_a_job_finish_together(rmd, policy, case, njobs):
    """No other division of the job's cores among its ranks ends earlier."""
    ncores, needs = case
    if not fits(case):
        return
    for i, need in enumerate(needs):
        need.job = i % min(njobs, len(needs))
    for members in by_job(needs, rmd.decide(policy, case)).values():
        curves = [rmd.curve(ncores, need.graph) for need, _ in members]

        def slowest(d, members=members, curves=curves):
            return max(time_of(curve, need.load, c)
                       for curve, (need, _), c in zip(curves, members, d))

        ours = [cores for _, cores in members]
        best = min(slowest(d) for d in distributions(
            sum(ours), [need.range(ncores) for need, _ in members]))
        assert slowest(ours) <= best * (1 + 1e-4)


def fluid_speed(curves, loads, ranges, cores):
    """sum W / time of a job whose ranks finish together on so many cores, divisible ones."""
    def needed(v):
        total = 0.0
        for curve, load, (low, high) in zip(curves, loads, ranges):
            c = next((c for c in range(len(curve)) if curve[c] >= v * load - 1e-9), None)
            if c is None or c > high:
                return math.inf
            exact = c if c == 0 else c - 1 + (v * load - curve[c - 1]) / (curve[c] - curve[c - 1]) \
                if curve[c] > curve[c - 1] else c
            total += max(low, exact)
        return total

    low, high = 0.0, min(curve[h] / load for curve, load, (_, h) in zip(curves, loads, ranges))
    if needed(high * (1 - 1e-9)) <= cores + 1e-6:
        return sum(loads) * high
    for _ in range(60):
        v = (low + high) / 2
        low, high = (v, high) if needed(v) <= cores else (low, v)
    return sum(loads) * low


@settings(RULES, max_examples=100 // FEWER)
@given(case=cases(4, 20, ranges=False, plain=True), least=st.integers(0, 3),
       graph=graphs(12).filter(lambda points: len(points) > 1))
def test_no_division_between_two_jobs_is_much_better(rmd, case, least, graph):
    """The best sum over whole cores for each job, of cores that can be divided in a job."""
    ncores, needs = case
    needs[0].least, needs[0].graph = least, graph
    if not fits(case) or len(needs) < 2:
        return
    for i, need in enumerate(needs):
        need.job, need.graph = i % 2, need.graph or [(1, 1)]
    jobs = []
    for members in by_job(needs, rmd.decide("jobs", case)).values():
        curves = [rmd.curve(ncores, need.graph) for need, _ in members]
        loads = [need.load for need, _ in members]
        ranges = [need.range(ncores) for need, _ in members]
        jobs.append(([sum(r[0] for r in ranges), min(ncores, sum(r[1] for r in ranges))],
                     {d: fluid_speed(curves, loads, ranges, d) for d in range(ncores + 1)},
                     sum(cores for _, cores in members)))
    (range0, speed0, ours0), (range1, speed1, ours1) = jobs
    best = max(speed0[a] + speed1[b] for a, b in distributions(ncores, [range0, range1]))
    steepest = max(s[d + 1] - s[d] for s, (low, _) in ((speed0, range0), (speed1, range1))
                   for d in range(low, ncores))
    assert speed0[ours0] + speed1[ours1] >= best - 1e-3 - steepest * 1e-3, (best, jobs)


def in_jobs(case, njobs):
    """The same processes as the ranks of so many jobs, or fewer."""
    ncores, needs = case
    for i, need in enumerate(needs):
        need.job = i % min(njobs, len(needs))
    return ncores, needs


def cores_by_job(needs, target):
    return [sum(cores for _, cores in members) for members in by_job(needs, target).values()]


@settings(RULES, max_examples=80 // FEWER)
@given(loads=st.lists(st.floats(0.1, 10), min_size=1, max_size=6), njobs=st.integers(1, 3),
       gain=st.sampled_from([0.01, 0.1, 0.24]), more=st.integers(0, 30), data=st.data())
def test_a_job_without_a_graph_gains_by_its_fair_share_and_by_no_more(rmd, loads, njobs, gain,
                                                                      more, data):
    """Beside a job whose four ranks gain less, but by every core."""
    needs = in_jobs((0, [Need(least=data.draw(st.integers(1, 4)), load=load) for load in loads]),
                    njobs)[1]
    needs += [Need(least=data.draw(st.integers(1, 3)), job=njobs,
                   graph=[(1, 1), (40, 1 + 39 * gain)]) for _ in range(4)]
    case = sum(need.least for need in needs) + more, needs
    assert cores_by_job(needs, rmd.decide("jobs", case)) == \
        cores_by_job(needs, rmd.decide("fair", case))


def test_a_job_of_which_one_rank_has_a_graph_is_not_one_without_any(rmd):
    slow = Need(job=1, graph=[(1, 1), (40, 5)])
    assert rmd.decide("jobs", (20, [Need(), Need(), slow, slow])) == [5, 5, 5, 5]
    assert rmd.decide("jobs", (20, [Need(), Need(graph=[(1, 1)]), slow, slow])) == [9, 9, 1, 1]


def fair_quotas(ncores, needs, useful, wishes):
    """d = min(most, max(sum lo, wish(x))) by job; what all can use no more is shared equally."""
    members = by_job(needs, useful).values()
    lo = [sum(need.range(ncores)[0] for need, _ in job) for job in members]
    hi = [sum(need.range(ncores)[1] for need, _ in job) for job in members]
    most = [sum(cores for _, cores in job) for job in members]
    if sum(most) <= ncores:
        return quotas_at_a_level(ncores, list(zip(most, hi)), [lambda x: x] * len(members))
    return quotas_at_a_level(ncores, list(zip(lo, most)), wishes)


def useful_of(curve, need, ncores):
    """The least number of cores in its range with which the process is as fast as it can be."""
    low, high = need.range(ncores)
    return next(c for c in range(low, high + 1) if curve[c] >= curve[high] - 1e-6)


@st.composite
def some_flat(draw, most_procs=8, most_cores=40):
    """Jobs of several ranks; more cores than the last point's bring nothing to some."""
    ncores, needs = draw(cases(most_procs, most_cores, plain=True))
    for need in needs:
        if need.graph and draw(st.booleans()):
            need.graph.append((need.graph[-1][0] + 1, need.graph[-1][1]))
    return in_jobs((ncores, needs), draw(st.integers(1, 4)))


@settings(RULES, max_examples=80 // FEWER)
@given(case=some_flat())
def test_fair_gives_each_job_the_same_within_what_its_ranks_need_and_can_use(rmd, case):
    ncores, needs = case
    if not fits(case):
        return
    useful = [useful_of(rmd.curve(ncores, need.graph), need, ncores) for need in needs]
    assert_rounded(cores_by_job(needs, rmd.decide("fair", case)),
                   fair_quotas(ncores, needs, useful, [lambda x: x] * len(needs)))


@RULES
@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=4), share=st.integers(4, 10))
def test_fair_is_the_same_for_every_job_however_many_ranks_it_has(rmd, counts, share):
    needs = [Need(load=1 + i, job=j) for j, count in enumerate(counts) for i in range(count)]
    target = rmd.decide("fair", (share * len(counts), needs))
    assert [sum(c for _, c in members) for members in by_job(needs, target).values()] == \
        [share] * len(counts)


def test_fair_gives_what_a_job_cannot_use_to_the_others(rmd):
    flat = [(1, 1), (2, 1.8), (4, 1.8)]
    assert rmd.decide("fair", (16, [Need(job=0, graph=flat), Need(job=1)])) == [2, 14]
    assert rmd.decide("fair", (16, [Need(job=0, graph=flat)])) == [16]


# --- energy

@RULES
@given(case=small_cases(), loss=st.sampled_from([0, 0.01, 0.05, 0.2, 0.5]))
def test_energy_has_the_fewest_cores_that_are_within_the_loss(rmd, case, loss):
    ncores, needs = case
    for need in needs:
        need.graph = need.graph or [(1, 1)]
    curves = [rmd.curve(ncores, need.graph) for need in needs]
    ranges = ranges_of(case)
    all_of_them = [d for d in itertools.product(*(range(a, b + 1) for a, b in ranges))
                   if sum(d) <= ncores]
    speed = {d: sum(curve[c] for curve, c in zip(curves, d)) for d in all_of_them}
    best = max(speed.values())
    target = tuple(rmd.decide("energy", case, loss))
    assert speed[target] >= (1 - loss) * best - 1e-3
    fewest = min(sum(d) for d in all_of_them if speed[d] >= (1 - loss) * best + 1e-3) \
        if any(speed[d] >= (1 - loss) * best + 1e-3 for d in all_of_them) else ncores
    assert sum(target) <= fewest


@settings(RULES, max_examples=60 // FEWER)
@given(case=cases(6, 12, plain=True), njobs=st.integers(1, 3),
       loss=st.sampled_from([0, 0.01, 0.05, 0.2, 0.5]))
def test_energy_has_the_fewest_cores_also_for_jobs_of_several_ranks(rmd, case, njobs, loss):
    """Of all whole cores for each job, which can be divided in a job."""
    ncores, needs = in_jobs(case, njobs)
    if not fits(case):
        return
    for need in needs:
        need.graph = need.graph or [(1, 1)]
    target, ours, speeds = rmd.decide("energy", case, loss), [], []
    for members in by_job(needs, target).values():
        ranges = [need.range(ncores) for need, _ in members]
        curves = [rmd.curve(ncores, need.graph) for need, _ in members]
        ours.append(sum(cores for _, cores in members))
        speeds.append({d: fluid_speed(curves, [need.load for need, _ in members], ranges, d)
                       for d in range(sum(low for low, _ in ranges),
                                      min(ncores, sum(high for _, high in ranges)) + 1)})
    all_of_them = {d: sum(speed[cores] for speed, cores in zip(speeds, d))
                   for d in itertools.product(*speeds) if sum(d) <= ncores}
    goal = (1 - loss) * max(all_of_them.values())
    assert all_of_them[tuple(ours)] >= goal - 1e-3
    assert sum(ours) <= min((sum(d) for d, speed in all_of_them.items() if speed >= goal + 1e-3),
                            default=ncores)


# --- interference

@RULES
@given(slow=st.lists(st.sampled_from([1, 0.5, 0.25, 0.8]), min_size=2, max_size=5))
def test_cores_that_deliver_less_count_for_less(rmd, slow):
    """Jobs of one process: all have the same of what cores deliver, within two cores.  Those that
    they get deliver what the others' do."""
    ncores = 40 * len(slow)
    target = rmd.decide("interference", (ncores, [Need(job=i, delivered=e, owned=40)
                                                  for i, e in enumerate(slow)]))
    others = [(sum(slow) - e) / (len(slow) - 1) for e in slow]
    delivered = [min(d, 40) * e + max(0, d - 40) * o for d, e, o in zip(target, slow, others)]
    assert max(delivered) - min(delivered) < 2


@RULES
@given(slow=st.lists(st.sampled_from([1, 0.5, 0.25, 0.8]), min_size=2, max_size=5))
def test_cores_that_have_moved_do_not_move_on(rmd, slow):
    """What a process's cores deliver is another mean after a move; that is no reason for more."""
    needs = [Need(job=i, delivered=e, owned=40) for i, e in enumerate(slow)]
    target = rmd.decide("interference", (40 * len(slow), needs))
    for i, (need, cores) in enumerate(zip(needs, target)):
        others = (sum(slow) - slow[i]) / (len(slow) - 1)
        got = max(0, cores - 40)
        need.owned, need.delivered = cores, ((cores - got) * slow[i] + got * others) / cores
    again = rmd.decide("interference", (40 * len(slow), needs))
    assert not rmd.worth("interference", (40 * len(slow), needs), again)[0], (target, again)


@settings(RULES, max_examples=50 // FEWER)
@given(slow=st.lists(st.sampled_from([1, 0.5, 0.25, 0.8]), min_size=2, max_size=5),
       data=st.data())
def test_a_rank_on_slow_cores_is_found_by_its_iteration_times(rmd, slow, data):
    """As if the machine had told what the cores deliver, relative to the best rank of the job."""
    ncores = 30 * len(slow)
    told = [Need(load=data.draw(st.floats(1, 5)), owned=30, delivered=e / max(slow),
                 graph=data.draw(graphs(60))) for e in slow]
    seen = [Need(load=need.load, owned=30, graph=need.graph,
                 iteration=need.load / rmd.curve(30, need.graph)[30] / e)
            for need, e in zip(told, slow)]
    a, b = rmd.decide("interference", (ncores, told)), rmd.decide("interference", (ncores, seen))
    assert all(abs(x - y) <= 1 for x, y in zip(a, b))
    assert rmd.decide("fair", (ncores, told)) == rmd.decide("fair", (ncores, seen))


class Cores:
    """What a process's cores deliver: K(c) = E c up to n, E n + F (c - n) beyond."""

    def __init__(self, has, part):
        self.has, self.part, self.further = has, part, 1.0

    def delivering(self, whole):
        """The inverse of K(c)."""
        own = self.has * self.part
        return whole / self.part if whole <= own else self.has + (whole - own) / self.further

    def speeds(self, curve):
        """S(K(c)) for c = 0, 1, ..."""
        at = [c * self.part if c <= self.has else
              self.has * self.part + (c - self.has) * self.further for c in range(len(curve))]
        return [curve[int(k)] + (k % 1 and (curve[int(k) + 1] - curve[int(k)]) * (k % 1))
                for k in at]


def know_the_others(all_of_them):
    """F is what the others' cores deliver on the mean."""
    for cores in all_of_them:
        others = [other for other in all_of_them if other is not cores and other.has]
        if others:
            cores.further = sum(c.has * c.part for c in others) / sum(c.has for c in others)


def delivered_by(needs, curves):
    """What the cores of each process deliver: as the machine says, or less by iteration times."""
    expense = [need.iteration * curve[need.owned] / need.load
               for need, curve in zip(needs, curves)]
    best = {need.job: min((other for of, other in zip(needs, expense)
                           if other and of.job == need.job), default=0) for need in needs}
    found = [Cores(need.owned, min(need.delivered, best[need.job] / x if x else 1))
             for need, x in zip(needs, expense)]
    know_the_others(found)
    return found


@st.composite
def disturbed(draw, most_procs, most_cores):
    """Cases in which the machine, or iteration times, or both say what cores deliver."""
    ncores, needs = draw(some_flat(most_procs, most_cores).filter(fits))
    for need in needs:
        need.owned = draw(st.integers(0, ncores))
        need.delivered = draw(st.sampled_from([1, 1, 0.9, 0.5, 0.3]))
        need.iteration = draw(st.sampled_from([0, 1, 1.3, 1.7, 3]))
    return ncores, needs


def announce(rmd, case):
    """Multiplies need.iteration, a factor, by the time that the graph says; returns the curves."""
    ncores, needs = case
    curves = [rmd.curve(ncores, need.graph) for need in needs]
    for need, curve in zip(needs, curves):
        need.iteration *= need.load / curve[need.owned] if need.owned else 0
    return curves


@settings(RULES, max_examples=50 // FEWER)
@given(case=disturbed(6, 12))
def test_ranks_finish_together_by_what_their_cores_deliver(rmd, case):
    """No other division of the job's cores among its ranks ends earlier: S(c) is S(K(c))."""
    ncores, needs = case
    curves = announce(rmd, case)
    target = rmd.decide("interference", case)
    speeds = [cores.speeds(curve) for cores, curve in zip(delivered_by(needs, curves), curves)]
    for job in {need.job for need in needs}:
        ranks = [i for i, need in enumerate(needs) if need.job == job]

        def slowest(d, ranks=ranks):
            return max(needs[i].load / speeds[i][c] for i, c in zip(ranks, d))

        ours = [target[i] for i in ranks]
        best = min(slowest(d) for d in distributions(
            sum(ours), [needs[i].range(ncores) for i in ranks]))
        assert slowest(ours) <= best * (1 + 1e-4)


@settings(RULES, max_examples=50 // FEWER)
@given(case=disturbed(8, 40))
def test_every_job_has_the_same_of_what_cores_deliver(rmd, case):
    """Within what its ranks need and can use."""
    ncores, needs = case
    curves = announce(rmd, case)
    target = rmd.decide("interference", case)
    ranks = delivered_by(needs, curves)
    useful = [useful_of(cores.speeds(curve), need, ncores)
              for cores, curve, need in zip(ranks, curves, needs)]
    jobs = []
    for members in by_job(needs, ranks).values():
        has = sum(cores.has for _, cores in members)
        jobs.append(Cores(has, sum(cores.has * cores.part for _, cores in members) / has
                          if has else 1))
    know_the_others(jobs)
    assert_rounded(cores_by_job(needs, target),
                   fair_quotas(ncores, needs, useful, [job.delivering for job in jobs]))


@pytest.mark.parametrize("job", [0, 1])
def test_interference_gives_what_a_job_cannot_use_to_the_others(rmd, job):
    """Even if the job owns those cores now."""
    needs = [Need(owned=3, graph=[(1, 1), (2, 1)]), Need(owned=1, job=job)]
    assert rmd.decide("interference", (4, needs)) == [1, 3]


def test_interference_gives_out_no_more_cores_than_there_are(rmd):
    needs = [Need(owned=6, graph=[(2, 2), (3, 2)]), Need(load=2, owned=7, delivered=0.5)]
    assert sum(rmd.decide("interference", (13, needs))) == 13


@RULES
@given(case=cases())
def test_where_all_deliver_the_same_interference_is_fair(rmd, case):
    for need in case[1]:
        need.delivered, need.iteration = 1, 0
    assert rmd.decide("interference", case) == rmd.decide("fair", case)


# --- what cores deliver, in other policies

@RULES
@given(case=cases(plain=True), parts=st.lists(st.floats(0.1, 1), min_size=8, max_size=8))
def test_workload_counts_what_cores_deliver(rmd, case, parts):
    """As if the work were larger by what the cores do not deliver."""
    ncores, needs = case
    longer = copy.deepcopy(needs)
    for need, other, part in zip(needs, longer, parts):
        need.delivered = part
        other.load /= part
    for policy in ("workload", "throughput"):
        a, b = rmd.decide(policy, case), rmd.decide(policy, (ncores, longer))
        assert all(abs(x - y) <= 1 for x, y in zip(a, b)), (a, b)


@settings(RULES, max_examples=50 // FEWER)
@given(case=small_cases(), parts=st.lists(st.sampled_from([1, 0.9, 0.5, 0.3]), min_size=3,
                                          max_size=3))
def test_no_distribution_ends_earlier_by_what_cores_deliver(rmd, case, parts):
    """Iteration times say nothing between jobs, whose units of work are not the same."""
    ncores, needs = case
    for need, part in zip(needs, parts):
        need.delivered = part
    curves = [rmd.curve(ncores, need.graph) for need in needs]
    found = [Cores(need.owned, need.delivered) for need in needs]
    know_the_others(found)
    speeds = [cores.speeds(curve) for cores, curve in zip(found, curves)]
    for need in needs:
        need.iteration = 7 * need.load
    target = rmd.decide("makespan", case)

    def slowest(d):
        return max(need.load / speed[c] for need, speed, c in zip(needs, speeds, d))

    best = min(slowest(d) for d in distributions(ncores, ranges_of(case)))
    assert slowest(target) <= best * (1 + 1e-4)


# --- hysteresis

@pytest.mark.parametrize("policy", POLICIES)
@RULES
@given(case=cases(plain=True), cost=st.sampled_from([0, 1e-4, 1e-2, 1]),
       within=st.sampled_from([0.01, 1, 100]))
def test_a_move_pays_for_its_cost_within_the_time(rmd, policy, case, cost, within):
    """If no range is broken and each core has an owner, a move happens if and only if it pays."""
    ncores, needs = case
    left = ncores
    for need in needs:
        need.least = need.most = 0
        need.owned = min(left, max(1, need.owned))
        left -= need.owned
    needs[0].owned += left
    if min(need.owned for need in needs) < 1:
        return
    target = rmd.decide(policy, (ncores, needs))
    moves = sum(max(0, d - need.owned) for need, d in zip(needs, target))
    worth, gain = rmd.worth(policy, (ncores, needs), target, cost, within)
    if abs(gain - 0.08) > 1e-6 and abs(gain * ncores * within - moves * cost) > 1e-9:
        assert worth == (gain > 0.08 and gain * ncores * within > moves * cost)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_broken_range_is_mended_whatever_it_costs(rmd, policy):
    case = (16, [Need(least=9, owned=8, job=0), Need(owned=8, job=1)])
    assert rmd.worth(policy, case, (9, 7), cost=1e6)[0]


# --- which core each process computes on, where they are more than the cores

def partition(rmd, ncores, loads, cores=None):
    cores = cores or [-1] * len(loads)
    words = itertools.chain(*zip(loads, cores))
    return [int(word) for word in rmd.ask("partition", ncores, len(loads), *words)]


def most_over_mean(ncores, loads, cores):
    on = [sum(load for load, at in zip(loads, cores) if at == core) for core in range(ncores)]
    return max(on) / (sum(loads) / ncores)


some_loads = st.lists(st.floats(0.01, 100), min_size=1, max_size=40)


@RULES
@given(ncores=st.integers(1, 12), loads=some_loads, data=st.data())
def test_a_partition_is_even_or_there_is_none(rmd, ncores, loads, data):
    now = data.draw(st.lists(st.integers(-1, ncores), min_size=len(loads), max_size=len(loads)))
    cores = partition(rmd, ncores, loads, now)
    if -1 in cores:
        assert set(cores) == {-1}
    else:
        assert most_over_mean(ncores, loads, cores) <= 1.1 + 1e-9


@RULES
@given(ncores=st.integers(1, 12), loads=some_loads)
def test_an_even_partition_stays_when_loads_change_a_little(rmd, ncores, loads):
    cores = partition(rmd, ncores, loads)
    assert partition(rmd, ncores, loads, cores) == cores
    for factor in (0.97, 1.03):
        changed = [load * (factor if i % 2 else 1) for i, load in enumerate(loads)]
        if -1 not in cores and most_over_mean(ncores, changed, cores) < 1.1 - 1e-9:
            assert partition(rmd, ncores, changed, cores) == cores


@RULES
@given(ncores=st.integers(1, 12), each=st.integers(1, 6), load=st.floats(0.01, 100))
def test_processes_that_are_alike_are_spread(rmd, ncores, each, load):
    cores = partition(rmd, ncores, [load] * (ncores * each))
    assert sorted(cores) == sorted(list(range(ncores)) * each)


@pytest.mark.parametrize("unknown", ["0", "-1", "nan", "inf"])
def test_there_is_no_partition_while_a_load_is_unknown(rmd, unknown):
    assert partition(rmd, 2, [1, 1, 1, unknown]) == [-1] * 4
    assert partition(rmd, 2, [1, 1, 1, unknown], [0, 1, 0, 1]) == [-1] * 4


def test_small_loads_share_a_core_with_large_ones(rmd):
    first, *others = partition(rmd, 2, [1, 2, 3, 4])
    assert others == [1 - first, 1 - first, first]
    assert partition(rmd, 2, [1, 1, 1]) == [-1] * 3, "the kernel's placement is better"
