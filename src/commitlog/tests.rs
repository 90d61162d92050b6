//! Appends, flushes and recoveries on the simulated disk.
