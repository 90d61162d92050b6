//! What happens in the second act, decided by a seed before it begins.

use super::super::dice::Dice;

/// How long after it is begun an order's reminder is due.
const DELAY_MS: std::ops::Range<u64> = 200..4_000;

/// What became of an order in the shop's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Committed,
    RolledBack,
}

/// Whether the shop tells the server of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shop {
    Answers,
    /// It says nothing more after the beginning, as one that crashed.
    FallsSilent,
}

/// What becomes of the consumer that is first given the order's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consumer {
    Acks,
    Crashes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) delay_ms: u64,
    pub(super) ending: Ending,
    pub(super) shop: Shop,
    pub(super) consumer: Consumer,
}

#[derive(Debug)]
pub(super) struct Plan {
    orders: Vec<Order>,
}

impl Plan {
    pub(super) fn new(orders: usize, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        Self { orders: (0..orders).map(|_| order(&mut dice)).collect() }
    }

    pub(super) fn order(&self, number: usize) -> Order {
        self.orders[number]
    }
}

fn order(dice: &mut Dice) -> Order {
    let delay_ms = DELAY_MS.start + dice.below(DELAY_MS.end - DELAY_MS.start);
    let (ending, shop) = match dice.below(20) {
        0 | 1 => (Ending::RolledBack, Shop::Answers),
        2 => (Ending::RolledBack, Shop::FallsSilent),
        3 => (Ending::Committed, Shop::FallsSilent),
        _ => (Ending::Committed, Shop::Answers),
    };
    let consumer = if dice.below(20) == 0 { Consumer::Crashes } else { Consumer::Acks };
    Order { delay_ms, ending, shop, consumer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_ten_is_rolled_back_and_one_in_ten_is_never_heard_of_again() {
        let plan = Plan::new(10_000, 7);
        let count = |is: fn(&Order) -> bool| plan.orders.iter().filter(|order| is(order)).count();
        let rolled_back =
            count(|order| (order.ending, order.shop) == (Ending::RolledBack, Shop::Answers));
        assert!((900..1_100).contains(&rolled_back), "{rolled_back}");
        let silent = count(|order| order.shop == Shop::FallsSilent);
        assert!((900..1_100).contains(&silent), "{silent}");
        let of_them_committed =
            count(|order| (order.ending, order.shop) == (Ending::Committed, Shop::FallsSilent));
        assert!((400..600).contains(&of_them_committed), "{of_them_committed}");
        let crashes = count(|order| order.consumer == Consumer::Crashes);
        assert!((400..600).contains(&crashes), "{crashes}");
    }
}
