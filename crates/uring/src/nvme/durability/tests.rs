//! The commands that a namespace is sent, as a list.

use f2fs_device::NvmeStatus;

use super::*;

/// Flushes, with these answers to its commands; gives the result, and the opcodes that were sent.
fn flush(durability: &Durability, answers: &[Answer]) -> (Result<(), DeviceErrorKind>, Vec<u8>) {
    let mut sent = Vec::new();
    let result = durability.flush(|opcode| {
        sent.push(opcode);
        answers[sent.len() - 1]
    });
    (result.map_err(|error| error.kind), sent)
}

/// Given back untried, which passes.
const INTERRUPTED: Answer = Answer::Errno(4);

#[test]
fn promises_of_a_volatile_cache_are_commands() {
    let volatile = Durability::new(true);
    assert_eq!(flush(&volatile, &[Answer::Done; 2]), (Ok(()), vec![FLUSH]), "judge: one flush");
    assert_eq!(volatile.bits(Op::WriteFua), FORCE_UNIT_ACCESS, "judge: a durable write says so");
    assert_eq!([Op::Read, Op::Write].map(|op| volatile.bits(op)), [0, 0], "judge: others do not");

    let failing = Answer::Status(NvmeStatus::new(0x281));
    for answer in [failing, INTERRUPTED] {
        let volatile = Durability::new(true);
        let (result, sent) = flush(&volatile, &[answer, Answer::Done]);
        assert_eq!(
            (result, sent),
            (answer.result(), vec![FLUSH]),
            "judge: a failed flush is an error, and not repeated"
        );
        assert!(
            matches!(volatile.check(), Err(DeviceErrorKind::Poisoned { .. })),
            "judge: nothing is written any more"
        );
        let (result, sent) = flush(&volatile, &[Answer::Done]);
        assert!(matches!(result, Err(DeviceErrorKind::Poisoned { .. })) && sent.is_empty(), "judge: a flush after it");
    }

    let volatile = Durability::new(true);
    let kind = DeviceErrorKind::from_errno(5);
    [Op::Read, Op::Write].into_iter().for_each(|op| volatile.failed(op, &kind));
    assert_eq!(volatile.check(), Ok(()));
    volatile.failed(Op::WriteFua, &kind);
    assert!(volatile.check().is_err(), "judge: a failed durable write is remembered");
}

#[test]
fn without_a_volatile_cache_nothing_is_sent() {
    let plain = Durability::new(false);
    assert_eq!(flush(&plain, &[]), (Ok(()), vec![]));
    assert_eq!(plain.bits(Op::WriteFua), 0);
}

/// `cargo test -p f2fs-uring --features mutants --lib mutants_are_found` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let mutants = [
        "nvme_flush_left_out",
        "nvme_flush_tried_again",
        "nvme_flush_status_ignored",
        "nvme_fua_bit_left_out",
        "nvme_failed_durable_write_forgotten",
    ];
    f2fs_sync::assert_found("nvme::durability::tests::promises_of_a_volatile_cache_are_commands", &mutants, "judge: ");
}
