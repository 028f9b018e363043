! SPDX-License-Identifier: GPL-3.0-or-later
!
! waits.F90 - each blocking or completing call, from Fortran, with a partner that is late.
!
!   waits CALL MS ROUNDS     rank 0 computes MS milliseconds before each of ROUNDS times
!
! CALL is one of those in `play`, or all.  Prints what a program sees of them: data, statuses,
! error classes.  Compiled three times: -DUSE_MPIF_H, -DUSE_MPI, -DUSE_MPI_F08.
!
#ifdef USE_MPI_F08
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define STATUS(s) type(MPI_Status) :: s
#define STATUSES(s,n) type(MPI_Status) :: s(n)
#define SOURCE_OF(s) s%MPI_SOURCE
#define TAG_OF(s) s%MPI_TAG
#define NTH(s,n) s(n)
#else
#define REQUEST integer
#define DATATYPE integer
#define STATUS(s) integer :: s(MPI_STATUS_SIZE)
#define STATUSES(s,n) integer :: s(MPI_STATUS_SIZE,n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TAG_OF(s) s(MPI_TAG)
#define NTH(s,n) s(:,n)
#endif

module common_parts
#if defined(USE_MPI_F08)
  use mpi_f08
#elif defined(USE_MPI)
  use mpi
#endif
  implicit none
#ifdef USE_MPIF_H
  include 'mpif.h'
#endif
  integer :: rank, ranks, milliseconds

contains

  subroutine come_late()
    double precision :: now, until
    if (rank /= 0) return
    call cpu_time(now) ! a busy machine takes both ranks' time
    until = now + milliseconds * 1d-3
    do while (now < until)
      call cpu_time(now)
    end do
  end subroutine

  ! Rank 0 sends to all others, late.
  subroutine send_late(value, tag)
    integer, intent(in) :: value, tag
    integer :: r, ierror
    call come_late()
    do r = 1, ranks - 1
      call MPI_Send(value + r, 1, MPI_INTEGER, r, tag, MPI_COMM_WORLD, ierror)
    end do
  end subroutine

  subroutine say_status(what, value, s)
    character(*), intent(in) :: what
    integer, intent(in) :: value
    STATUS(s)
    integer :: count, ierror
    call MPI_Get_count(s, MPI_INTEGER, count, ierror)
    print '(a,i0,1x,a,a,i0,a,i0,a,i0,a,i0)', 'rank ', rank, what, ' value ', value, ' source ', &
      SOURCE_OF(s), ' tag ', TAG_OF(s), ' count ', count
  end subroutine

  subroutine say(what, value)
    character(*), intent(in) :: what
    integer, intent(in) :: value
    print '(a,i0,1x,a,1x,i0)', 'rank ', rank, what, value
  end subroutine

  ! --- point to point

  subroutine receive(i)
    integer, intent(in) :: i
    integer :: value, ierror
    STATUS(s)
    value = -1
    if (rank == 0) then
      call send_late(i, 1)
    else if (mod(i, 2) == 0) then
      call MPI_Recv(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, s, ierror)
      call say_status('recv', value, s)
    else
      call MPI_Recv(value, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call say('recv, status ignored', value)
    end if
  end subroutine

  subroutine wait_for_one(i)
    integer, intent(in) :: i
    integer, asynchronous :: value
    integer :: ierror
    REQUEST :: r
    STATUS(s)
    if (rank == 0) then
      call send_late(i, 2)
    else
      call MPI_Irecv(value, 1, MPI_INTEGER, 0, 2, MPI_COMM_WORLD, r, ierror)
      call MPI_Wait(r, s, ierror)
      call say_status('wait', value, s)
      if (r /= MPI_REQUEST_NULL) call say('the request is still there', i)
    end if
  end subroutine

  subroutine test_for_one(i)
    integer, intent(in) :: i
    integer, asynchronous :: value
    integer :: ierror
    logical :: flag
    REQUEST :: r
    STATUS(s)
    if (rank == 0) then
      call send_late(i, 3)
    else
      call MPI_Irecv(value, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, r, ierror)
      flag = .false.
      do while (.not. flag)
        call MPI_Test(r, flag, s, ierror)
      end do
      call say_status('test', value, s)
    end if
  end subroutine

  subroutine wait_for_all(i)
    integer, intent(in) :: i
    integer, asynchronous :: values(2)
    integer :: ierror
    REQUEST :: r(2)
    STATUSES(s,2)
    if (rank == 0) then
      call send_late(i, 4)
      call send_late(i * 10, 5)
    else
      call MPI_Irecv(values(1), 1, MPI_INTEGER, 0, 4, MPI_COMM_WORLD, r(1), ierror)
      call MPI_Irecv(values(2), 1, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, r(2), ierror)
      if (mod(i, 2) == 0) then
        call MPI_Waitall(2, r, s, ierror)
        call say_status('waitall', values(2), NTH(s,2))
      else
        call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, ierror)
      end if
      call say('waitall', values(1) + values(2))
    end if
  end subroutine

  subroutine wait_for_any(i)
    integer, intent(in) :: i
    integer, asynchronous :: values(2)
    integer :: ierror, which, n
    REQUEST :: r(2)
    STATUS(s)
    if (rank == 0) then
      call send_late(i, 6)
      call send_late(i * 10, 7)
    else
      call MPI_Irecv(values(1), 1, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, r(1), ierror)
      call MPI_Irecv(values(2), 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, r(2), ierror)
      do n = 1, 2
        call MPI_Waitany(2, r, which, s, ierror)
        call say_status('waitany', which, s)
      end do
      call MPI_Waitany(2, r, which, s, ierror)
      call say('waitany of nothing is undefined', merge(1, 0, which == MPI_UNDEFINED))
    end if
  end subroutine

  subroutine probe(i)
    integer, intent(in) :: i
    integer :: value, ierror
    STATUS(s)
    if (rank == 0) then
      call send_late(i, 8)
    else
      call MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, s, ierror)
      call say_status('probe', 0, s)
      call MPI_Recv(value, 1, MPI_INTEGER, 0, 8, MPI_COMM_WORLD, s, ierror)
      call say_status('probed', value, s)
    end if
  end subroutine

  subroutine exchange(i)
    integer, intent(in) :: i
    integer :: out, in, ierror
    STATUS(s)
    out = rank * 100 + i
    call come_late()
    call MPI_Sendrecv(out, 1, MPI_INTEGER, mod(rank + 1, ranks), 9, in, 1, MPI_INTEGER, &
      mod(rank + ranks - 1, ranks), 9, MPI_COMM_WORLD, s, ierror)
    call say_status('sendrecv', in, s)
    call MPI_Sendrecv_replace(out, 1, MPI_INTEGER, mod(rank + 1, ranks), 10, &
      mod(rank + ranks - 1, ranks), 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call say('sendrecv_replace', out)
  end subroutine

  ! A message to where its datatype says, relative to nothing.
  subroutine to_bottom(i)
    integer, intent(in) :: i
    integer, asynchronous :: value
    integer :: ierror, lengths(1)
    integer(MPI_ADDRESS_KIND) :: places(1)
    DATATYPE :: there
    STATUS(s)
    value = -1
    if (rank == 0) then
      call send_late(i, 11)
      return
    end if
    lengths = 1
    call MPI_Get_address(value, places(1), ierror)
    call MPI_Type_create_hindexed(1, lengths, places, MPI_INTEGER, there, ierror)
    call MPI_Type_commit(there, ierror)
    call MPI_Recv(MPI_BOTTOM, 1, there, 0, 11, MPI_COMM_WORLD, s, ierror)
    call MPI_Type_free(there, ierror)
    call say_status('bottom', value, s)
  end subroutine

  ! --- collectives

  subroutine barrier(i)
    integer, intent(in) :: i
    integer :: ierror
    call come_late()
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call say('barrier', i + ierror - MPI_SUCCESS)
  end subroutine

  subroutine allreduce(i)
    integer, intent(in) :: i
    integer :: mine, sum, ierror
    mine = rank + i
    call come_late()
    call MPI_Allreduce(mine, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call say('allreduce', sum)
    call MPI_Allreduce(MPI_IN_PLACE, mine, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    call say('allreduce in place', mine)
  end subroutine

  subroutine rooted(i)
    integer, intent(in) :: i
    integer :: mine, all(64), ierror
    mine = rank + i
    call come_late()
    call MPI_Bcast(mine, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call say('bcast', mine)
    mine = mine * (rank + 1)
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, mine, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
      call say('reduce in place', mine)
    else
      call MPI_Reduce(mine, mine, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    end if
    all = -1
    call MPI_Gather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    if (rank == 0) call say('gather', sum(all(1:ranks)))
  end subroutine

  ! --- errors

  subroutine say_error(what, code)
    character(*), intent(in) :: what
    integer, intent(in) :: code
    integer :: class, ierror
    call MPI_Error_class(code, class, ierror)
    call say(what, class)
  end subroutine

  subroutine errors(i)
    integer, intent(in) :: i
    integer, asynchronous :: out(2)
    integer :: in, ierror
    REQUEST :: r
    STATUS(s)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
    call MPI_Send(i, 1, MPI_INTEGER, ranks + 1, 1, MPI_COMM_WORLD, ierror)
    call say_error('send to PROC_NULL', ierror)
    call MPI_Send(i, -1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, ierror)
    call say_error('send of less than nothing', ierror)
    out = i
    call MPI_Isend(out, 2, MPI_INTEGER, 0, 12, MPI_COMM_SELF, r, ierror)
    call MPI_Recv(in, 1, MPI_INTEGER, 0, 12, MPI_COMM_SELF, s, ierror)
    call say_error('recv of less than was sent', ierror)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
  end subroutine

end module

program waits
  use common_parts
  implicit none
  character(*), parameter :: names(12) = [character(10) :: 'recv', 'wait', 'test', 'waitall', &
    'waitany', 'probe', 'sendrecv', 'bottom', 'barrier', 'allreduce', 'rooted', 'errors']
  character(10) :: name, number
  integer :: n, i, rounds, ierror

  call get_command_argument(1, name)
  call get_command_argument(2, number)
  read (number, *) milliseconds
  call get_command_argument(3, number)
  read (number, *) rounds
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  do n = 1, size(names)
    if (name /= 'all' .and. name /= names(n)) cycle
    do i = 1, rounds
      call play(n, i)
    end do
  end do
  call MPI_Finalize(ierror)

contains

  subroutine play(n, i)
    integer, intent(in) :: n, i
    select case (names(n))
    case ('recv');      call receive(i)
    case ('wait');      call wait_for_one(i)
    case ('test');      call test_for_one(i)
    case ('waitall');   call wait_for_all(i)
    case ('waitany');   call wait_for_any(i)
    case ('probe');     call probe(i)
    case ('sendrecv');  call exchange(i)
    case ('bottom');    call to_bottom(i)
    case ('barrier');   call barrier(i)
    case ('allreduce'); call allreduce(i)
    case ('rooted');    call rooted(i)
    case ('errors');    call errors(i)
    end select
  end subroutine
end program
