/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * amr.cpp - flames that spread on a square, on a hierarchy of grids: reaction and diffusion, where
 * cells near a front are covered by blocks of half the width, twice.  Blocks are runs of tiles, so
 * their sizes differ by ten times and more, and they change every ten steps.  A step fills the
 * ghost cells of all blocks from the blocks beside them or the coarser level, advances all
 * blocks, and averages fine cells onto coarse ones.  Small blocks are shared out by a dynamic loop
 * over blocks; the rows of a large one are a parallel loop of their own.  OpenMP only.
 *
 * Usage: amr [STEPS [CELLS]]: of the coarse level, in each direction.
 * Each cell is computed by the same operations for any number of threads, and the checksum is
 * a sum of integers.
 */
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "program.h"

namespace
{

constexpr int LEVELS = 3, TILE = 8, REGRID = 10, LONGEST = 16; /* LONGEST: tiles of a block */
constexpr int LARGE = 8192;                                    /* cells */

/* Cells x0 to x0 + nx - 1 of a level, with a ghost cell on all sides. */
struct Block {
    int x0, y0, nx, ny;
    std::vector<double> fuel, heat, fuel_next, heat_next;

    Block(int x, int y, int wide, int high)
        : x0(x), y0(y), nx(wide), ny(high), fuel(size_t((wide + 2) * (high + 2))), heat(fuel),
          fuel_next(fuel), heat_next(fuel)
    {
    }
    size_t at(int x, int y) const /* of the level */
    {
        return size_t((y - y0 + 1) * (nx + 2) + x - x0 + 1);
    }
    bool large() const { return nx * ny >= LARGE; }
};

struct Level {
    int cells; /* in each direction, if it covered all */
    std::vector<Block> blocks;
    std::vector<int> owner; /* [tile]: block, or -1 where there is none */

    int tiles() const { return cells / TILE; }
    int block_at(int x, int y) const /* -1 also outside */
    {
        if (x < 0 || y < 0 || x >= cells || y >= cells)
            return -1;
        return owner[size_t(y / TILE * tiles() + x / TILE)];
    }
};

using Levels = std::vector<Level>;

/* Level `l` where it is there, else the cell of the coarser one below it.  Outside: the nearest. */
void value_at(const Levels &levels, int l, int x, int y, double &fuel, double &heat)
{
    const Level &level = levels[size_t(l)];
    x = std::clamp(x, 0, level.cells - 1);
    y = std::clamp(y, 0, level.cells - 1);
    const int which = level.block_at(x, y);
    if (which < 0)
        return value_at(levels, l - 1, x / 2, y / 2, fuel, heat);
    const Block &block = level.blocks[size_t(which)];
    fuel = block.fuel[block.at(x, y)];
    heat = block.heat[block.at(x, y)];
}

void fill_ghosts(Levels &levels, int l)
{
    Level &level = levels[size_t(l)];
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < level.blocks.size(); i++) {
        Block &b = level.blocks[i];
        const auto fill = [&](int x, int y) {
            value_at(levels, l, x, y, b.fuel[b.at(x, y)], b.heat[b.at(x, y)]);
        };
        for (int x = b.x0; x < b.x0 + b.nx; x++) {
            fill(x, b.y0 - 1);
            fill(x, b.y0 + b.ny);
        }
        for (int y = b.y0; y < b.y0 + b.ny; y++) {
            fill(b.x0 - 1, y);
            fill(b.x0 + b.nx, y);
        }
    }
}

/* One row: diffusion of both, and fuel that burns where it is hot. */
void advance_row(Block &b, int y, double diffusion, double dt)
{
    const size_t row = size_t(b.nx + 2);
    for (size_t p = b.at(b.x0, y); p < b.at(b.x0 + b.nx, y); p++) {
        const double f = b.fuel[p], h = b.heat[p];
        const double burns = f * h * h * (1 + h * (0.5 + 0.1 * h)) / (1 + 0.2 * h);
        b.fuel_next[p] =
            f - dt * burns +
            0.5 * diffusion *
                (b.fuel[p - 1] + b.fuel[p + 1] + b.fuel[p - row] + b.fuel[p + row] - 4 * f);
        b.heat_next[p] =
            h + dt * (burns - 0.02 * h) +
            diffusion * (b.heat[p - 1] + b.heat[p + 1] + b.heat[p - row] + b.heat[p + row] - 4 * h);
    }
}

void advance(Level &level, double diffusion, double dt)
{
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < level.blocks.size(); i++) {
        Block &b = level.blocks[i];
        for (int y = b.y0; !b.large() && y < b.y0 + b.ny; y++)
            advance_row(b, y, diffusion, dt);
    }
    for (Block &b : level.blocks) {
        if (b.large()) {
#pragma omp parallel for
            for (int y = b.y0; y < b.y0 + b.ny; y++)
                advance_row(b, y, diffusion, dt);
        }
        b.fuel.swap(b.fuel_next);
        b.heat.swap(b.heat_next);
    }
}

/* Coarse cells below fine ones become their mean. */
void average_down(const Level &fine, Level &coarse)
{
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < fine.blocks.size(); i++) {
        const Block &b = fine.blocks[i];
        for (int y = b.y0; y < b.y0 + b.ny; y += 2)
            for (int x = b.x0; x < b.x0 + b.nx; x += 2) {
                Block &below = coarse.blocks[size_t(coarse.block_at(x / 2, y / 2))];
                const size_t a = b.at(x, y), c = b.at(x, y + 1), p = below.at(x / 2, y / 2);
                below.fuel[p] = 0.25 * (b.fuel[a] + b.fuel[a + 1] + b.fuel[c] + b.fuel[c + 1]);
                below.heat[p] = 0.25 * (b.heat[a] + b.heat[a + 1] + b.heat[c] + b.heat[c + 1]);
            }
    }
}

/* Blocks for the tiles that are wanted: runs along x, of at most LONGEST; equal ones in the rows
 * above are joined to them. */
void make_blocks(Level &level, const std::vector<char> &wanted)
{
    const int n = level.tiles();
    level.owner.assign(size_t(n * n), -1);
    level.blocks.clear();
    for (int ty = 0; ty < n; ty++)
        for (int tx = 0; tx < n; tx++) {
            const auto is_free = [&](int x, int y) {
                const size_t tile = size_t(y * n + x);
                return x < n && y < n && wanted[tile] && level.owner[tile] < 0;
            };
            int wide = 0, high = 0;
            while (wide < LONGEST && is_free(tx + wide, ty))
                wide++;
            for (bool whole = wide > 0; whole && high < LONGEST; high += whole)
                for (int x = 0; x < wide && whole; x++)
                    whole = is_free(tx + x, ty + high);
            for (int y = 0; y < high; y++)
                for (int x = 0; x < wide; x++)
                    level.owner[size_t((ty + y) * n + tx + x)] = int(level.blocks.size());
            if (high)
                level.blocks.emplace_back(tx * TILE, ty * TILE, wide * TILE, high * TILE);
        }
}

/* Tiles of the finer level above the cells of `level` where heat changes, and those beside them. */
std::vector<char> tag(const Level &level, int finer_tiles)
{
    std::vector<char> wanted(size_t(finer_tiles * finer_tiles), 0);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < level.blocks.size(); i++) {
        const Block &b = level.blocks[i];
        for (int y = b.y0; y < b.y0 + b.ny; y++)
            for (int x = b.x0; x < b.x0 + b.nx; x++) {
                const size_t p = b.at(x, y);
                const double slope = std::fabs(b.heat[p + 1] - b.heat[p - 1]) +
                                     std::fabs(b.fuel[p + 1] - b.fuel[p - 1]);
                if (slope + std::fabs(b.heat[p + size_t(b.nx) + 2] - b.heat[p]) < 0.08)
                    continue;
                char *const tile = &wanted[size_t(2 * y / TILE * finer_tiles + 2 * x / TILE)];
#pragma omp atomic write
                *tile = 1;
            }
    }
    return wanted;
}

/* All finer levels again, from the coarsest; values of old blocks where there were any. */
void regrid(Levels &levels)
{
    for (int l = 1; l < LEVELS; l++) {
        Levels old(levels); /* cells that are new take the value of the level below */
        Level &level = levels[size_t(l)];
        fill_ghosts(levels, l - 1);
        std::vector<char> wanted = tag(levels[size_t(l - 1)], level.tiles());
        for (int t = 0; t < level.tiles() * level.tiles(); t++) { /* nested in the level below */
            const int x = t % level.tiles() * TILE / 2, y = t / level.tiles() * TILE / 2;
            wanted[size_t(t)] &= levels[size_t(l - 1)].block_at(x, y) >= 0;
        }
        make_blocks(level, wanted);
        old[size_t(l - 1)] = levels[size_t(l - 1)];
#pragma omp parallel for schedule(dynamic)
        for (size_t i = 0; i < level.blocks.size(); i++) {
            Block &b = level.blocks[i];
            for (int y = b.y0; y < b.y0 + b.ny; y++)
                for (int x = b.x0; x < b.x0 + b.nx; x++)
                    value_at(old, l, x, y, b.fuel[b.at(x, y)], b.heat[b.at(x, y)]);
        }
    }
}

Levels start_levels(int n)
{
    Levels levels(LEVELS);
    for (int l = 0; l < LEVELS; l++) {
        levels[size_t(l)].cells = n << l;
        const int tiles = levels[size_t(l)].tiles();
        make_blocks(levels[size_t(l)], std::vector<char>(size_t(tiles * tiles), l == 0));
    }
    for (Block &b : levels[0].blocks)
        for (int y = b.y0; y < b.y0 + b.ny; y++)
            for (int x = b.x0; x < b.x0 + b.nx; x++) {
                const size_t p = b.at(x, y);
                b.fuel[p] = 1 + 0.2 * std::sin(0.3 * x) * std::cos(0.2 * y);
                b.heat[p] = 0;
                for (int s = 0; s < 7; s++) { /* sparks */
                    const double dx = double(x) / n - double(mix_bits(uint64_t(s)) % 97) / 97,
                                 dy = double(y) / n - double(mix_bits(uint64_t(s + 50)) % 97) / 97;
                    b.heat[p] += dx * dx + dy * dy < 0.0015 ? 1.5 : 0;
                }
            }
    for (int l = 1; l < LEVELS; l++)
        regrid(levels);
    return levels;
}

uint64_t checksum(const Levels &levels)
{
    uint64_t sum = 0;
    for (size_t l = 0; l < LEVELS; l++)
        for (const Block &b : levels[l].blocks)
            for (int y = b.y0; y < b.y0 + b.ny; y++)
                for (int x = b.x0; x < b.x0 + b.nx; x++)
                    sum += hash_value(b.heat[b.at(x, y)],
                                      (l << 32) + uint64_t(y * levels[l].cells + x));
    return sum;
}

} // namespace

int main(int argc, char **argv)
{
    const int steps = number_argument(argc, argv, 1, 2200);
    const int n = number_argument(argc, argv, 2, 256);
    if (n % TILE || n > 2048) {
        fprintf(stderr, "amr: cells are a multiple of %d, up to 2048\n", TILE);
        return 2;
    }
    const double start = omp_get_wtime(), dt = 0.02;
    Levels levels = start_levels(n);
    double cells = 0;
    for (int step = 0; step < steps; step++) {
        if (step % REGRID == REGRID - 1)
            regrid(levels);
        for (int l = 0; l < LEVELS; l++)
            fill_ghosts(levels, l);
        for (int l = 0; l < LEVELS; l++)
            advance(levels[size_t(l)], 0.012 * (1 << 2 * l), dt);
        for (size_t l = LEVELS - 1; l > 0; l--)
            average_down(levels[l], levels[l - 1]);
        for (const Level &level : levels)
            for (const Block &b : level.blocks)
                cells += b.nx * b.ny;
    }
    printf("amr: %d threads, %zu blocks in the end\ncells %.0f\nseconds %.6f\nchecksum %016llx\n",
           omp_get_max_threads(),
           levels[0].blocks.size() + levels[1].blocks.size() + levels[2].blocks.size(),
           cells / steps, omp_get_wtime() - start, (unsigned long long)checksum(levels));
    return 0;
}
