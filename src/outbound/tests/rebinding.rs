//! Names that change their meaning, or have several.

use super::calls::bound_but_deaf;
use super::tls::Authority;
use super::*;

#[tokio::test]
async fn a_name_that_turns_into_loopback_is_not_called_again() {
    let authority = Authority::new();
    let server = authority.server("hook.test", ok("{}")).await;
    let detour = Detour::to(server.address);
    let rebinding = Answers::new(&[&[PUBLIC], &["127.0.0.1"]]);
    let outbound = with_dialer(authority.trusted(), rebinding, detour.clone());
    let target = outbound.target("https://hook.test/checks").unwrap();

    assert_eq!(post(&outbound, &target).await.unwrap().status, 200);
    assert_eq!(detour.dialed(), ["93.184.216.34:443"]);
    let why = not_sent(post(&outbound, &target).await);
    assert_eq!(
        why.to_string(),
        "hook.test is not called: 127.0.0.1 is a loopback address, and those are called only with \
         --allow-private-targets"
    );
    assert_eq!(detour.dialed(), ["93.184.216.34:443"], "nothing was dialed the second time");
}

#[tokio::test]
async fn a_name_that_means_this_machine_opens_no_connection_to_it() {
    let (listener, address) = listener().await;
    let resolver = Answers::new(&[&["127.0.0.1"]]);
    let outbound = Outbound::new(settings(PrivateTargets::Refused), resolver).unwrap();
    let target = outbound.target(&format!("https://hook.test:{}/", address.port())).unwrap();
    let why = not_sent(post(&outbound, &target).await);
    assert!(matches!(why, NotSent::Refused { .. }), "{why}");
    assert_nobody_came(&listener).await;
}

#[tokio::test]
async fn of_several_addresses_only_those_that_may_be_are_dialed() {
    let (_listener, address) = bound_but_deaf();
    let detour = Detour::to(address);
    let mixed =
        ["10.0.0.1", "::ffff:127.0.0.1", PUBLIC, "169.254.169.254", "2606:4700::1111", "0.0.0.0"];
    let resolver = Answers::new(&[&mixed]);
    let outbound = with_dialer(settings(PrivateTargets::Refused), resolver, detour.clone());
    let why = not_sent(post(&outbound, &target("https://hook.test:8443/")).await);
    assert!(matches!(why, NotSent::Connect { .. }), "{why}");
    assert_eq!(detour.dialed(), ["93.184.216.34:8443", "[2606:4700::1111]:8443"]);
}

#[tokio::test]
async fn a_name_with_hundreds_of_addresses_is_four_tries() {
    let (_listener, address) = bound_but_deaf();
    let detour = Detour::to(address);
    let resolver = Answers::new(&[&[PUBLIC; 300]]);
    let outbound = with_dialer(settings(PrivateTargets::Refused), resolver, detour.clone());
    not_sent(post(&outbound, &target("https://hook.test/")).await);
    assert_eq!(detour.dialed().len(), 4);
}

#[tokio::test]
async fn the_next_address_is_tried_when_the_first_does_not_answer() {
    let (address, request) = receiver(ok("{}")).await;
    let resolver = Answers::new(&[&["127.0.0.2", "127.0.0.1"]]);
    let outbound = Outbound::new(settings(PrivateTargets::Allowed), resolver).unwrap();
    let url = format!("http://hook.test:{}/", address.port());
    assert_eq!(post(&outbound, &target(&url)).await.unwrap().status, 200);
    request.await.unwrap();
}

#[tokio::test]
async fn a_target_judged_by_softer_settings_is_judged_again() {
    let (listener, address) = listener().await;
    let soft = target(&format!("http://{address}/"));
    let resolver = Answers::new(&[&[]]);
    let outbound = Outbound::new(settings(PrivateTargets::Refused), resolver).unwrap();
    let why = not_sent(post(&outbound, &soft).await);
    assert!(matches!(why, NotSent::Refused { .. }), "{why}");
    assert_nobody_came(&listener).await;
}

#[tokio::test]
async fn plain_http_goes_to_private_addresses_only() {
    let (_listener, address) = bound_but_deaf();
    let detour = Detour::to(address);
    let resolver = Answers::new(&[&[PUBLIC]]);
    let outbound = with_dialer(settings(PrivateTargets::Allowed), resolver, detour.clone());
    let why = not_sent(post(&outbound, &target("http://hook.test/")).await);
    assert!(why.to_string().contains("over https only"), "{why}");
    assert!(detour.dialed().is_empty());
}

#[tokio::test]
async fn the_server_does_not_call_its_own_listener() {
    let (listener, address) = listener().await;
    let own_listeners = vec![address];
    let settings = OutboundSettings { own_listeners, ..settings(PrivateTargets::Allowed) };
    let outbound = Outbound::new(settings, Answers::new(&[&["127.0.0.1"]])).unwrap();
    let url = format!("http://hook.test:{}/v1/topics", address.port());
    let why = not_sent(post(&outbound, &target(&url)).await);
    assert!(why.to_string().contains("where this server listens itself"), "{why}");
    assert_nobody_came(&listener).await;
}

#[tokio::test]
async fn a_name_without_an_address_or_a_resolver_that_fails_sends_nothing() {
    #[derive(Debug)]
    struct Broken;
    impl Resolve for Broken {
        fn resolve<'a>(&'a self, _name: &'a str) -> Resolving<'a> {
            Box::pin(async { Err(io::Error::other("no such name")) })
        }
    }
    let target = target("https://hook.test/");
    let refused = || settings(PrivateTargets::Refused);
    let outbound = Outbound::new(refused(), Answers::new(&[&[]])).unwrap();
    let why = not_sent(post(&outbound, &target).await);
    assert_eq!(why.to_string(), "hook.test has no address");
    let outbound = Outbound::new(refused(), Arc::new(Broken)).unwrap();
    let why = not_sent(post(&outbound, &target).await);
    assert_eq!(why.to_string(), "cannot resolve hook.test: no such name");
}

#[tokio::test]
async fn the_systems_resolver_gives_addresses() {
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    assert_eq!(SystemResolver.resolve("127.0.0.1").await.unwrap(), [loopback]);
    // It reads the spellings that URLs may not have; what comes out is judged all the same.
    assert_eq!(SystemResolver.resolve("0x7f.1").await.unwrap(), [loopback]);
}
