! SPDX-License-Identifier: GPL-3.0-or-later
!
! structured.f90 - compressible gas on a structured grid: an explicit Lagrangian step and a remap
! onto the fixed grid, as staggered-grid hydrodynamics codes do.  Density and energy are of
! cells, velocities of their corners.  A step is one parallel region with some twenty worksharing
! loops, a few of them without a barrier at the end; the master thread exchanges the halo and the
! ranks agree on the time step meanwhile.  Ranks have strips of rows.  MPI and OpenMP.
!
! Usage: structured [STEPS [CELLS]]: of the grid, in each direction.
! A cell is computed by the same operations for any number of ranks and threads.  The checksum is
! the exclusive or of all bits, rotated by place.
program structured
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi
  use omp_lib
  implicit none
  integer, parameter :: dp = real64
  real(dp), parameter :: gamma = 1.4_dp, side = 10.0_dp
  integer :: n, steps, rank, ranks, ierr, first, rows, below, above, step, provided
  real(dp) :: h, dt, limit, time, started
  real(dp), allocatable, dimension(:, :) :: density, energy, pressure, viscous, sound, &
      density1, energy1, u, v, u1, v1, flux_x, flux_y, mass_x, mass_y, energy_x, energy_y, &
      momentum_x, momentum_y, before, after
  integer(int64) :: bits

  call mpi_init_thread(MPI_THREAD_FUNNELED, provided, ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  steps = argument(1, 1600)
  n = argument(2, 256)
  if (n < 4 * ranks .or. n > 8192) call fail('cells are from four times the ranks to 8192')
  call set_up
  time = 0
  dt = 1e-4_dp
  started = mpi_wtime()
  do step = 1, steps
    call advance
  end do
  started = mpi_wtime() - started
  bits = checksum()
  if (rank == 0) then
    print '(a, i0, a, i0, a, i0, a)', 'structured: ', ranks, ' ranks, ', omp_get_max_threads(), &
        ' threads, ', n * n, ' cells'
    print '(a, f0.9)', 'time ', time
    print '(a, f0.6)', 'seconds ', started
    print '(a, i0)', 'checksum ', bits
  end if
  call mpi_finalize(ierr)

contains

  subroutine fail(what)
    character(*), intent(in) :: what
    print '(2a)', 'structured: ', what
    call mpi_abort(MPI_COMM_WORLD, 2, ierr)
  end subroutine fail

  integer function argument(which, otherwise)
    integer, intent(in) :: which, otherwise
    character(20) :: text
    integer :: status
    argument = otherwise
    if (which > command_argument_count()) return
    call get_command_argument(which, text)
    read (text, *, iostat=status) argument
    if (status /= 0 .or. argument < 1) call fail('arguments are positive numbers')
  end function argument

  subroutine set_up
    integer :: i, j
    h = side / n
    first = n * rank / ranks
    rows = n * (rank + 1) / ranks - first
    below = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    above = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    ! Two rows and columns of halo around the cells 1 to n, 1 to rows.
    allocate (density(-1:n + 2, -1:rows + 2))
    allocate (energy, pressure, viscous, sound, density1, energy1, u, v, u1, v1, flux_x, flux_y, &
        mass_x, mass_y, energy_x, energy_y, momentum_x, momentum_y, before, after, mold=density)
    !$omp parallel do
    do j = -1, rows + 2
      do i = -1, n + 2
        density(i, j) = 0.2_dp
        energy(i, j) = 1.0_dp
        if (i <= n / 4 .and. first + j <= n / 3) then
          density(i, j) = 1.0_dp
          energy(i, j) = 2.5_dp
        end if
        pressure(i, j) = 0
        viscous(i, j) = 0
        sound(i, j) = 0
        u(i, j) = 0
        v(i, j) = 0
        u1(i, j) = 0
        v1(i, j) = 0
        density1(i, j) = density(i, j)
        energy1(i, j) = energy(i, j)
        flux_x(i, j) = 0
        flux_y(i, j) = 0
        mass_x(i, j) = 0
        mass_y(i, j) = 0
        energy_x(i, j) = 0
        energy_y(i, j) = 0
        momentum_x(i, j) = 0
        momentum_y(i, j) = 0
        before(i, j) = 0
        after(i, j) = 0
      end do
    end do
  end subroutine set_up

  ! Two rows of a field at each end of my strip come from the neighbours.  At the walls the field
  ! is mirrored; a field of corners (more = 1) has one more row and column.  Called by one thread.
  subroutine exchange(field, more)
    real(dp), intent(inout) :: field(-1:, -1:)
    integer, intent(in) :: more
    integer :: requests(4), count
    count = 2 * (n + 4)
    call mpi_irecv(field(-1, -1), count, MPI_DOUBLE_PRECISION, below, 1, MPI_COMM_WORLD, &
        requests(1), ierr)
    call mpi_irecv(field(-1, rows + 1), count, MPI_DOUBLE_PRECISION, above, 2, MPI_COMM_WORLD, &
        requests(2), ierr)
    call mpi_isend(field(-1, rows - 1), count, MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD, &
        requests(3), ierr)
    call mpi_isend(field(-1, 1), count, MPI_DOUBLE_PRECISION, below, 2, MPI_COMM_WORLD, &
        requests(4), ierr)
    call mpi_waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
    field(0, :) = field(1, :)
    field(-1, :) = field(2, :)
    field(n + more + 1, :) = field(n + more, :)
    field(n + 2, :) = field(n - 1 + 2 * more, :)
    if (below == MPI_PROC_NULL) then
      field(:, 0) = field(:, 1)
      field(:, -1) = field(:, 2)
    end if
    if (above == MPI_PROC_NULL) then
      field(:, rows + more + 1) = field(:, rows + more)
      field(:, rows + 2) = field(:, rows - 1 + 2 * more)
    end if
  end subroutine exchange

  subroutine advance
    integer :: i, j
    real(dp) :: div, du, dv, area, node_mass, volume, donor
    limit = 1e20_dp
    area = h * h
    !$omp parallel private(i, j, div, du, dv, node_mass, volume, donor)
    !$omp master
    call exchange(density, 0)
    call exchange(energy, 0)
    !$omp end master
    !$omp barrier
    ! Equation of state.
    !$omp do
    do j = -1, rows + 2
      do i = -1, n + 2
        pressure(i, j) = (gamma - 1) * density(i, j) * energy(i, j)
      end do
    end do
    !$omp end do nowait
    !$omp do
    do j = -1, rows + 2
      do i = -1, n + 2
        sound(i, j) = sqrt(gamma * (gamma - 1) * energy(i, j))
      end do
    end do
    !$omp end do
    ! Artificial viscosity where the gas is compressed.
    !$omp do
    do j = 0, rows + 1
      do i = 0, n + 1
        du = 0.5_dp * (u(i + 1, j) + u(i + 1, j + 1) - u(i, j) - u(i, j + 1))
        dv = 0.5_dp * (v(i, j + 1) + v(i + 1, j + 1) - v(i, j) - v(i + 1, j))
        div = du + dv
        viscous(i, j) = merge(density(i, j) * (2 * div * div - 0.5_dp * sound(i, j) * div), &
            0.0_dp, div < 0)
      end do
    end do
    !$omp end do
    ! The time step.
    !$omp do reduction(min: limit)
    do j = 1, rows
      do i = 1, n
        limit = min(limit, 0.3_dp * h / (sound(i, j) + sqrt(viscous(i, j) / density(i, j)) &
            + max(abs(u(i, j)), abs(v(i, j)))))
      end do
    end do
    !$omp end do
    !$omp master
    limit = min(limit, 1.1_dp * dt)
    call mpi_allreduce(limit, dt, 1, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD, ierr)
    time = time + dt
    !$omp end master
    !$omp barrier
    ! Half a step of compression, then the pressure of the half step.
    !$omp do
    do j = 0, rows + 1
      do i = 0, n + 1
        div = 0.5_dp * (u(i + 1, j) + u(i + 1, j + 1) - u(i, j) - u(i, j + 1) &
            + v(i, j + 1) + v(i + 1, j + 1) - v(i, j) - v(i + 1, j)) / h
        energy1(i, j) = energy(i, j) - 0.5_dp * dt * div * (pressure(i, j) + viscous(i, j)) &
            / density(i, j)
        density1(i, j) = density(i, j) / (1 + 0.5_dp * dt * div)
      end do
    end do
    !$omp end do
    !$omp do
    do j = 0, rows + 1
      do i = 0, n + 1
        pressure(i, j) = (gamma - 1) * density1(i, j) * energy1(i, j)
      end do
    end do
    !$omp end do
    ! Corners are accelerated by the cells around them; not along the walls' normals.
    !$omp do
    do j = 1, rows + 1
      do i = 1, n + 1
        node_mass = 0.25_dp * area * (density(i - 1, j - 1) + density(i, j - 1) &
            + density(i - 1, j) + density(i, j))
        u1(i, j) = u(i, j) - 0.5_dp * dt * h / node_mass * (pressure(i, j) - pressure(i - 1, j) &
            + pressure(i, j - 1) - pressure(i - 1, j - 1) + viscous(i, j) - viscous(i - 1, j) &
            + viscous(i, j - 1) - viscous(i - 1, j - 1))
        v1(i, j) = v(i, j) - 0.5_dp * dt * h / node_mass * (pressure(i, j) - pressure(i, j - 1) &
            + pressure(i - 1, j) - pressure(i - 1, j - 1) + viscous(i, j) - viscous(i, j - 1) &
            + viscous(i - 1, j) - viscous(i - 1, j - 1))
      end do
    end do
    !$omp end do
    !$omp do
    do j = 1, rows + 1
      u1(1, j) = 0
      u1(n + 1, j) = 0
    end do
    !$omp end do nowait
    !$omp do
    do i = 1, n + 1
      if (below == MPI_PROC_NULL) v1(i, 1) = 0
      if (above == MPI_PROC_NULL) v1(i, rows + 1) = 0
    end do
    !$omp end do
    ! Work of the whole step.
    !$omp do
    do j = 1, rows
      do i = 1, n
        div = 0.25_dp * (u(i + 1, j) + u(i + 1, j + 1) - u(i, j) - u(i, j + 1) &
            + v(i, j + 1) + v(i + 1, j + 1) - v(i, j) - v(i + 1, j) &
            + u1(i + 1, j) + u1(i + 1, j + 1) - u1(i, j) - u1(i, j + 1) &
            + v1(i, j + 1) + v1(i + 1, j + 1) - v1(i, j) - v1(i + 1, j)) / h
        energy1(i, j) = max(1e-6_dp, energy(i, j) - dt * div * (pressure(i, j) &
            + viscous(i, j)) / density(i, j))
        density1(i, j) = density(i, j) / (1 + dt * div)
      end do
    end do
    !$omp end do
    ! Volumes that cross the faces.
    !$omp do
    do j = 1, rows
      do i = 1, n + 1
        flux_x(i, j) = 0.25_dp * dt * h * (u(i, j) + u(i, j + 1) + u1(i, j) + u1(i, j + 1))
      end do
    end do
    !$omp end do nowait
    !$omp do
    do j = 1, rows + 1
      do i = 1, n
        flux_y(i, j) = 0.25_dp * dt * h * (v(i, j) + v(i + 1, j) + v1(i, j) + v1(i + 1, j))
      end do
    end do
    !$omp end do
    !$omp master
    call exchange(density1, 0)
    call exchange(energy1, 0)
    !$omp end master
    !$omp barrier
    ! Remap: donor cells, x and then y.
    !$omp do
    do j = 1, rows
      do i = 1, n + 1
        donor = merge(density1(i - 1, j), density1(i, j), flux_x(i, j) > 0)
        mass_x(i, j) = flux_x(i, j) * donor
        energy_x(i, j) = mass_x(i, j) * merge(energy1(i - 1, j), energy1(i, j), flux_x(i, j) > 0)
      end do
    end do
    !$omp end do nowait
    !$omp do
    do j = 1, rows + 1
      do i = 1, n
        donor = merge(density1(i, j - 1), density1(i, j), flux_y(i, j) > 0)
        mass_y(i, j) = flux_y(i, j) * donor
        energy_y(i, j) = mass_y(i, j) * merge(energy1(i, j - 1), energy1(i, j), flux_y(i, j) > 0)
      end do
    end do
    !$omp end do
    !$omp do
    do j = 1, rows
      do i = 1, n
        volume = area + flux_x(i + 1, j) - flux_x(i, j) + flux_y(i, j + 1) - flux_y(i, j)
        before(i, j) = density1(i, j) * volume
        after(i, j) = before(i, j) + mass_x(i, j) - mass_x(i + 1, j) + mass_y(i, j) &
            - mass_y(i, j + 1)
      end do
    end do
    !$omp end do
    !$omp do
    do j = 1, rows
      do i = 1, n
        energy(i, j) = max(1e-6_dp, (before(i, j) * energy1(i, j) + energy_x(i, j) &
            - energy_x(i + 1, j) + energy_y(i, j) - energy_y(i, j + 1)) / after(i, j))
        density(i, j) = after(i, j) / area
      end do
    end do
    !$omp end do
    ! Momentum goes with the gas: upwind differences at the corners.
    !$omp master
    call exchange(u1, 1)
    call exchange(v1, 1)
    !$omp end master
    !$omp barrier
    !$omp do
    do j = 1, rows + 1
      do i = 1, n + 1
        momentum_x(i, j) = max(u1(i, j), 0.0_dp) * (u1(i, j) - u1(i - 1, j)) &
            + min(u1(i, j), 0.0_dp) * (u1(i + 1, j) - u1(i, j)) &
            + max(v1(i, j), 0.0_dp) * (u1(i, j) - u1(i, j - 1)) &
            + min(v1(i, j), 0.0_dp) * (u1(i, j + 1) - u1(i, j))
      end do
    end do
    !$omp end do nowait
    !$omp do
    do j = 1, rows + 1
      do i = 1, n + 1
        momentum_y(i, j) = max(u1(i, j), 0.0_dp) * (v1(i, j) - v1(i - 1, j)) &
            + min(u1(i, j), 0.0_dp) * (v1(i + 1, j) - v1(i, j)) &
            + max(v1(i, j), 0.0_dp) * (v1(i, j) - v1(i, j - 1)) &
            + min(v1(i, j), 0.0_dp) * (v1(i, j + 1) - v1(i, j))
      end do
    end do
    !$omp end do
    !$omp do
    do j = 1, rows + 1
      do i = 1, n + 1
        u(i, j) = u1(i, j) - dt / h * momentum_x(i, j)
        v(i, j) = v1(i, j) - dt / h * momentum_y(i, j)
      end do
    end do
    !$omp end do
    !$omp master
    call exchange(u, 1)
    call exchange(v, 1)
    !$omp end master
    !$omp end parallel
  end subroutine advance

  integer(int64) function checksum()
    integer(int64) :: mine
    integer :: i, j
    mine = 0
    do j = 1, rows
      do i = 1, n
        mine = ieor(mine, ishftc(transfer(density(i, j), mine), mod(i + 7 * (first + j), 64)))
        mine = ieor(mine, ishftc(transfer(energy(i, j), mine), mod(3 * i + (first + j), 64)))
      end do
    end do
    call mpi_allreduce(mine, checksum, 1, MPI_INTEGER8, MPI_BXOR, MPI_COMM_WORLD, ierr)
  end function checksum

end program structured
