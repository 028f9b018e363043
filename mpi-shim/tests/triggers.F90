! SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
!
! triggers.F90 - tasks that become ready when messages arrive, from Fortran (invasive.f90).
!
!   triggers LEVEL     two ranks; LEVEL: 0 to 3, that of MPI_Init_thread; 0: by MPI_Init
!
! Rank 0 has tasks for one message each, one that waits for all, and receives for what has come.  Prints "ok".
! Compiled three times: -DUSE_MPIF_H, -DUSE_MPI, -DUSE_MPI_F08.
!
#ifdef USE_MPI_F08
#define REQUEST type(MPI_Request)
#define VALUE_OF(handle) handle%MPI_VAL
#else
#define REQUEST integer
#define VALUE_OF(handle) handle
#endif

module parts
  use, intrinsic :: iso_c_binding
  use omp_lib
  use invasive
#if defined(USE_MPI_F08)
  use mpi_f08
#elif defined(USE_MPI)
  use mpi
#endif
  implicit none
#ifdef USE_MPIF_H
  include 'mpif.h'
#endif
  integer, parameter :: messages = 40
  integer, asynchronous :: got(messages) = 0
  integer(omp_event_handle_kind) :: events(messages)
  integer :: count = 0, calls = 0

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    integer :: ierror
    if (good) return
    write (*, *) what
    call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  end subroutine

  ! The compiler leaves a task out whose body is empty.
  subroutine stay()
    !$omp atomic
    calls = calls + 1
  end subroutine

  subroutine call_sender()
    integer :: ierror, none(1) = 0
    call MPI_Send(none, 0, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierror)
  end subroutine

  subroutine one()
    integer(omp_event_handle_kind) :: event
    integer :: i, ierror
    REQUEST :: r
    do i = 1, messages
      !$omp task detach(event) depend(out: got(i))
      call stay()
      !$omp end task
      call MPI_Irecv(got(i), 1, MPI_INTEGER, 1, i, MPI_COMM_WORLD, r, ierror)
      call check(inv_fulfil_when(VALUE_OF(r), event) == MPI_SUCCESS, 'inv_fulfil_when')
      call check(VALUE_OF(r) == VALUE_OF(MPI_REQUEST_NULL), 'the request was left')
      !$omp task depend(in: got(i)) firstprivate(i)
      call check(got(i) == 7 * i, 'a task has run before its message came')
      !$omp end task
    end do
    call call_sender()
    !$omp taskwait
  end subroutine

  subroutine all_of_them()
    integer(omp_event_handle_kind) :: event
    integer :: i, ierror, values(messages)
    integer, save, asynchronous :: statuses(MPI_STATUS_SIZE, messages)
    REQUEST :: r(messages)
    do i = 1, messages
      call MPI_Irecv(got(i), 1, MPI_INTEGER, 1, i, MPI_COMM_WORLD, r(i), ierror)
      values(i) = VALUE_OF(r(i))
    end do
    !$omp task detach(event)
    call stay()
    !$omp end task
    call check(inv_fulfil_when_all(messages, values, statuses, event) == MPI_SUCCESS, 'all')
    call call_sender()
    !$omp taskwait
    do i = 1, messages
      call check(got(i) == 7 * i .and. statuses(MPI_TAG, i) == i, 'status')
    end do
  end subroutine

  integer(c_int) function arrived(message, status, arg) bind(c)
    integer(c_int), intent(inout) :: message
    integer(c_int), intent(in) :: status(*)
    type(c_ptr), value :: arg
    integer :: tag, ierror
    REQUEST :: r
#ifdef USE_MPI_F08
    type(MPI_Message) :: handle
#else
    integer :: handle
#endif
    tag = status(MPI_TAG)
    call check(.not. c_associated(arg), 'argument')
    VALUE_OF(handle) = message
    call MPI_Imrecv(got(tag), 1, MPI_INTEGER, handle, r, ierror)
    call check(inv_fulfil_when(VALUE_OF(r), events(tag)) == MPI_SUCCESS, 'inv_fulfil_when')
    count = count + 1
    arrived = merge(1, 0, count < messages)
  end function

  subroutine late()
    integer(omp_event_handle_kind) :: event
    integer :: i
    do i = 1, messages
      !$omp task detach(event)
      call stay()
      !$omp end task
      events(i) = event
    end do
    call check(inv_when_message(1, MPI_ANY_TAG, VALUE_OF(MPI_COMM_WORLD), c_funloc(arrived), c_null_ptr) &
               == MPI_SUCCESS, 'late')
    call call_sender()
    !$omp taskwait
    do i = 1, messages
      call check(got(i) == 7 * i, 'message')
    end do
  end subroutine

  subroutine send_all()
    integer :: i, ierror, none(1), value(1)
    call MPI_Recv(none, 0, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    do i = messages, 1, -1
      value = 7 * i
      call MPI_Send(value, 1, MPI_INTEGER, 0, i, MPI_COMM_WORLD, ierror)
    end do
  end subroutine
end module

program triggers
  use parts
  implicit none
  integer :: level, provided, rank, scene, ierror
  character(8) :: word
  call get_command_argument(1, word)
  read (word, *) level
  if (level == 0) then
    call MPI_Init(ierror)
  else
    call MPI_Init_thread(level, provided, ierror)
    call check(provided >= level, 'level')
  end if
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  do scene = 1, 3
    if (rank == 1) call send_all()
    if (rank == 0) then
      got = 0
      !$omp parallel num_threads(2)
      !$omp master
      select case (scene)
      case (1)
        call one()
      case (2)
        call all_of_them()
      case (3)
        call late()
      end select
      !$omp end master
      !$omp end parallel
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end do
  if (rank == 0) write (*, '(a)') 'ok'
  call MPI_Finalize(ierror)
end program
