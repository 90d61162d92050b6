//! One deadline over everything. The clock of these tests stands still, and jumps to the next timer when
//! nobody has anything left to do.

use tokio::time::{Instant, interval, pause};

use super::*;

#[derive(Debug)]
struct Never;

impl Resolve for Never {
    fn resolve<'a>(&'a self, _name: &'a str) -> Resolving<'a> {
        Box::pin(std::future::pending())
    }
}

impl Dial for Never {
    fn dial(&self, _address: SocketAddr) -> Dialing {
        Box::pin(std::future::pending())
    }
}

/// How long a call took by the test's clock, in whole seconds.
async fn timed(outbound: &Outbound, url: &str) -> (Result<Reply, OutboundError>, u64) {
    let start = Instant::now();
    let result = post(outbound, &target(url)).await;
    (result, start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_does_not_answer_sent_nothing() {
    let outbound = Outbound::new(settings(PrivateTargets::Refused), Arc::new(Never)).unwrap();
    let (result, seconds) = timed(&outbound, "https://hook.test/").await;
    assert!(matches!(not_sent(result), NotSent::ResolveTimeout));
    assert_eq!(seconds, 30);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_answer_sent_nothing() {
    let resolver = Answers::new(&[&[PUBLIC, "2606:4700::1111"]]);
    let outbound = with_dialer(settings(PrivateTargets::Refused), resolver, Arc::new(Never));
    let (result, seconds) = timed(&outbound, "https://hook.test/").await;
    assert!(matches!(not_sent(result), NotSent::ConnectTimeout { .. }));
    assert_eq!(seconds, 30);
}

/// A dead address has only its share of the time: the good one after it is still called.
#[tokio::test(start_paused = true)]
async fn a_dead_address_leaves_time_for_the_next() {
    #[derive(Debug)]
    struct FirstIsDead(SocketAddr);
    impl Dial for FirstIsDead {
        fn dial(&self, address: SocketAddr) -> Dialing {
            let to = self.0;
            if address.is_ipv6() { Never.dial(address) } else { Box::pin(TcpStream::connect(to)) }
        }
    }
    let (address, request) = receiver(ok("{}")).await;
    let resolver = Answers::new(&[&["fd00::1", "10.0.0.1"]]);
    let dialer = Arc::new(FirstIsDead(address));
    let outbound = with_dialer(settings(PrivateTargets::Allowed), resolver, dialer);
    let (result, seconds) = timed(&outbound, "http://hook.test/").await;
    assert_eq!(result.unwrap().status, 200);
    assert_eq!(seconds, 15);
    request.await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_does_not_end_sent_nothing() {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 5]).await.unwrap();
        pause();
        stream
    });
    let url = format!("https://hook.test:{}/", address.port());
    let why = not_sent(post(&local(), &target(&url)).await);
    assert!(matches!(why, NotSent::TlsTimeout { address: at } if at == address), "{why}");
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_may_have_acted() {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        pause();
        stream
    });
    let why = unknown(post(&local(), &target(&format!("http://{address}/"))).await);
    assert!(matches!(why, Unknown::Timeout), "{why}");
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_body_that_drips_does_not_put_off_the_deadline() {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        pause();
        let start = Instant::now();
        let mut second = interval(Duration::from_secs(1));
        while stream.write_all(b" ").await.is_ok() {
            second.tick().await;
        }
        start.elapsed().as_secs()
    });
    let why = unknown(post(&local(), &target(&format!("http://{address}/"))).await);
    assert!(matches!(why, Unknown::Timeout), "{why}");
    // A write after the end is what tells the receiver, so it takes a drop or two to notice.
    let seconds = server.await.unwrap();
    assert!((29..=33).contains(&seconds), "{seconds}");
}
