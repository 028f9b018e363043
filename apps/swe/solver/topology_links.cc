// SPDX-License-Identifier: GPL-3.0-or-later
// topology_links.cc - the curve comes into a triangle across its hypotenuse or its entry leg and
// leaves it across its hypotenuse or its exit leg.  So the hypotenuse alone says which way it goes,
// and which side is left for the third neighbour; all else follows from that and the orientation.
#include "topology_links.h"

#include <stdexcept>
#include "../grid/orientation.h"
#include "finite_volume_links.h"

namespace swe {

namespace {

FvEdges edges_of(const Topology &of, std::int32_t cell)
{
    std::int32_t s = SIDES * cell;
    return {{of.across(s + HYPOTENUSE), of.across(s + ENTRY_LEG), of.across(s + EXIT_LEG)},
            ORIENTATION.outward[of.orientation[cell]].data(),
            HYPOTENUSE};
}

// FvLinks::shape by orientation and the side that leads to the third neighbour.
struct Shapes {
    std::uint8_t by_third[ORIENTATIONS][SIDES];

    Shapes()
    {
        for (int o = 0; o < ORIENTATIONS; o++)
            for (int third = 0; third < SIDES; third++) {
                int next = third == EXIT_LEG ? HYPOTENUSE : EXIT_LEG;
                by_third[o][third] = fv_shape({{}, ORIENTATION.outward[o].data(), HYPOTENUSE},
                                              {SIDES - next - third, next});
            }
    }
};

// Of cells that have one before and one behind them.
void link_inside(const Topology &of, FvLinks &links)
{
    static const Shapes shapes;
    bool wrong = false;
    // Read once: a shape may, for all that the compiler knows, be written over them.
    const std::int32_t *mate = of.mate.data() + SIDES, ghosts_at = links.first_ghost_at;
    const std::uint8_t *orientation = of.orientation.data();
    std::int32_t *thirds = links.third.data();
    std::uint8_t *shape = links.shape.data();
    for (std::int32_t cell = 1, last = of.cells - 1; cell < last; cell++, mate += SIDES) {
        auto leads_to = [mate](int side, std::int32_t to) {
            return static_cast<std::uint32_t>(mate[side] - SIDES * to) < SIDES;
        };
        bool comes = leads_to(HYPOTENUSE, cell - 1), goes = leads_to(HYPOTENUSE, cell + 1);
        wrong |= !(comes || leads_to(ENTRY_LEG, cell - 1));
        wrong |= !(goes || leads_to(EXIT_LEG, cell + 1));
        int third = comes ? ENTRY_LEG : goes ? EXIT_LEG : HYPOTENUSE, o = orientation[cell];
        shape[cell] = shapes.by_third[o][third];
        std::int32_t across = mate[third], ghost = ~across;
        thirds[cell] = across < 0 ? ghosts_at + ghost : across / SIDES;
        if (across < 0) {
            links.ghost_cell[ghost] = cell;
            links.ghost_way[ghost] = ORIENTATION.outward[o][third];
        }
    }
    if (wrong)
        throw std::logic_error("two cells in succession have no common edge");
}

} // namespace

void link_cells(const Topology &of, FvLinks &links)
{
    FvLinker linker(of.cells, of.ghosts, links);
    for (std::int32_t cell : {0, of.cells - 1})
        linker.link_end(cell, edges_of(of, cell));
    link_inside(of, links);
}

} // namespace swe
