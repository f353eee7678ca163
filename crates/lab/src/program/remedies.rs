//! What to do about a program that the checker refuses.

use roci_control::program::csr::{self, CONTEXT_WORDS, FIRST, HEADER, HEADER_WORDS};
use roci_hart::{LoadError, Op, Reason};

/// What to do about `reason`, found in the function `function`, if that is known.
pub(super) fn of(reason: &Reason, function: Option<&str>) -> String {
    const BOUNDED: &str = "a loop is gone through turn by turn with all that is known of its values, so its counter must come to its end from \
                           wherever it may begin: `for (uint32_t i = 0; i < 8; i++)`, or `i < least(n, 8)` where n came in a packet; a test with \
                           `!=` can be missed, one with `<` cannot";
    const MEMORY: [&str; 4] = ["memset", "memcpy", "memmove", "memcmp"];
    let text = match reason {
        Reason::Breakpoint => {
            "compilers put that where a program does what C does not define, such as dividing by a constant zero; mend the line"
        }
        Reason::LongLoop { .. } | Reason::TooLong { .. } if function.is_some_and(is_of_libgcc) => {
            "it was built with `--rv32i`, where products and quotients are loops of libgcc; build it without, for cores \
             that multiply and divide (RV32IM), or allow its events more `--cycles`"
        }
        Reason::LongLoop { .. } | Reason::EndlessLoop | Reason::TooLong { .. }
            if function.is_some_and(|name| MEMORY.contains(&name)) =>
        {
            let name = function.unwrap_or_default();
            return format!(
                "{name} goes through as many octets as it is told, so bound that where it is called: a constant, or `least(length, sizeof \
                 table)`"
            );
        }
        Reason::LongLoop { .. } => {
            return format!(
                "{BOUNDED}; a loop that does end may be allowed more `--cycles` (of a run: `cycles` of its control)"
            );
        }
        Reason::EndlessLoop => {
            return format!(
                "{BOUNDED}; to wait for something, answer the event by postEvent and call pollEvent, or arm a timer: what registers say of an \
                 event stays as it is until then, and only a loop around pollEvent may go on for ever"
            );
        }
        Reason::TooLong { .. } => {
            "make the event do less, spread its work over several (armTimer), or allow more `--cycles` (of a run: `cycles` of its \
             control)"
        }
        Reason::NotFollowed => {
            "the ways through the program are more than can be looked at: make its loops shorter, or nest and branch less in them"
        }
        Reason::TooLarge => {
            "each call counts as a copy of its function: call the long ones from fewer places, such as one behind the branches"
        }
        Reason::DeepLoops => "write fewer loops within loops; two that follow each other cost nothing here",
        Reason::Recursion { .. } => {
            "what it has yet to do can stand in variables, or in words of QPContext from one event to the next"
        }
        Reason::ComputedJump => {
            "write `if (kind == 1) first(); else second();` where it calls by pointer; for a `switch`, `roci program build` sets \
             -fno-jump-tables, and inline assembly names its target"
        }
        Reason::NoCsr { .. } => return registers(),
        Reason::CsrRead { .. } => {
            "a word of context stands in QPContext and is read by readContext or `e.context`, of up to 32, and an index beyond an array there \
             names another; what has no name in Event or QPContext cannot be read"
        }
        Reason::CsrWrite { .. } => {
            "words of context are written by updateContext, those of packets by updatePkt and setHeaderWord, and stand in QPContext (up to \
             32) and PktHeader (up to 16 of its own), where an index beyond an array names another word; for what an event says, take a \
             variable"
        }
        Reason::Unanswered => {
            "pollEvent waits by itself until there is an event, so call it once, at the head of `while (true)`, and let all ways from \
             there, `continue` too, come to one postEvent: an event with which nothing is done is answered with Done"
        }
        Reason::AnsweredAgain => {
            "set e.eventType on the ways that differ, and let all of them come to one postEvent at the end; what is to be sent besides \
             waits for another event, such as that of a timer"
        }
        Reason::AfterAnswer { .. } => "move what stands behind postEvent before it",
        Reason::Ends { .. } => "put what comes once before the loop, and let no `return` or `break` leave it",
        Reason::ReturnToNowhere => {
            "recv and send are begun by no call: they stay in `while (true)`; without inline assembly no compiler makes such a return"
        }
        Reason::UnprovedReturn { .. } => {
            "the way back stands in the stack, and a store through a pointer or an index of which too little is known may change it: bound \
             the index, `table[i % 8]` or `least(i, 7)`"
        }
        Reason::StoreOutside { .. } | Reason::LoadOutside { .. } => {
            "a program has its variables, its constants and its stack, and no device behind an address: context, packet and event are \
             registers (updateContext, updatePkt, Event); if it was meant for an array, bound the index"
        }
        Reason::StoreToRom { .. } => {
            "code and constants cannot be written: leave `const` away from a variable that changes, and bound the index of an array \
             beside them"
        }
        Reason::MisalignedAccess { .. } => {
            "a word lies at a multiple of 4, a half at one of 2: no pointer to octets as one to words, and no packed structures"
        }
        Reason::StackOverflow { .. } | Reason::StackPointer => {
            "make large arrays `static`, with a number for their length, and do not let calls go so deep; no alloca and no arrays of \
             variable length"
        }
        Reason::Illegal { .. } => {
            "cores are RV32I with M and CSRs, without compressed instructions, atomics or floating point: build it with `roci program build`, \
             and leave out inline assembly for others"
        }
        Reason::EnvironmentCall => {
            "there is no operating system on the cores: leave `ecall` out; what a program may ask of the NIC is in program.h"
        }
        Reason::MisalignedJump { .. } | Reason::NoCode { .. } => {
            "no compiler does so by itself: look at inline assembly, at functions called by pointer, and at a function that ends \
             without `return`"
        }
    };
    text.to_owned()
}

/// What to do where `function` calls itself.
pub(super) fn of_recursion(function: &str) -> String {
    let todo = of(&Reason::Recursion { function: function.to_owned() }, None);
    format!(
        "{function}() calls itself, and how deep has no bound: write a loop that has one in its place; {todo}"
    )
}

/// What to do about an image that is no program.
pub(crate) fn of_load(error: &LoadError) -> String {
    match error {
        LoadError::Map(_) | LoadError::FreeInstruction => "choose another NIC for its cores, `--nic`".to_owned(),
        LoadError::Place { address, length, .. } if is_begin(*address) => {
            let map = csr::machine().memory;
            let (what, most) = if *address == map.origin {
                ("code and constants take", map.rom)
            } else {
                ("variables take", map.data)
            };
            format!(
                "{what} {length} octets, and there are {most}: leave out {} of them, such as by shorter arrays",
                length.saturating_sub(most)
            )
        }
        LoadError::Place { .. } | LoadError::Size { .. } | LoadError::Overlap { .. } => {
            "it was linked for another memory, or has more code or data than there is: build it with `roci program build`, and \
             shorten its arrays"
                .to_owned()
        }
        _ => "name an image that `roci program build FILE.c` has made, which is an ELF file for RV32IM".to_owned(),
    }
}

/// Whether code or data of a program begins there.
fn is_begin(address: u32) -> bool {
    let map = csr::machine().memory;
    address == map.origin || address == map.stack_top()
}

/// How many cycles would do for what was refused with fewer; `None`: no bound is known that is not beyond `most`.
pub(super) fn of_bound(enough: Option<u64>, most: u64) -> String {
    match enough {
        Some(cycles) => {
            format!("it is proved to need {cycles} cycles at most, so `--cycles {cycles}` would do; ")
        }
        None => format!("no bound is known, up to {most} cycles; "),
    }
}

/// Where a loop would end, had the division `op` at `place`, of its quotient or its rest, a divisor other than zero.
pub(super) fn of_quotient(op: Op, place: &str) -> String {
    let (what, is) = match op {
        Op::Rem | Op::Remu => ("rest of the division", "is the dividend"),
        Op::Div => ("quotient", "is −1, as an unsigned number 2³² − 1,"),
        _ => ("quotient", "is 2³² − 1"),
    };
    format!(
        "the {what} at {place} {is} where the divisor is zero, which the loop would then count to; it ends where that is excluded: divide by \
         `most(n, 1)`; "
    )
}

/// Where it has more words than a NIC holds.
pub(crate) fn of_size(what: &str) -> String {
    format!(
        "words of 32 bits that hold little can share one, by shifts and masks; what is the same for all queue pairs needs no word of {what}: \
         make it a variable"
    )
}

/// The registers that there are.
fn registers() -> String {
    let word = |word: usize| usize::from(FIRST) + word;
    format!(
        "there are {:#x} to {:#x} for the context, {:#x} to {:#x} for the packet's header and {:#x} to {:#x} for the event, by their names in program.h; \
         cores have no counter of cycles or of time beside them: `e.now` tells the time in nanoseconds",
        word(0),
        word(CONTEXT_WORDS - 1),
        word(HEADER),
        word(HEADER + HEADER_WORDS - 1),
        word(HEADER + HEADER_WORDS),
        word(63)
    )
}

/// What libgcc does for cores without the extension M, and for no others.
fn is_of_libgcc(function: &str) -> bool {
    const CALLS: [&str; 6] = ["__mulsi3", "__muldi3", "__udivsi3", "__umodsi3", "__divsi3", "__modsi3"];
    CALLS.contains(&function)
}
