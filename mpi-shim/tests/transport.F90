! SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
!
! transport.F90 - a sweep as in transport codes.  Two ranks; each thread of a rank has an energy
! group of its own, receives what flows in from the other rank, sweeps its cells, sends what flows
! out.  All calls of MPI are made under one OpenMP lock, and a thread that waits polls MPI_TESTSOME.
!
!   transport SWEEPS        OMP_NUM_THREADS threads a rank
program transport
  use mpi
  use omp_lib
  implicit none
  integer, parameter :: cells = 64, angles = 8
  integer :: error, provided, rank, sweeps
  integer(omp_lock_kind) :: lock
  character(len=16) :: word
  double precision :: start, flux, total

  call mpi_init_thread(MPI_THREAD_SERIALIZED, provided, error)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
  call get_command_argument(1, word)
  read (word, *) sweeps
  call omp_init_lock(lock)
  flux = 0
  start = mpi_wtime()
  !$omp parallel reduction(+ : flux)
  flux = flux + group(omp_get_thread_num())
  !$omp end parallel
  call mpi_allreduce(flux, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(A, ES22.14)', 'flux ', total
  if (rank == 0) print '(A, F9.3, A)', 'took ', mpi_wtime() - start, ' s'
  call mpi_finalize(error)

contains

  double precision function group(me)
    integer, intent(in) :: me
    integer :: other, sweep, requests(2), ierr
    double precision :: inflow(angles), outflow(angles), field(cells)

    other = 1 - rank
    field = 1 + me + rank
    outflow = 0
    do sweep = 1, sweeps
      call omp_set_lock(lock)
      call mpi_irecv(inflow, angles, MPI_DOUBLE_PRECISION, other, me, MPI_COMM_WORLD, &
                     requests(1), ierr)
      call mpi_isend(outflow, angles, MPI_DOUBLE_PRECISION, other, me, MPI_COMM_WORLD, &
                     requests(2), ierr)
      call omp_unset_lock(lock)
      call await(requests)
      call sweep_cells(field, inflow, outflow)
    end do
    group = sum(field)
  end function group

  subroutine await(requests)
    integer, intent(inout) :: requests(2)
    integer :: left, count, indices(2), statuses(MPI_STATUS_SIZE, 2), ierr

    left = 2
    do while (left > 0)
      call omp_set_lock(lock)
      call mpi_testsome(2, requests, count, indices, statuses, ierr)
      call omp_unset_lock(lock)
      if (count > 0) left = left - count
    end do
  end subroutine await

  subroutine sweep_cells(field, inflow, outflow)
    double precision, intent(inout) :: field(cells)
    double precision, intent(in) :: inflow(angles)
    double precision, intent(out) :: outflow(angles)
    integer :: angle, cell

    do angle = 1, angles
      outflow(angle) = inflow(angle)
      do cell = 1, cells
        outflow(angle) = 0.9d0 * outflow(angle) + 0.1d0 * field(cell)
        field(cell) = 0.99d0 * field(cell) + 0.01d0 * exp(-outflow(angle))
      end do
    end do
  end subroutine sweep_cells
end program transport
