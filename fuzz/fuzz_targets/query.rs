//! Tries query strings, the cursors in them, and heads of requests.

#![no_main]

horolog_fuzz::target!([
    "scheduled_query",
    "timeline_query",
    "search_query",
    "transactions_query",
    "page_query",
    "flag_query",
    "head",
]);
