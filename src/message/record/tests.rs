//! What holds for every kind of record: round trip, fixed bytes, no flipped bit unnoticed.
