//! The measures of a wheel.

/// How long a slot is, how many there are, and how the files are cut.
///
/// All of it is fixed once a wheel has been made; another [`Config`] needs a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Milliseconds in a near slot.
    pub precision_ms: u32,
    /// Slots in the near ring: a power of two, at least 8. A far slot is a quarter of it wide.
    pub near_slots: u64,
    /// Slots in the far ring: a power of two.
    pub far_slots: u64,
    /// Bytes in each file of a TimerLog: a multiple of 12,288.
    pub segment_size: u64,
    /// How many cancelled offsets are held in memory at once while a far slot is re-filed. Beyond
    /// it the slot is read in more passes.
    pub cancels_max: usize,
}

impl Default for Config {
    /// Slots of a second, 12.1 days of them near, 136 years far; files of 48 MiB, a million records
    /// each.
    fn default() -> Self {
        Self {
            precision_ms: 1000,
            near_slots: 1 << 20,
            far_slots: 1 << 14,
            segment_size: 48 * 1024 * 1024,
            cancels_max: 1 << 18,
        }
    }
}

impl Config {
    pub(super) fn assert_valid(&self) {
        assert!(self.precision_ms > 0, "a slot has a length");
        let rings = self.near_slots.is_power_of_two() && self.far_slots.is_power_of_two();
        assert!(rings && self.near_slots >= 8, "rings are powers of two: {self:?}");
        let files = self.segment_size > 0 && self.segment_size.is_multiple_of(12_288);
        assert!(files, "files hold whole pages and whole records: {self:?}");
        assert!(self.cancels_max > 0, "one cancel at least is held: {self:?}");
    }
}
