//! Faults that a test plants to see that the simulation, or the tests of races, notice them.
//!
//! A test that passes proves little unless it fails when the code is wrong. So the mechanisms that
//! the promises hang on can be switched off, one at a time, on the calling thread, in builds with debug
//! assertions only. In a release build there is nothing to switch.

/// A mechanism left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Firing does not ask whether the cause is settled.
    NoSettledCheck,
    /// The read time steps back further than the ring has room for.
    UnclampedStepBack,
    /// Settled pages are written before the log is flushed.
    PagesBeforeFlush,
    /// The read time moves on although more was filed in the slot.
    AdvanceWithoutJoin,
    /// What fires is looked up half a second ahead.
    Early,
    /// Writers are answered before the flush.
    AnswerBeforeFlush,
    /// After a start, acknowledged messages are handed out again.
    ForgetAcks,
    /// A message that is moved still waits for the moment it had.
    MoveWithoutSettling,
    /// A timer that is replaced still waits.
    ReplaceWithoutSettling,
    /// A request that comes again is taken for a new one.
    ForgetRequests,
    /// After a start, the index lacks what came since the checkpoint.
    ForgetIndexEntries,
    /// What is listed as pending is not held against the settled bits.
    ListSettled,
    /// A walk of the pending that was in a far slot when it was re-filed goes on with the next one.
    PassOverRefiled,
    /// Where a group starts with a topic is decided at its first receive, and not recorded.
    StartNotRecorded,
    /// After a reset, what was acknowledged before it counts until dispatch comes to its record.
    FoldLagsBehindReset,
    /// Receipt handles from before a reset are good after it.
    NoFence,
    /// A tag that has the hash of one that is wanted is taken for it.
    HashIsTag,
    /// A transaction that was decided is committed again.
    DecideTwice,
    /// A check that is handed out is not recorded.
    CheckNotRecorded,
    /// What a filter leaves out is passed and not recorded.
    ExcludedNotRecorded,
    /// A checkpoint says that the delay levels are released as far as they reach.
    LevelReleasedAhead,
    /// What stands behind a due head of a delay level is released along with it.
    LevelBehindHead,
    /// A delay level asks nobody whether what it releases is settled.
    LevelNotAsked,
    /// A retry does not say how often its message was handed out.
    RetryForgetsAttempts,
    /// No message has a message group.
    NoMessageGroups,
    /// A place whose message went on counts as acknowledged for handles of before.
    ReturnedIsAcked,
    /// The next one of a message group is released when the ack of the one before it is appended.
    ReleasedBeforeFold,
    /// What waits to come again comes also after a reset that brings it in its queue.
    ResetLeavesRetries,
    /// A signal that is raised while nobody waits for it is forgotten.
    SignalNotKept,
    /// Between its look at a watermark and its wait, a thread does not hold the lock, and does not look again.
    LookThenWait,
    /// Who waits for a flush looks first, and then asks to be told.
    AskedAfterLook,
    /// A pipe that has room again tells nobody.
    RoomNotTold,
    /// Stages are woken to stop, and then told to.
    WokenThenStopped,
    /// A message that comes while a caller looks does not make it look again.
    LookNotRepeated,
    /// Readers and checkpoints are told of a group before it is written and flushed.
    ToldBeforeFlush,
    /// Readers are told of units before they are written.
    CommittedBeforeUnits,
    /// The file of a queue is marked as to be synced, and then written.
    MarkedThenWritten,
    /// A cancel goes by what it saw before its turn began.
    DecidedBeforeTurn,
}

#[cfg(debug_assertions)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Whether the fault is planted on this thread.
#[inline]
pub fn is(fault: Fault) -> bool {
    #[cfg(debug_assertions)]
    return PLANTED.get() == Some(fault);
    #[cfg(not(debug_assertions))]
    {
        let _ = fault;
        false
    }
}

/// Plants a fault on this thread, or takes it out again.
#[cfg(debug_assertions)]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}
