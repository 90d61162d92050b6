//! What happens in the first act, decided by a seed before it begins.

use super::dice::Dice;

/// The shortest and the longest time an order may stay unpaid.
const TIMEOUT_MS: std::ops::Range<u64> = 1_000..20_000;

/// When an order is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payment {
    Never,
    /// So long after it was scheduled.
    After(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) timeout_ms: u64,
    pub(super) payment: Payment,
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
    let timeout_ms = TIMEOUT_MS.start + dice.below(TIMEOUT_MS.end - TIMEOUT_MS.start);
    let payment = match dice.below(20) {
        0..10 => Payment::Never,
        // In the very moment in which the order runs out: the server says who came first.
        10 => Payment::After(timeout_ms - 3 + dice.below(7)),
        _ => Payment::After(dice.below(timeout_ms)),
    };
    Order { timeout_ms, payment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_half_of_the_orders_are_paid_and_some_at_the_last_moment() {
        let plan = Plan::new(10_000, 7);
        let paid = plan.orders.iter().filter(|order| order.payment != Payment::Never).count();
        assert!((4_500..5_500).contains(&paid), "{paid}");
        let close = plan.orders.iter().filter(|order| match order.payment {
            Payment::Never => false,
            Payment::After(ms) => ms.abs_diff(order.timeout_ms) <= 3,
        });
        assert!(close.count() > 300);
    }
}
