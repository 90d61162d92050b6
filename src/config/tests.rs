use clap::{CommandFactory, Parser};

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    given: Given,
}

fn flags(line: &str) -> Given {
    Command::try_parse_from(std::iter::once("horolog").chain(line.split_whitespace()))
        .unwrap()
        .given
}

#[test]
fn without_any_setting_the_server_is_local_and_durable() {
    let config = Config::new(&Given::default()).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7400");
    assert_eq!(config.exposure, Exposure::Loopback);
    assert_eq!(config.data_dir, PathBuf::from("./horolog-data"));
    assert_eq!(config.flush, Flush::Sync);
    assert_eq!(config.segment_size, 1 << 30);
    assert_eq!(config.max_body, 4 << 20);
    assert_eq!(config.checkpoint_interval_ms, 30_000);
    assert_eq!(config.retention_ms, 259_200_000);
    assert_eq!(config.topics, TopicCreation::Automatic);
    assert_eq!(config.queues_per_topic, 4);
    assert_eq!(config.delay_levels, LevelTable::default());
    assert_eq!(config.queued_appends, QueuedAppends::default());
    assert_eq!(config.leases, LeaseBounds::default());
    assert_eq!(config.private_targets, PrivateTargets::Refused);
}

#[test]
fn private_targets_are_called_only_on_request() {
    let targets = |given: Given| Config::new(&given).map(|config| config.private_targets);
    let file = |text| Given::from_toml(text).unwrap();
    assert_eq!(targets(flags("--allow-private-targets")), Ok(PrivateTargets::Allowed));
    assert_eq!(targets(flags("--allow-private-targets false")), Ok(PrivateTargets::Refused));
    assert_eq!(targets(file("allow_private_targets = true")), Ok(PrivateTargets::Allowed));
    let message = targets(flags("--allow-private-targets perhaps")).unwrap_err().to_string();
    assert!(message.contains("HOROLOG_ALLOW_PRIVATE_TARGETS"), "{message}");
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let file = Given::from_toml(
        "flush = 'async'\nflush_interval = '50ms'\nqueues_per_topic = 8\n\
         auto_create_topics = false\n",
    )
    .unwrap();
    let config = Config::new(&flags("--queues-per-topic 2 --max-body 64KiB").or(file)).unwrap();
    assert_eq!(config.queues_per_topic, 2);
    assert_eq!(config.max_body, 64 << 10);
    assert_eq!(config.flush, Flush::Async { interval_ms: 50 });
    assert_eq!(config.topics, TopicCreation::Explicit);
    assert_eq!(config.http_threads, 2);
}

#[test]
fn a_setting_that_cannot_be_used_is_refused_by_all_its_names() {
    for (line, names) in [
        ("--listen localhost", ["--listen", "HOROLOG_LISTEN", "listen must be"]),
        ("--flush maybe", ["--flush", "HOROLOG_FLUSH", "sync or async"]),
        ("--flush-interval 0s", ["--flush-interval", "HOROLOG_FLUSH_INTERVAL", "1ms to 10s"]),
        ("--segment-size 3MiB", ["--segment-size", "HOROLOG_SEGMENT_SIZE", "power of two"]),
        ("--segment-size 2GiB", ["segment_size", "\"2GiB\"", "1MiB to 1GiB"]),
        ("--max-body 5MiB", ["--max-body", "HOROLOG_MAX_BODY", "\"5MiB\""]),
        ("--max-connections 0", ["max_connections", "HOROLOG_MAX_CONNECTIONS", "\"0\""]),
        ("--max-waiting-receives=-1", ["max_waiting_receives", "1 to 1000000", "\"-1\""]),
        ("--max-request-memory 1KiB", ["max_request_memory", "16MiB to 64GiB", "\"1KiB\""]),
        ("--max-header 4KiB", ["max_header", "8KiB to 1MiB", "\"4KiB\""]),
        ("--header-timeout 0s", ["header_timeout", "1ms to 1h", "\"0s\""]),
        ("--idle-timeout 25h", ["idle_timeout", "1ms to 24h", "\"25h\""]),
        ("--body-timeout 2h", ["body_timeout", "1ms to 1h", "\"2h\""]),
        ("--body-grace 0", ["body_grace", "1ms to 1h", "\"0\""]),
        ("--min-body-rate 0", ["min_body_rate", "1 to 1GiB", "\"0\""]),
        ("--answer-timeout never", ["answer_timeout", "1ms to 1h", "\"never\""]),
        ("--max-answer-memory 1", ["max_answer_memory", "1MiB to 64GiB", "\"1\""]),
        ("--max-queued-appends 0", ["max_queued_appends", "1 to 100000000", "\"0\""]),
        ("--max-queued-append-bytes 1", ["max_queued_append_bytes", "1KiB to 64GiB", "\"1\""]),
        ("--max-leases 0", ["max_leases", "1 to 1000000000", "\"0\""]),
        ("--max-leases-per-queue 0", ["max_leases_per_queue", "1 to 10000000", "\"0\""]),
        ("--auto-create-topics yes", ["auto_create_topics", "true or false", "\"yes\""]),
        ("--queues-per-topic 257", ["queues_per_topic", "1 to 256", "\"257\""]),
        ("--checkpoint-interval 1ms", ["checkpoint_interval", "1s to 1h", "\"1ms\""]),
        ("--retention 0", ["retention", "1s to 400d", "\"0\""]),
        ("--delay-levels=", ["delay_levels", "HOROLOG_DELAY_LEVELS", "1 to 32 durations"]),
        ("--delay-levels 1s,5s", ["--delay-levels", "\"1s,5s\"", "spaces"]),
        ("--delay-levels 0s", ["--delay-levels", "\"0s\"", "from 1ms"]),
        ("--delay-levels=-1s", ["--delay-levels", "\"-1s\"", "from 1ms"]),
        ("--delay-levels 36526d", ["--delay-levels", "\"36526d\"", "to 36525d"]),
        ("--http-threads 0", ["http_threads", "1 to 256", "\"0\""]),
        ("--log-format xml", ["log_format", "text or json", "\"xml\""]),
        ("--log-level loud", ["log_level", "HOROLOG_LOG_LEVEL", "\"loud\""]),
        ("--data-dir=", ["data_dir", "HOROLOG_DATA_DIR", "directory"]),
        ("--segment-size 4MiB", ["max_body is 4194304", "--segment-size", "half"]),
    ] {
        let message = Config::new(&flags(line)).unwrap_err().to_string();
        for name in names {
            assert!(message.contains(name), "{line}: {message}");
        }
    }
}

#[test]
fn delay_levels_are_1_to_32_durations_in_any_order() {
    let table = |text: &str| {
        let given = Given { delay_levels: Some(text.to_owned()), ..Given::default() };
        Config::new(&given).map(|config| config.delay_levels.delays_ms().to_vec())
    };
    assert_eq!(table("1s"), Ok(vec![1000]));
    assert_eq!(table("  2h\t250ms PT30M 5000 "), Ok(vec![7_200_000, 250, 1_800_000, 5000]));
    assert_eq!(table(&"1s ".repeat(32)), Ok(vec![1000; 32]));
    for bad in ["", "1s 5", "1s 5x", "soon", "1s -5s", "1s 0ms", "1.5", &"1s ".repeat(33)] {
        // A bare number is milliseconds.
        assert_eq!(table(bad).is_ok(), bad == "1s 5", "{bad:?}");
    }
    let file = Given::from_toml("delay_levels = '3s 7s'").unwrap();
    let config = Config::new(&flags("").or(file)).unwrap();
    assert_eq!(config.delay_levels.delays_ms(), [3000, 7000]);
}

#[test]
fn an_open_address_needs_a_word_that_says_so() {
    for line in ["--listen 0.0.0.0:7400", "--listen [::]:7400", "--listen 10.0.0.1:1"] {
        let message = Config::new(&flags(line)).unwrap_err().to_string();
        assert!(message.contains("--insecure-listen"), "{line}: {message}");
        let config = Config::new(&flags(&format!("{line} --insecure-listen"))).unwrap();
        assert_eq!(config.exposure, Exposure::Insecure);
    }
    let config = Config::new(&flags("--listen [::1]:0")).unwrap();
    assert_eq!(config.exposure, Exposure::Loopback);
}

#[test]
fn a_file_with_an_unknown_key_or_a_wrong_type_is_refused() {
    for text in ["flsuh = 'async'", "flush = ['sync']", "flush 'sync'", "queues_per_topic = 1.5"] {
        let error = Given::from_toml(text).unwrap_err();
        assert!(matches!(error, ConfigError::File { .. }), "{text}: {error}");
    }
}

#[test]
fn the_readme_lists_every_setting_with_the_default_that_help_names() {
    let readme = include_str!("../../README.md");
    let command = Command::command();
    for argument in command.get_arguments().filter(|argument| argument.get_long() != Some("help")) {
        let key = argument.get_id().as_str();
        let row = readme.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let default = help.split("[default: ").nth(1).and_then(|rest| rest.split(']').next());
        let default = default.unwrap_or("false");
        let listed = row.is_some_and(|row| row.contains(&format!("| `{default}` |")));
        assert!(listed, "{key}, {default}: {row:?}");
    }
}
