//! Rounds in turns: what is compared is taken one after the other, again and again, so that a slow minute of the machine
//! is slow for all of it.

/// The middle one.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "counts of a round stay far below 2^53")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}
