//! Tries the other request bodies.

#![no_main]

horolog_fuzz::target!([
    "receive",
    "ack",
    "nack",
    "extend",
    "redrive",
    "checks",
    "reschedule",
    "cancel",
    "topic",
    "group_settings",
    "offsets",
]);
