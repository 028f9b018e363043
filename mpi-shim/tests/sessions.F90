! SPDX-License-Identifier: GPL-3.0-or-later
!
! sessions.F90 - a program that opens a session, by mpif.h, use mpi or use mpi_f08 (USE_...), for
! testsuite/mpi/test_sessions.py.  Rank 0 is late.
program sessions
#ifdef USE_MPI_F08
  use mpi_f08
  implicit none
  type(MPI_Session) :: session
  type(MPI_Group) :: world
  type(MPI_Comm) :: comm
#else
#ifdef USE_MPI
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: session, world, comm
#endif
  integer :: rank, total, ierror
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierror)
  call MPI_Group_from_session_pset(session, 'mpi://WORLD', world, ierror)
  call MPI_Comm_create_from_group(world, 'fortran', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm, ierror)
  call MPI_Group_free(world, ierror)
  call MPI_Comm_rank(comm, rank, ierror)
  if (rank == 0) call sleep(1)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
  print '(a,i0,a,i0)', 'rank ', rank, ' total ', total
  call MPI_Comm_free(comm, ierror)
  call MPI_Session_finalize(session, ierror)
end program sessions
