//! The torn tail: the last groups cut at every byte, with all that may stand behind the cut.

use timerlog::disk::sim::Random;

use super::bench::{
    Bench, SECRETS, SMALL, Seen, TINY, Told, after, all, at, groups, message_of, put, some_message,
    whole_turns,
};
use super::group::GroupHeader;
use super::*;

/// Written and never synced, so that no group says of an older one that it is durable.
const UNSYNCED: FlushMode = FlushMode::Async { interval_ms: 1_000_000 };

/// A flush for each of `turns`, which are `lengths` long.
fn flushed(log: &CommitLog, lengths: &[usize], fill: u8, told: &mut Vec<Told>) {
    for (turn, &length) in (0..).zip(lengths) {
        told.push(
            put(log, &[message_of(96, fill + turn), message_of(length, fill + turn)]).unwrap(),
        );
        log.flush(at(u64::from(fill) + u64::from(turn))).unwrap();
    }
}

/// A log whose last four groups may be torn, byte for byte.
struct Tail {
    bench: Bench,
    told: Vec<Told>,
    groups: Vec<GroupHeader>,
    /// The file as the last life left it.
    whole: Vec<u8>,
}

impl Tail {
    fn of(bench: Bench, log: &CommitLog, told: Vec<Told>) -> Self {
        let groups = groups(log);
        bench.disk.kill();
        let whole = bench.disk.content(&bench.file(Offset::ZERO));
        Self { bench, told, groups, whole }
    }

    fn torn_bytes(&self) -> std::ops::RangeInclusive<usize> {
        let first = self.groups[self.groups.len() - 4].offset.get();
        let end = self.groups[self.groups.len() - 1].end().get();
        usize::try_from(first).unwrap()..=usize::try_from(end).unwrap()
    }

    fn put_content(&self, content: &[u8]) {
        self.bench
            .disk
            .edit(&self.bench.file(Offset::ZERO), |bytes| bytes.copy_from_slice(content));
    }

    /// What must be found when the file holds `content`: the groups that are there to their last byte.
    fn expected(&self, content: &[u8]) -> (Offset, Vec<Seen>) {
        let there = |group: &&GroupHeader| {
            let end = usize::try_from(group.end().get()).unwrap();
            content[..end] == self.whole[..end]
        };
        let tail = self.groups.iter().take_while(there).last().unwrap().end();
        let seen = all(&self.told).into_iter().filter(|record| record.offset < tail);
        (tail, seen.collect())
    }

    /// Tears at every byte, with `behind` standing behind the tear.
    fn check(&self, name: &str, behind: &[u8]) {
        for byte in self.torn_bytes() {
            let context = format!("{name} behind byte {byte}");
            let content = [&self.whole[..byte], &behind[byte..]].concat();
            let (tail, expected) = self.expected(&content);
            self.put_content(&content);
            let (recovered, seen) = self.bench.recover().expect(&context);
            assert_eq!(seen, expected, "{context}");
            assert_eq!(recovered.tail.offset, tail, "{context}");
            assert_eq!(recovered.damage, [], "{context}: a torn tail is no damage");
            if byte % 37 == 0 {
                self.go_on(recovered, seen, &context);
            }
        }
    }

    /// The log grows over what is left of the old tail, and none of that comes back.
    fn go_on(&self, recovered: Recovered, mut expected: Vec<Seen>, context: &str) {
        let log = self.bench.grow(recovered);
        for fill in 200..203 {
            expected.extend(put(&log, &[message_of(128, fill)]).unwrap().records);
            log.flush(at(u64::from(fill))).unwrap();
            let (recovered, seen) = self.bench.recover().expect(context);
            assert_eq!(seen, expected, "{context}, grown by {fill}");
            assert_eq!(recovered.damage, [], "{context}, grown by {fill}");
        }
    }
}

fn tail(mode: FlushMode) -> Tail {
    let bench = Bench::new(1, TINY, mode);
    let (log, _) = bench.open();
    let mut told = Vec::new();
    flushed(&log, &[96, 288, 96, 160, 96, 224], 1, &mut told);
    Tail::of(bench, &log, told)
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_after_the_last_whole_group() {
    for mode in [FlushMode::Sync, UNSYNCED] {
        let tail = tail(mode);
        let length = tail.whole.len();
        tail.check("zeros", &vec![0; length]);
        tail.check("ones", &vec![0xff; length]);
        let mut random = Random::new(9);
        let noise: Vec<_> = (0..length).map(|_| random.next().to_le_bytes()[0]).collect();
        tail.check("noise", &noise);
    }
}

/// Files may come from an earlier life, full of groups and records of this very directory: only their own
/// offset tells them from what was written here.
#[test]
fn old_groups_of_another_place_do_not_pass_for_the_tail() {
    let tail = tail(FlushMode::Sync);
    for shift in [32, 96, 1024] {
        let mut old = tail.whole.clone();
        old.rotate_right(shift);
        tail.check(&format!("groups {shift} bytes out of place"), &old);
    }
}

/// The first life wrote groups that were torn, and lost. The second wrote others over them. The power
/// fails again, and of each group the seeds may leave the new one or the old one.
#[test]
fn groups_that_an_earlier_incarnation_lost_do_not_come_back() {
    let sizes = [96, 160, 96, 224];
    for (name, others) in [
        ("of the same lengths", sizes),
        ("longer", [224, 256, 160, 352]),
        ("shorter", [96, 96, 96, 128]),
    ] {
        for torn_at in [40, 200] {
            let bench = Bench::new(1, TINY, UNSYNCED);
            let (log, _) = bench.open();
            let mut told = Vec::new();
            flushed(&log, &[96, 320], 1, &mut told);
            let end = log.end();
            flushed(&log, &others, 50, &mut told);
            bench.disk.kill();
            // The first of the lost groups is torn, the others are whole.
            bench.disk.flip_bit(&bench.file(end), end.get() + torn_at, 3);
            let stale = bench.disk.content(&bench.file(end));

            let (log, seen) = bench.open();
            told.truncate(whole_turns(&seen, &told, name));
            assert_eq!(told.len(), 2, "{name}: the rest is lost");
            flushed(&log, &sizes, 100, &mut told);
            let context = format!("old groups {name}, torn at {torn_at}, stand");
            Tail::of(bench, &log, told).check(&context, &stale);
        }
    }
}

/// A start whose first group was torn and whose second was not has left its number on the disk. The next
/// start must not take the same one, or groups of both could not be told apart.
#[test]
fn no_incarnation_is_used_twice_though_its_first_group_was_lost() {
    let bench = Bench::new(1, TINY, UNSYNCED);
    let (log, _) = bench.open();
    let mut told = Vec::new();
    flushed(&log, &[96], 1, &mut told);
    bench.disk.kill();
    let (log, _) = bench.open();
    let end = log.end();
    flushed(&log, &[96, 96], 10, &mut told);
    let second = groups(&log)[1].incarnation;
    bench.disk.kill();
    bench.disk.flip_bit(&bench.file(end), end.get() + 100, 0);
    let (recovered, seen) = bench.recover().unwrap();
    assert_eq!((seen, recovered.tail.offset), (told[0].records.clone(), end));
    assert_eq!(recovered.tail.incarnation, second, "it left a group, so its number is taken");
    let log = bench.grow(recovered);
    flushed(&log, &[96], 20, &mut told);
    assert!(groups(&log)[1].incarnation > second);
}

#[test]
fn a_damaged_last_group_is_a_torn_tail_since_nothing_says_that_it_was_durable() {
    let tail = tail(FlushMode::Sync);
    let last = tail.groups[tail.groups.len() - 1];
    for at in last.offset.get()..last.end().get() {
        let mut content = tail.whole.clone();
        content[usize::try_from(at).unwrap()] ^= 0x10;
        tail.put_content(&content);
        let (recovered, seen) = tail.bench.recover().unwrap();
        assert_eq!(recovered.tail, after(&tail.groups[tail.groups.len() - 2]), "byte {at}");
        assert_eq!(seen, all(&tail.told[..tail.told.len() - 1]), "byte {at}");
        assert_eq!(recovered.damage, [], "byte {at}");
    }
}

/// Groups of one flush are not durable before all of them are, so the second does not speak for the first.
#[test]
fn a_group_that_was_torn_within_its_flush_is_cut_though_the_next_is_whole() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let mut told = vec![put(&log, &[message_of(96, 1)]).unwrap()];
    log.flush(at(0)).unwrap();
    let length = usize::try_from(SMALL / 2).unwrap();
    told.push(put(&log, &[message_of(length, 2)]).unwrap());
    told.push(put(&log, &[message_of(64 * 32, 3)]).unwrap());
    log.flush(at(1)).unwrap();
    told.push(put(&log, &[message_of(length, 4)]).unwrap());
    told.push(put(&log, &[message_of(96, 5)]).unwrap());
    log.flush(at(2)).unwrap();
    let groups = groups(&log);
    let [_, first, end, second] = groups[..] else { panic!("{groups:?}") };
    assert_eq!(end.end().get(), SMALL);
    bench.disk.kill();
    // The end of the segment is torn; the group behind it is whole and was written with it.
    bench.disk.flip_bit(&bench.file(end.offset), end.offset.get() + 3, 0);
    let (recovered, seen) = bench.recover().unwrap();
    assert_eq!(recovered.tail, after(&first));
    assert_eq!(seen, all(&told[..3]));
    assert_eq!(recovered.damage, []);
    // It goes on in the same place, and the group that was behind is not taken for its continuation.
    let log = bench.grow(recovered);
    told.truncate(3);
    told.push(put(&log, &[message_of(96, 6)]).unwrap());
    log.flush(at(3)).unwrap();
    told.push(put(&log, &[message_of(length, 7)]).unwrap());
    log.flush(at(4)).unwrap();
    assert!(log.end() > second.offset);
    bench.disk.kill();
    let (recovered, seen) = bench.recover().unwrap();
    assert_eq!(seen, all(&told));
    assert_eq!(recovered.damage, []);
}

#[test]
fn a_log_of_another_data_directory_has_no_group_here() {
    let tail = tail(FlushMode::Sync);
    let others = Secrets { group: group::GroupMagic(1), ..SECRETS };
    let mut fold = |_: crate::message::record::Record<'_>| -> Result<(), std::convert::Infallible> {
        panic!("there is no record of ours")
    };
    let directory = tail.bench.directory();
    let recovered =
        recover(directory, TINY, others, bench::BEGIN, Offset::ZERO, &mut fold).unwrap();
    assert_eq!(recovered.tail.offset, Offset::ZERO);
}

#[test]
fn a_random_walk_of_crashes_kills_and_torn_pages_loses_nothing_that_was_shown() {
    for seed in 0..25 {
        let mut random = Random::new(seed);
        let bench = Bench::new(seed, SMALL, FlushMode::Sync);
        let mut told: Vec<Told> = Vec::new();
        for life in 0..8 {
            let context = format!("seed {seed}, life {life}");
            let (log, seen) = bench.open();
            assert_eq!(whole_turns(&seen, &told, &context), told.len(), "{context}");
            for step in 0..random.below(20) {
                if let Ok(done) = put(&log, &[some_message(&mut random, 3000)]) {
                    told.push(done);
                }
                if random.once_in(2) {
                    log.flush(at(step)).unwrap();
                }
            }
            let must = bench::acknowledged(&told);
            if random.once_in(3) {
                bench.disk.kill();
            } else {
                bench.disk.crash(&mut random);
            }
            let (_, seen) = bench.recover().unwrap();
            let kept = whole_turns(&seen, &told, &context);
            assert!(kept >= must, "{context}: {kept} of {must}");
            told.truncate(kept);
        }
    }
}
