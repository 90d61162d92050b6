//! The disk fills up under the engine, and room comes back.
//!
//! While it is full new work is refused, nothing that was accepted is forgotten, and what follows from it goes on
//! from what was kept for it. A start may be refused for want of room; it may not lose anything by that.

use horolog::clock::Clock;
use horolog::commitlog::AppendError;
use horolog::producer::{self, PutError};
use horolog::space::Pressure;
use horolog::store::MakeError;

use crate::model::{Checked, ensure};
use crate::operations::PUT;
use crate::world::{RESERVE_BYTES, TOPICS, World};

/// Operations for which the disk stays full, at most.
const LONGEST: usize = 60;

impl World {
    pub(crate) fn live_on_a_full_disk(&mut self) -> Checked {
        let left = self.random.below(RESERVE_BYTES);
        self.disk.set_capacity(Some(self.disk.allocated() + left));
        let lives = self.lives();
        self.step_named("space")?;
        if self.lives() == lives {
            self.refuses_new_work()?;
            self.settle()?;
        }
        if self.lives() == lives {
            self.has_room_for_what_was_accepted()?;
        }
        for _ in 0..=self.index(LONGEST) {
            self.operation_on_a_full_disk()?;
            self.hear_answers();
        }
        self.room_comes_back()
    }

    /// As soon as the disk has been looked at.
    fn refuses_new_work(&mut self) -> Checked {
        let pressure = self.engine().space.pressure();
        ensure!(pressure != Pressure::None, "less is free than the reserve, and nobody minds");
        let topic = self.index(TOPICS);
        let (message, known) = self.new_message(topic);
        self.model.messages.push(known);
        let (engine, name, now) = (self.engine(), self.topic(topic), self.clock.now().wall);
        let put = producer::put(&engine.store, PUT, &name, message, engine.nonce(), now);
        // The index may be behind, and say so first.
        let refused = put.err().ok_or("the disk is nearly full, and a message was taken")?;
        self.coverage.refused_for_room += u64::from(is_for_want_of_room(&refused));
        Ok(())
    }

    /// The flush, which looks for room as everybody does, has found some for the log.
    fn has_room_for_what_was_accepted(&self) -> Checked {
        let turn = self.engine().store.log().turn_for_accepted(96);
        let full = matches!(turn, Err(AppendError::StorageFull));
        ensure!(!full, "the reserve is not touched, and an ack or a cancel finds no room");
        Ok(())
    }

    fn operation_on_a_full_disk(&mut self) -> Checked {
        match self.random.below(24) {
            0..2 => self.put(),
            2 => self.put_timer(),
            3..7 => self.cancel(),
            7..10 => self.receive_some(),
            10..13 => self.ack_some(),
            13 => self.give_back(),
            14..19 => self.step_some(),
            19..22 => self.let_time_pass(),
            22 => self.checkpoint(),
            _ if self.random.once_in(4) => self.kill(),
            _ => self.step_named("space"),
        }
    }

    /// Nothing has to be started again.
    fn room_comes_back(&mut self) -> Checked {
        let starved = self.engine().space.pressure() == Pressure::BallastGivenUp;
        self.disk.set_capacity(None);
        let lives = self.lives();
        // In the first of these whoever waited for room finds it, in the second nobody asks any more.
        for _ in 0..2 {
            self.settle()?;
            self.step_named("space")?;
        }
        if self.lives() == lives {
            let pressure = self.engine().space.pressure();
            ensure!(pressure == Pressure::None, "there is room, and new work is refused");
            self.coverage.room_came_back += u64::from(starved);
        }
        Ok(())
    }

    fn step_named(&mut self, name: &str) -> Checked {
        let index = self.stages.iter().position(|stage| stage.name() == name);
        self.step(index.ok_or_else(|| format!("there is no stage {name}"))?).map(drop)
    }
}

fn is_for_want_of_room(error: &PutError) -> bool {
    matches!(
        error,
        PutError::Append(AppendError::StorageFull)
            | PutError::Make(MakeError::Append(AppendError::StorageFull))
    )
}
