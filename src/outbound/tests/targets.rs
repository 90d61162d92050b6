//! The table of URLs.

use proptest::prelude::*;

use super::*;
use crate::outbound::connect::server_name;
use crate::outbound::host::Host;

/// What becomes of a URL, without and with private targets.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Good,
    /// Good only where private targets are allowed; otherwise refused with these words.
    Private(&'static str),
    /// Refused with these words in any case.
    Bad(&'static str),
}

use Verdict::{Bad, Good, Private};

const PRIVATE: &str = "only with --allow-private-targets";
const NUMBER: &str = "four decimal numbers";
const BRACKETS: &str = "in brackets";
const CHARACTER: &str = "letters, digits";
const LABEL: &str = "1 to 63 characters";
const NO_URL: &str = "not a URL";
const NO_HOST: &str = "names a host";
const USER: &str = "no user name";
const FRAGMENT: &str = "no fragment";
const SCHEME: &str = "begins with https://";
const HTTP: &str = "http is for private targets";
const PORT: &str = "is not called: allowed are 80, 443";
const PORT_SYNTAX: &str = "number up to 65535";
const NEVER: &str = "those are not called";

const TABLE: [(&str, Verdict); 99] = [
    ("https://shop.example", Good),
    ("https://shop.example/", Good),
    ("https://shop.example/a/b?c=d&e=%20", Good),
    ("https://shop.example?c", Good),
    ("HTTPS://SHOP.Example/A", Good),
    ("https://shop.example.:8443/", Good),
    ("https://xn--bcher-kva.example/", Good),
    ("https://my_service.internal/", Good),
    ("https://7.shop.example/", Good),
    ("https://0x7f.example/", Good),
    ("https://a1.b2c/", Good),
    ("https://shop.example/@me", Good),
    ("https://shop.example/?at=me@there", Good),
    ("https://shop.example/http://127.0.0.1/", Good),
    ("https://93.184.216.34/", Good),
    ("https://[2606:4700::1111]/", Good),
    ("https://[::ffff:8.8.8.8]:1024/", Good),
    ("https://shop.example:80/", Good),
    ("https://shop.example:443/", Good),
    ("https://shop.example:1024/", Good),
    ("https://shop.example:65535/", Good),
    ("https://shop.example:0/", Bad(PORT)),
    ("https://shop.example:22/", Bad(PORT)),
    ("https://shop.example:25/", Bad(PORT)),
    ("https://shop.example:81/", Bad(PORT)),
    ("https://shop.example:444/", Bad(PORT)),
    ("https://shop.example:1023/", Bad(PORT)),
    ("https://shop.example:65536/", Bad("")),
    ("https://shop.example:/", Bad(PORT_SYNTAX)),
    ("https://shop.example:+443/", Bad("")),
    ("https://shop.example:https/", Bad("")),
    ("https://shop.example:443:443/", Bad("")),
    ("http://shop.example/", Private(HTTP)),
    ("http://10.0.0.1/", Private(HTTP)),
    ("http://93.184.216.34/", Bad("http")),
    ("ftp://shop.example/", Bad(SCHEME)),
    ("file:///etc/passwd", Bad(SCHEME)),
    ("gopher://127.0.0.1:70/", Bad(SCHEME)),
    ("unix:///run/docker.sock", Bad(SCHEME)),
    ("http+unix://%2Frun%2Fdocker.sock/", Bad(SCHEME)),
    ("javascript:alert(1)", Bad(NO_URL)),
    ("shop.example/a", Bad(NO_URL)),
    ("//shop.example/a", Bad(NO_URL)),
    ("/a", Bad(NO_URL)),
    ("", Bad(NO_URL)),
    (" https://shop.example/", Bad(SCHEME)),
    ("https:shop.example/", Bad(NO_URL)),
    ("https:///shop.example/", Bad(NO_HOST)),
    ("https://", Bad(NO_HOST)),
    ("https://:443/", Bad(NO_HOST)),
    ("https://?a", Bad(NO_HOST)),
    ("https://me@shop.example/", Bad(USER)),
    ("https://me:secret@shop.example/", Bad(USER)),
    ("https://shop.example@127.0.0.1/", Bad(USER)),
    ("https://@shop.example/", Bad(USER)),
    ("https://shop.example/#top", Bad(FRAGMENT)),
    ("https://shop.example#@127.0.0.1/", Bad(FRAGMENT)),
    ("https://shop.example\\@127.0.0.1/", Bad(NO_URL)),
    ("https://shop.example\\.evil.example/", Bad(NO_URL)),
    ("https://shop.exa mple/", Bad(NO_URL)),
    ("https://shop.example/a b", Bad(NO_URL)),
    ("https://shop.example/\r\nx: y", Bad(NO_URL)),
    ("https://shop.example\t/", Bad(NO_URL)),
    ("https://127%2e0.0.1/", Bad("")),
    ("https://b\u{fc}cher.example/", Bad("")),
    ("https://\u{ff11}27.0.0.1/", Bad("")),
    ("https://127\u{3002}0.0.1/", Bad("")),
    ("https://shop..example/", Bad(LABEL)),
    ("https://.shop.example/", Bad(LABEL)),
    ("https://./", Bad(LABEL)),
    ("https://-shop.example/", Bad(LABEL)),
    ("https://shop-.example/", Bad(LABEL)),
    ("https://shop*.example/", Bad(CHARACTER)),
    ("https://localhost/", Private(PRIVATE)),
    ("https://LOCALHOST./", Private(PRIVATE)),
    ("https://a.localhost:8443/", Private(PRIVATE)),
    ("https://127.0.0.1/", Private(PRIVATE)),
    ("https://127.0.0.1./", Bad(NUMBER)),
    ("https://127.1/", Bad(NUMBER)),
    ("https://127.0.1/", Bad(NUMBER)),
    ("https://2130706433/", Bad(NUMBER)),
    ("https://017700000001/", Bad(NUMBER)),
    ("https://0177.0.0.1/", Bad(NUMBER)),
    ("https://127.0.0.01/", Bad(NUMBER)),
    ("https://0x7f000001/", Bad(NUMBER)),
    ("https://0X7F.0.0.0x1/", Bad(NUMBER)),
    ("https://0x/", Bad(NUMBER)),
    ("https://a.b.c.4/", Bad(NUMBER)),
    ("https://256.0.0.1/", Bad(NUMBER)),
    ("https://1.2.3.4.5/", Bad(NUMBER)),
    ("https://169.254.169.254/latest/meta-data/", Private(PRIVATE)),
    ("https://192.168.0.1:8443/", Private(PRIVATE)),
    ("https://0.0.0.0/", Bad(NEVER)),
    ("https://255.255.255.255/", Bad(NEVER)),
    ("https://[::1]/", Private(PRIVATE)),
    ("https://[::ffff:7f00:1]/", Private(PRIVATE)),
    ("https://[64:ff9b::10.0.0.1]/", Private(PRIVATE)),
    ("https://[fe80::1%25eth0]/", Bad("")),
    ("https://[v1.a]/", Bad(BRACKETS)),
];

#[test]
fn every_url_gets_its_verdict_and_a_reason() {
    for (url, verdict) in TABLE {
        let refused = Target::new(url, PrivateTargets::Refused).map_err(|why| why.to_string());
        let allowed = Target::new(url, PrivateTargets::Allowed).map_err(|why| why.to_string());
        let says = |result: &Result<Target, String>, words: &str| {
            result.as_ref().is_err_and(|why| why.contains(words))
        };
        let right = match verdict {
            Good => refused.is_ok() && allowed.is_ok(),
            Private(words) => says(&refused, words) && allowed.is_ok(),
            Bad(words) => says(&refused, words) && says(&allowed, words),
        };
        assert!(right, "{url:?}: {refused:?}, {allowed:?}");
    }
}

#[test]
fn a_target_is_written_with_its_host_in_lower_case_and_without_what_goes_without_saying() {
    for (url, written) in [
        ("https://shop.example", "https://shop.example/"),
        ("HTTPS://SHOP.Example.:443/A?B", "https://shop.example/A?B"),
        ("https://shop.example?b", "https://shop.example/?b"),
        ("http://shop.example:443/", "http://shop.example:443/"),
        ("https://[2606:4700:0:0::1111]:8443/", "https://[2606:4700::1111]:8443/"),
    ] {
        let target = target(url);
        assert_eq!(target.to_string(), written);
        assert_eq!(Target::new(written, PrivateTargets::Allowed), Ok(target), "{url}");
    }
}

#[test]
fn lengths_are_bounded_to_the_byte() {
    let url = |length: usize| format!("https://shop.example/{:a<1$}", "", length - 21);
    assert_eq!(url(2048).len(), 2048);
    assert!(Target::new(&url(2048), PrivateTargets::Refused).is_ok());
    let error = TargetError::Length { length: 2049 };
    assert_eq!(Target::new(&url(2049), PrivateTargets::Refused), Err(error));

    let label = |length| "a".repeat(length);
    assert!(Host::parse(&label(63)).is_ok());
    assert_eq!(Host::parse(&label(64)), Err(HostError::Label));
    let three = format!("{0}.{0}.{0}.", label(63));
    assert!(Host::parse(&(three.clone() + &label(61))).is_ok());
    assert_eq!(Host::parse(&(three + &label(62))), Err(HostError::Length));
}

proptest! {
    /// Whatever is accepted is read the same when it is written and read again, and has a name for TLS.
    #[test]
    fn an_accepted_url_means_one_thing(
        url in "(http|https)://[a-z0-9x.:@\\[\\]%_A-F-]{0,20}(:[0-9]{1,5})?[/?#\\\\]?[ -~]{0,8}",
    ) {
        if let Ok(target) = Target::new(&url, PrivateTargets::Allowed) {
            let again = Target::new(&target.to_string(), PrivateTargets::Allowed);
            prop_assert_eq!(again.as_ref(), Ok(&target));
            let _ = server_name(&target.host);
        }
    }

    #[test]
    fn every_name_that_is_accepted_is_one_for_tls(text in "[a-z0-9_.x-]{1,70}") {
        if let Ok(host) = Host::parse(&text) {
            let _ = server_name(&host);
        }
    }
}
