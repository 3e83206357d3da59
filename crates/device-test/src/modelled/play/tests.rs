use super::*;

const MICRO: Duration = Duration::from_micros(1);
const FLUSH: Duration = Duration::from_micros(1000);

/// Plays operations of threads, each a list of charges; when each of them ended, in microseconds.
fn ends(ledger: &Ledger, threads: &[&[(Vec<Charge>, bool)]]) -> Vec<Vec<u128>> {
    let mut next = vec![0; threads.len()];
    let mut ends = vec![Vec::new(); threads.len()];
    let played = |thread: usize| -> Result<Option<Played>, ()> {
        let Some((charges, is_alone)) = threads[thread].get(next[thread]) else { return Ok(None) };
        next[thread] += 1;
        charges.iter().for_each(|charge| ledger.note(*charge));
        Ok(Some(Played { is_alone: *is_alone }))
    };
    let ended = |thread: usize, _, end: Duration| ends[thread].push(end.as_micros());
    play(ledger, threads.len(), Duration::ZERO, played, ended).unwrap();
    ends
}

fn busy(at: Place, time: u32, after: u32) -> Charge {
    Charge::Busy { at, time: time * MICRO, after: after * MICRO }
}

fn alone(time: u32) -> Charge {
    Charge::Alone(time * MICRO)
}

#[test]
fn transfers_wait_for_each_other_and_latencies_do_not() {
    let ledger = Ledger::default();
    let at = ledger.add_device();
    let first = [(vec![busy(at, 8, 20)], false)];
    let second = [(vec![busy(at, 32, 20), alone(5)], false)];
    assert_eq!(ends(&ledger, &[&first, &second]), [[28], [8 + 32 + 20 + 5]]);
}

#[test]
fn who_comes_during_a_durable_write_shares_the_next_flush() {
    let ledger = Ledger::default();
    let at = ledger.add_device();
    let durable = |after| [(vec![alone(after), Charge::Durable { at, time: FLUSH }], false)];
    let (first, second, third, late) = (durable(100), durable(200), durable(1000), durable(5000));
    assert_eq!(ends(&ledger, &[&first, &second, &third, &late]), [[1100], [2100], [2100], [6000]]);
}

#[test]
fn flushes_gather_the_threads_of_the_last_group() {
    let ledger = Ledger::default();
    let at = ledger.add_device();
    let flush = |after| (vec![alone(after), Charge::Flush { at, time: FLUSH }], false);
    let first = [flush(100), flush(50), flush(50)];
    let second = [flush(200), flush(60), flush(3000)];
    // The first leads at once, and the second one came meanwhile. From then on both are expected: the second one waits
    // for the first, then the first for the second; and in the end the second one, in vain for a millisecond.
    assert_eq!(ends(&ledger, &[&first, &second]), [[1100, 2150, 3210], [2150, 3210, 8210]]);
}

#[test]
fn nobody_begins_beside_an_operation_that_is_alone() {
    let ledger = Ledger::default();
    let at = ledger.add_device();
    let checkpoint = [(vec![alone(10), Charge::Flush { at, time: FLUSH }], true)];
    let other = [(vec![alone(20)], false), (vec![alone(30)], false)];
    // The first operation of the other one is played behind the checkpoint's.
    assert_eq!(ends(&ledger, &[&checkpoint, &other]), [vec![1010], vec![1030, 1060]]);
}
