/* A Valgrind tool in which time is counted work: whoever reads a clock is answered with the instructions that were
 * executed so far, and each reading leaves a row of all counters. A program that measures itself by its clocks so
 * measures its work, unchanged, and to the instruction.
 *
 *     valgrind --tool=perfsuite-counting --rows=FILE PROGRAM ...
 *
 * A reading is the processor's own counter (RDTSC, CNTVCT_EL0), or clock_gettime of CLOCK_MONOTONIC, in which an
 * instruction takes 1 ns.
 * Rows are `row` below, in the order of their instructions, no two with the same.
 *
 * What is counted is what the program's code says, of all threads, which Valgrind runs one at a time: a load is one
 * read of its bytes, whatever a cache would do. Branches are the conditional ones, taken or not. An allocation is an
 * entry into malloc, calloc, realloc, aligned_alloc or posix_memalign, by the names in the program's symbol tables.
 * Arm's exclusive store is a read, a comparison and an exchange (--sim-hints=fallback-llsc), so that it never fails.
 * The kernel's work is not counted, nor that of a process which the program starts.
 */
#include "pub_tool_basics.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

#ifdef VGA_arm64
#include "libvex_guest_arm64.h"
#define STATE VexGuestARM64State
static const Int argument_registers[] = {offsetof(STATE, guest_X0), offsetof(STATE, guest_X1), offsetof(STATE, guest_X2)};
static const HChar clock_helper[] = "arm64g_dirtyhelper_MRS_CNTVCT_EL0";
#else
#include "libvex_guest_amd64.h"
#define STATE VexGuestAMD64State
static const Int argument_registers[] = {offsetof(STATE, guest_RDI), offsetof(STATE, guest_RSI), offsetof(STATE, guest_RDX)};
static const HChar clock_helper[] = "amd64g_dirtyhelper_RDTSC";
#endif

typedef enum {
    INSTRUCTIONS,
    READS,
    BYTES_READ,
    WRITES,
    BYTES_WRITTEN,
    BRANCHES,
    ALLOCATIONS,
    BYTES_ALLOCATED,
    N_COUNTERS
} counter;

/* As it lies in the file, little endian. */
typedef struct {
    ULong counters[N_COUNTERS];
    ULong thread;
} row;

#define MOST_KEPT 4096

static ULong counters[N_COUNTERS];
static row rows[MOST_KEPT];
static UInt n_rows;
static const HChar *path;
static Bool is_fork; /* whose work is not the program's, and whose rows would lie between the program's */

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* The file is open only here, for its number would be one that the program may use itself. */
static void write_rows(void) {
    if (is_fork) {
        n_rows = 0;
        return;
    }
    SysRes opened = VG_(open)(path, VKI_O_WRONLY | VKI_O_APPEND, 0);
    Int file = sr_isError(opened) ? -1 : (Int)sr_Res(opened);
    const HChar *next = (const HChar *)rows;
    Int left = (Int)(n_rows * sizeof(row));
    while (left > 0) {
        Int written = VG_(write)(file, next, left);
        if (written <= 0) {
            VG_(umsg)("perfsuite-counting: %s: cannot be written; look at the disk\n", path);
            VG_(exit)(1);
        }
        next += written;
        left -= written;
    }
    VG_(close)(file);
    n_rows = 0;
}

/* Keep a row, and return the instructions so far: the time. */
static ULong read_clock(void) {
    if (n_rows == MOST_KEPT) {
        write_rows();
    }
    row *kept = &rows[n_rows++];
    VG_(memcpy)(kept->counters, counters, sizeof counters);
    kept->thread = VG_(get_running_tid)();
    return counters[INSTRUCTIONS];
}

/* ---- what is counted -------------------------------------------------------------------------------------------- */

/* What the instructions since the last flush add, where nothing in between can leave the block. */
static ULong pending[N_COUNTERS];

static IRExpr *assigned(IRSB *block, IRType type, IRExpr *value) {
    IRTemp name = newIRTemp(block->tyenv, type);
    addStmtToIRSB(block, IRStmt_WrTmp(name, value));
    return IRExpr_RdTmp(name);
}

static void add(IRSB *block, counter which, IRExpr *amount) {
    IRExpr *address = IRExpr_Const(IRConst_U64((ULong)(Addr)&counters[which]));
    IRExpr *before = assigned(block, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, address));
    addStmtToIRSB(block, IRStmt_Store(Iend_LE, address, assigned(block, Ity_I64, IRExpr_Binop(Iop_Add64, before, amount))));
}

static void flush(IRSB *block) {
    for (UInt i = 0; i < N_COUNTERS; i++) {
        if (pending[i]) {
            add(block, i, IRExpr_Const(IRConst_U64(pending[i])));
            pending[i] = 0;
        }
    }
}

static void access(Bool is_write, ULong n_bytes) {
    pending[is_write ? WRITES : READS] += 1;
    pending[is_write ? BYTES_WRITTEN : BYTES_READ] += n_bytes;
}

/* An access that happens only where `guard` holds. */
static void guarded_access(IRSB *block, Bool is_write, ULong n_bytes, IRExpr *guard) {
    IRExpr *one = assigned(block, Ity_I64, IRExpr_Unop(Iop_1Uto64, guard));
    add(block, is_write ? WRITES : READS, one);
    IRExpr *bytes = assigned(block, Ity_I64, IRExpr_Binop(Iop_Mul64, one, IRExpr_Const(IRConst_U64(n_bytes))));
    add(block, is_write ? BYTES_WRITTEN : BYTES_READ, bytes);
}

static IRExpr *argument(IRSB *block, Int which) {
    return assigned(block, Ity_I64, IRExpr_Get(argument_registers[which], Ity_I64));
}

/* Counts an allocation where an instruction is the first of a function that allocates. */
static void allocation(IRSB *block, Addr address) {
    const HChar *name;
    if (!VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), address, &name)) {
        return;
    }
    IRExpr *n_bytes;
    if (VG_STREQ(name, "malloc") || VG_STREQ(name, "__libc_malloc")) {
        n_bytes = argument(block, 0);
    } else if (VG_STREQ(name, "calloc") || VG_STREQ(name, "__libc_calloc")) {
        n_bytes = assigned(block, Ity_I64, IRExpr_Binop(Iop_Mul64, argument(block, 0), argument(block, 1)));
    } else if (VG_STREQ(name, "realloc") || VG_STREQ(name, "__libc_realloc") || VG_STREQ(name, "aligned_alloc")) {
        n_bytes = argument(block, 1);
    } else if (VG_STREQ(name, "posix_memalign")) {
        n_bytes = argument(block, 2);
    } else {
        return;
    }
    pending[ALLOCATIONS] += 1;
    add(block, BYTES_ALLOCATED, n_bytes);
}

static Bool is_clock(const IRDirty *call) { return VG_STREQ(call->cee->name, clock_helper); }

/* What a helper of Valgrind's does for one instruction, such as FXSAVE. */
static void helper(IRSB *block, IRDirty *call) {
    Bool reads = call->mFx == Ifx_Read || call->mFx == Ifx_Modify, writes = call->mFx == Ifx_Write || call->mFx == Ifx_Modify;
    for (Int is_write = 0; is_write < 2; is_write++) {
        if (is_write ? writes : reads) {
            guarded_access(block, (Bool)is_write, (ULong)call->mSize, call->guard);
        }
    }
    if (!is_clock(call)) {
        addStmtToIRSB(block, IRStmt_Dirty(call));
        return;
    }
    flush(block);
    IRDirty *own = unsafeIRDirty_1_N(call->tmp, 0, "read_clock", VG_(fnptr_to_fnentry)(&read_clock), mkIRExprVec_0());
    addStmtToIRSB(block, IRStmt_Dirty(own));
}

static ULong size_of(const IRSB *block, const IRExpr *value) {
    return (ULong)sizeofIRType(typeOfIRExpr(block->tyenv, value));
}

static void swap(IRSB *block, IRStmt *statement) {
    IRCAS *cas = statement->Ist.CAS.details;
    ULong n_bytes = size_of(block, cas->dataLo) * (cas->dataHi ? 2 : 1);
    access(False, n_bytes);
    access(True, n_bytes);
    addStmtToIRSB(block, statement);
}

static void counted(IRSB *block, IRStmt *statement) {
    switch (statement->tag) {
    case Ist_NoOp:
        return;
    case Ist_IMark:
        addStmtToIRSB(block, statement);
        allocation(block, statement->Ist.IMark.addr);
        pending[INSTRUCTIONS] += 1;
        return;
    case Ist_WrTmp:
        if (statement->Ist.WrTmp.data->tag == Iex_Load) {
            access(False, (ULong)sizeofIRType(statement->Ist.WrTmp.data->Iex.Load.ty));
        }
        break;
    case Ist_Store:
        access(True, size_of(block, statement->Ist.Store.data));
        break;
    case Ist_LoadG: {
        IRType type, loaded;
        typeOfIRLoadGOp(statement->Ist.LoadG.details->cvt, &type, &loaded);
        guarded_access(block, False, (ULong)sizeofIRType(loaded), statement->Ist.LoadG.details->guard);
        break;
    }
    case Ist_StoreG:
        guarded_access(block, True, size_of(block, statement->Ist.StoreG.details->data), statement->Ist.StoreG.details->guard);
        break;
    case Ist_CAS:
        swap(block, statement);
        return;
    case Ist_LLSC: {
        IRExpr *stored = statement->Ist.LLSC.storedata;
        IRType loaded = typeOfIRTemp(block->tyenv, statement->Ist.LLSC.result);
        access(stored != NULL, stored ? size_of(block, stored) : (ULong)sizeofIRType(loaded));
        break;
    }
    case Ist_Dirty:
        helper(block, statement->Ist.Dirty.details);
        return;
    case Ist_Exit:
        pending[BRANCHES] += statement->Ist.Exit.jk == Ijk_Boring;
        flush(block);
        break;
    default:
        break;
    }
    addStmtToIRSB(block, statement);
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *given, const VexGuestLayout *layout,
                        const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word, IRType host_word) {
    (void)closure, (void)layout, (void)extents, (void)host;
    tl_assert(guest_word == Ity_I64 && host_word == Ity_I64);
    IRSB *block = deepCopyIRSBExceptStmts(given);
    Int i = 0;
    for (; i < given->stmts_used && given->stmts[i]->tag != Ist_IMark; i++) {
        addStmtToIRSB(block, given->stmts[i]); /* what Valgrind itself puts in front */
    }
    for (; i < given->stmts_used; i++) {
        counted(block, given->stmts[i]);
    }
    flush(block);
    return block;
}

/* ---- the clocks of the kernel ----------------------------------------------------------------------------------- */

static void before_call(ThreadId thread, UInt number, UWord *arguments, UInt n_arguments) {
    (void)thread, (void)number, (void)arguments, (void)n_arguments;
}

static void after_call(ThreadId thread, UInt number, UWord *arguments, UInt n_arguments, SysRes result) {
    (void)thread;
    if (number == __NR_clock_gettime && n_arguments >= 2 && !sr_isError(result) && arguments[0] == VKI_CLOCK_MONOTONIC) {
        struct vki_timespec *answer = (struct vki_timespec *)arguments[1];
        ULong now = read_clock();
        answer->tv_sec = (long)(now / 1000000000);
        answer->tv_nsec = (long)(now % 1000000000);
    }
}

/* ---- the tool --------------------------------------------------------------------------------------------------- */

static Bool option(const HChar *given) { return VG_STR_CLO(given, "--rows", path); }

static void usage(void) { VG_(printf)("    --rows=FILE               where each reading of a clock leaves its row\n"); }

static void debug_usage(void) { VG_(printf)("    (none)\n"); }

static void forked(ThreadId thread) {
    (void)thread;
    is_fork = True;
}

static void begin(void) {
    if (!path) {
        VG_(umsg)("perfsuite-counting: --rows=FILE is missing\n");
        VG_(exit)(1);
    }
    SysRes opened = VG_(open)(path, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, VKI_S_IRUSR | VKI_S_IWUSR);
    if (sr_isError(opened)) {
        VG_(umsg)("perfsuite-counting: %s: cannot be written; name a file in a folder of yours\n", path);
        VG_(exit)(1);
    }
    VG_(close)((Int)sr_Res(opened));
    VG_(atfork)(NULL, NULL, forked);
}

static void end(Int status) {
    (void)status;
    read_clock();
    write_rows();
}

static void before_options(void) {
    VG_(details_name)("perfsuite-counting");
    VG_(details_version)(NULL);
    VG_(details_description)("time is counted work");
    VG_(details_copyright_author)("MIT License, by the perfsuite authors.");
    VG_(details_bug_reports_to)("the project's issues");
    VG_(basic_tool_funcs)(begin, instrument, end);
    /* Unrolled and chased blocks do on trial what the program may not do. */
    VG_(clo_vex_control).iropt_unroll_thresh = 0;
    VG_(clo_vex_control).guest_chase = False;
    VG_(needs_command_line_options)(option, usage, debug_usage);
    VG_(needs_syscall_wrapper)(before_call, after_call);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
