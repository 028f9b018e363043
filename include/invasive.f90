! SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
!
! invasive.f90 - the public interface for Fortran 2018: the functions and types of invasive.h, where each
! is described.  Compile this file with your program's compiler, and link with -linvasive:
!
!     use invasive
!     logical :: lent
!     lent = inv_lend()
!     write (unit) field
!     lent = inv_reclaim()
!
module invasive
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_double, c_float, c_funptr, c_int, c_intptr_t, &
        c_null_char, c_ptr
    implicit none
    private

    integer, parameter, public :: INV_SCALABILITY_POINTS = 8
    integer(c_int), parameter, public :: INV_NONBLOCKING = 0, INV_BLOCKING = 1

    type, bind(c), public :: inv_scalability_point
        integer(c_int) :: cores = 0
        real(c_float) :: speedup = 0
    end type

    type, bind(c), public :: inv_scalability
        type(inv_scalability_point) :: point(INV_SCALABILITY_POINTS)
    end type

    type, bind(c), public :: inv_constraint
        integer(c_int) :: min_cores = 0
        integer(c_int) :: max_cores = 0
        real(c_double) :: workload = 0
        type(inv_scalability) :: scalability
        real(c_double) :: iteration_s = 0
    end type

    type, bind(c), public :: inv_claim
        integer(c_int) :: owned_cores
        integer(c_int) :: held_cores
        logical(c_bool) :: managed
    end type

    public :: inv_invade, inv_reinvade, inv_retreat, inv_claim_now
    public :: inv_announce_workload, inv_announce_scalability, inv_lend, inv_reclaim
    public :: inv_control_point, inv_core_speed
    public :: inv_fulfil_when, inv_fulfil_when_all, inv_when_message

    interface
        ! Arguments that are absent are NULL in C.  0: done; -1: see invasive.h.
        integer(c_int) function inv_invade(constraint, blocking, claim) bind(c)
            import :: c_int, inv_claim, inv_constraint
            type(inv_constraint), intent(in), optional :: constraint
            integer(c_int), value :: blocking
            type(inv_claim), intent(out), optional :: claim
        end function

        integer(c_int) function inv_reinvade(constraint, blocking, claim) bind(c)
            import :: c_int, inv_claim, inv_constraint
            type(inv_constraint), intent(in), optional :: constraint
            integer(c_int), value :: blocking
            type(inv_claim), intent(out), optional :: claim
        end function

        integer(c_int) function inv_retreat() bind(c)
            import :: c_int
        end function

        type(inv_claim) function inv_claim_now() bind(c)
            import :: inv_claim
        end function

        real(c_double) function inv_core_speed() bind(c)
            import :: c_double
        end function

        integer(c_int) function inv_announce_workload(workload) bind(c)
            import :: c_double, c_int
            real(c_double), value :: workload
        end function

        integer(c_int) function inv_announce_scalability(scalability) bind(c)
            import :: c_int, inv_scalability
            type(inv_scalability), intent(in), optional :: scalability
        end function

        logical(c_bool) function inv_lend() bind(c)
            import :: c_bool
        end function

        logical(c_bool) function inv_reclaim() bind(c)
            import :: c_bool
        end function

        integer(c_int) function control_point(name, low, high, value) bind(c, name="inv_control_point")
            import :: c_char, c_int
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: low, high
            integer(c_int), intent(inout) :: value
        end function

        ! The functions of invasive-tasks.h: link also with -linvasive-tasks-mpich or -linvasive-tasks-openmpi.
        ! A request is the integer of mpif.h and module mpi, or MPI_VAL of a handle of mpi_f08; likewise comm.
        ! event is of kind omp_event_handle_kind.  Pass arrays that do not move or end before the event is
        ! fulfilled: with attribute `asynchronous`, and no copies such as a section that is not contiguous.
        integer(c_int) function inv_fulfil_when(request, event) bind(c, name="inv_fulfil_when_f")
            import :: c_int, c_intptr_t
            integer(c_int), intent(inout) :: request
            integer(c_intptr_t), value :: event
        end function

        ! statuses: (MPI_STATUS_SIZE, count).
        integer(c_int) function inv_fulfil_when_all(count, requests, statuses, event) &
            bind(c, name="inv_fulfil_when_all_f")
            import :: c_int, c_intptr_t
            integer(c_int), value :: count
            integer(c_int), intent(inout) :: requests(*)
            integer(c_int), intent(inout), asynchronous, optional :: statuses(*)
            integer(c_intptr_t), value :: event
        end function

        ! arrived: c_funloc of "integer(c_int) function arrived(message, status, arg) bind(c)" with
        ! integer(c_int), intent(inout) :: message; integer(c_int), intent(in) :: status(*);
        ! type(c_ptr), value :: arg.  Returns 0 when no more messages are to be looked for.
        integer(c_int) function inv_when_message(source, tag, comm, arrived, arg) &
            bind(c, name="inv_when_message_f")
            import :: c_funptr, c_int, c_ptr
            integer(c_int), value :: source, tag, comm
            type(c_funptr), value :: arrived
            type(c_ptr), value :: arg
        end function
    end interface

contains

    ! Blanks at the end of the name are left out.
    integer(c_int) function inv_control_point(name, low, high, value)
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: low, high
        integer(c_int), intent(inout) :: value
        inv_control_point = control_point(trim(name) // c_null_char, low, high, value)
    end function
end module
