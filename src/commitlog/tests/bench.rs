//! A log on a simulated disk, and what its writers were told.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use timerlog::disk::Directory;
use timerlog::disk::sim::{Random, SimDisk};

use crate::clock::{Now, Timestamp};
use crate::commitlog::group::{GroupHeader, GroupMagic};
use crate::commitlog::settled::Settled;
use crate::commitlog::{
    AppendError, CommitLog, Durability, FlushMode, Receipt, RecoverError, Recovered, ScanFrom,
    Secrets, recover,
};
use crate::message::Attributes;
use crate::message::offset::Offset;
use crate::message::record::{Encoded, Kind, Magic, Message, Placement, Record};

pub(super) const SECRETS: Secrets =
    Secrets { record: Magic(0x5ec4_e75a), group: GroupMagic(0x0bad_cafe_5ec4_e75a) };

/// For tests that open a log some thousand times.
pub(super) const TINY: u64 = 8 << 10;
pub(super) const SMALL: u64 = 64 << 10;
pub(super) const LARGE: u64 = 1 << 20;

/// Where a log that is read from its very begin is read from.
pub(super) const BEGIN: ScanFrom =
    ScanFrom { offset: Offset::ZERO, next_number: 1, previous_hash: 0, incarnation: 0 };

const FOLDER: &str = "commitlog";

/// A moment, `millis` after the first.
pub(super) fn at(millis: u64) -> Now {
    Now {
        wall: Timestamp::from_millis(1_790_000_000_000 + millis),
        monotonic: Duration::from_millis(millis),
    }
}

/// A disk with a log on it that may be closed and opened.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) disk: SimDisk,
    pub(super) segment_size: u64,
    pub(super) mode: FlushMode,
}

impl Bench {
    pub(super) fn new(seed: u64, segment_size: u64, mode: FlushMode) -> Self {
        let disk = SimDisk::new(seed);
        disk.root().subdirectory(FOLDER).unwrap();
        disk.root().sync().unwrap();
        Self { disk, segment_size, mode }
    }

    pub(super) fn sync(segment_size: u64) -> Self {
        Self::new(1, segment_size, FlushMode::Sync)
    }

    pub(super) fn directory(&self) -> Arc<dyn Directory> {
        self.disk.root().subdirectory(FOLDER).unwrap()
    }

    /// The path of the file that holds `offset`, for the hands that reach behind the log's back.
    pub(super) fn file(&self, offset: Offset) -> String {
        let start = offset.get() - offset.get() % self.segment_size;
        format!("{FOLDER}/{start:020}")
    }

    /// Reads the whole log.
    pub(super) fn recover(&self) -> Result<(Recovered, Vec<Seen>), RecoverError<Infallible>> {
        self.recover_from(BEGIN, Offset::ZERO)
    }

    pub(super) fn recover_from(
        &self,
        from: ScanFrom,
        durable: Offset,
    ) -> Result<(Recovered, Vec<Seen>), RecoverError<Infallible>> {
        let mut seen = Vec::new();
        let mut fold = |record: Record<'_>| {
            seen.push(Seen::of(&record));
            Ok(())
        };
        let recovered =
            recover(self.directory(), self.segment_size, SECRETS, from, durable, &mut fold)?;
        Ok((recovered, seen))
    }

    /// The log, read to its end and opened by the next incarnation.
    pub(super) fn open(&self) -> (CommitLog, Vec<Seen>) {
        let (recovered, seen) = self.recover().unwrap();
        assert_eq!(recovered.damage, [], "nothing was damaged");
        (self.grow(recovered), seen)
    }

    pub(super) fn grow(&self, recovered: Recovered) -> CommitLog {
        let incarnation = recovered.tail.incarnation + 1;
        recovered.open(no_settled(self.segment_size), self.mode, incarnation, Offset::ZERO)
    }

    /// How many changes the disk has seen.
    pub(super) fn changes(&self) -> u64 {
        let counters = self.disk.counters();
        counters.creates
            + counters.writes
            + counters.syncs
            + counters.directory_syncs
            + counters.renames
            + counters.removes
    }
}

/// Settled bits on a disk of their own, so that they take no part in what befalls the log's.
pub(super) fn no_settled(segment_size: u64) -> Settled {
    Settled::empty(SimDisk::new(1).root(), segment_size).unwrap()
}

/// A record, as recovery and the readers show it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) offset: Offset,
    pub(super) kind: Kind,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { offset, kind, head, body } = self;
        write!(formatter, "{kind:?} {offset:?} {} + {} bytes", head.len(), body.len())
    }
}

impl Seen {
    pub(super) fn of(record: &Record<'_>) -> Self {
        Self {
            offset: record.header.offset,
            kind: record.header.kind,
            head: record.head.to_vec(),
            body: record.body.to_vec(),
        }
    }

    fn placed(mut record: Encoded, offset: Offset) -> Self {
        let bytes = record.seal(offset, SECRETS.record);
        Self::of(&Record::check(bytes, offset, SECRETS.record).unwrap())
    }
}

/// What one turn appended, and its claim.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) records: Vec<Seen>,
    pub(super) receipt: Receipt,
}

impl Told {
    pub(super) fn is_durable(&self) -> bool {
        self.receipt.outcome() == Some(Durability::Durable)
    }
}

/// A message with this body.
pub(super) fn message_with(body: &[u8]) -> Encoded {
    let message = Message {
        nonce: 5,
        born_at: at(0).wall,
        placement: Placement::Ready { queue_offset: 0 },
        topic_id: 1,
        queue: 0,
        tag_hash: 0,
        topic: "t".into(),
        attributes: Attributes::default(),
        timer: None,
        terms: None,
    };
    message.encode(body)
}

/// What [`message_with`] takes without a body: the header, the fixed head and the topic's field.
pub(super) const WITHOUT_BODY: usize = 32 + 44 + 6;

/// A message that takes exactly `length` bytes of the log.
pub(super) fn message_of(length: usize, fill: u8) -> Encoded {
    let body = length.checked_sub(WITHOUT_BODY).expect("a message is not that short");
    let record = message_with(&vec![fill; body]);
    assert_eq!(record.len(), length, "lengths are whole steps");
    record
}

/// Some message of up to `longest` bytes of body.
pub(super) fn some_message(random: &mut Random, longest: u64) -> Encoded {
    let steps = 3 + random.below(longest / 32 + 1);
    let length = usize::try_from(steps * 32).unwrap();
    message_of(length, u8::try_from(random.below(255)).unwrap() + 1)
}

/// Appends `records` in one turn.
pub(super) fn put(log: &CommitLog, records: &[Encoded]) -> Result<Told, AppendError> {
    let mut turn = log.turn(records.iter().map(Encoded::len).sum())?;
    let placed = |record: &Encoded| Seen::placed(record.clone(), turn.append(record.clone()));
    let records = records.iter().map(placed).collect();
    Ok(Told { records, receipt: turn.receipt() })
}

/// All records of `told`, in order.
pub(super) fn all(told: &[Told]) -> Vec<Seen> {
    told.iter().flat_map(|turn| turn.records.clone()).collect()
}

/// Checks that `seen` is `told` up to the end of some turn, and says how many turns that is.
pub(super) fn whole_turns(seen: &[Seen], told: &[Told], context: &str) -> usize {
    let (mut rest, mut kept) = (seen, 0);
    while !rest.is_empty() {
        let told = told.get(kept).map_or(&[][..], |turn| &turn.records);
        assert!(
            !told.is_empty() && rest.starts_with(told),
            "{context}: where turn {kept} appended {told:?} there is {:?}",
            &rest[..rest.len().min(told.len().max(3))],
        );
        rest = &rest[told.len()..];
        kept += 1;
    }
    kept
}

/// How many turns must be there, since what the last of them was told says so.
pub(super) fn acknowledged(told: &[Told]) -> usize {
    told.iter().rposition(Told::is_durable).map_or(0, |last| last + 1)
}

/// The headers of all groups below the visible end, read one by one.
pub(super) fn groups(log: &CommitLog) -> Vec<GroupHeader> {
    let (mut found, mut bytes, mut next) = (Vec::new(), Vec::new(), Offset::ZERO);
    while next < log.visible() {
        let header = log.reader().group(next, &mut bytes).unwrap();
        next = header.end();
        found.push(header);
    }
    found
}

/// Where to read from so that `header` is the last group left out.
pub(super) fn after(header: &GroupHeader) -> ScanFrom {
    ScanFrom {
        offset: header.end(),
        next_number: header.number + 1,
        previous_hash: header.hash(SECRETS.group),
        incarnation: header.incarnation,
    }
}
