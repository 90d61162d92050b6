//! A server of its own for each test, and what to say to it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{Method, Request};
use bytes::Bytes;
use horolog::app::{App, World};
use horolog::client::{Answer, Client};
use horolog::clock::SystemClock;
use horolog::config::{Config, Given};
use http_body_util::Full;
use serde_json::{Value, json as value};
use tempfile::TempDir;
use timerlog::disk::{Directory, OsDirectory};

/// Where a server keeps its data.
enum Data {
    Folder(TempDir),
    Disk(Arc<dyn Directory>),
}

/// A server on a free port of this machine and a directory that goes with it.
pub(crate) struct TestServer {
    app: App,
    given: Given,
    data: Data,
    random: [u8; 32],
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(Given::default()).await
    }

    /// Starts with settings, but for the address and the segments, which are small in tests.
    pub(crate) async fn start_with(given: Given) -> Self {
        Self::start_in(given, [7; 32]).await
    }

    /// Starts with other random bytes than all other servers: its ids and cursors are its own.
    pub(crate) async fn start_with_random(random: [u8; 32]) -> Self {
        Self::start_in(Given::default(), random).await
    }

    async fn start_in(given: Given, random: [u8; 32]) -> Self {
        let data = tempfile::tempdir().expect("the test may write temporary files");
        Self::start_on(Data::Folder(data), given, random).await
    }

    /// Starts on a disk that the test makes up.
    pub(crate) async fn start_on_disk(given: Given, root: Arc<dyn Directory>) -> Self {
        Self::start_on(Data::Disk(root), given, [7; 32]).await
    }

    async fn start_on(data: Data, given: Given, random: [u8; 32]) -> Self {
        let directory: Arc<dyn Directory> = match &data {
            Data::Folder(folder) => {
                Arc::new(OsDirectory::open(folder.path()).expect("the directory can be opened"))
            }
            Data::Disk(root) => Arc::clone(root),
        };
        let given = Given {
            listen: Some("127.0.0.1:0".to_owned()),
            segment_size: Some("16MiB".to_owned()),
            // Many servers at a time keep no gigabytes free.
            disk_reserve: given.disk_reserve.clone().or(Some("1MiB".to_owned())),
            ..given
        };
        let config = Config::new(&given).expect("the test's settings are good");
        let world = World { directory, clock: Arc::new(SystemClock::new()), random };
        let app = App::start(&config, world).await.expect("the data directory is good");
        Self { app, given, data, random }
    }

    /// Stops in order and starts again on the same directory; at another address.
    pub(crate) async fn restart(self) -> Self {
        let Self { app, given, data, random } = self;
        app.stop().await;
        Self::start_on(data, given, random).await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.app.address()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address())
    }

    pub(crate) async fn stop(self) {
        self.app.stop().await;
    }

    /// One line of `/metrics`, by all that comes before its value.
    pub(crate) async fn figure(&self, name: &str) -> String {
        let answer = get(&mut self.client(), "/metrics").await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_default().to_owned()
    }
}

/// The messages of `topic` that `group` gets from one receive, which waits for the first of them.
pub(crate) async fn receive(server: &TestServer, group: &str, topic: &str) -> Vec<Value> {
    let request = value!({"topic": topic, "max": 256, "wait": "20s"}).to_string();
    let path = format!("/v1/groups/{group}/receive");
    let answer = post(&mut server.client(), &path, request).await;
    assert_eq!(answer.status, 200, "{}", json(&answer));
    json(&answer)["messages"].as_array().expect("a list").clone()
}

/// Everything of `topic` up to the message whose text is "fence", which has to arrive: what is not in it
/// by then, and was due before, will not come.
pub(crate) async fn receive_up_to_fence(
    server: &TestServer,
    group: &str,
    topic: &str,
) -> Vec<Value> {
    let mut received = Vec::new();
    loop {
        let messages = receive(server, group, topic).await;
        assert!(!messages.is_empty(), "the fence does not come; so far {received:?}");
        let over = messages.iter().any(|message| message["bodyText"] == "fence");
        received.extend(messages.into_iter().filter(|message| message["bodyText"] != "fence"));
        if over {
            return received;
        }
    }
}

/// The id in an answer that must be one of success.
pub(crate) fn id(answer: &Answer) -> String {
    let value = json(answer);
    assert!(answer.status.is_success(), "{} {value}", answer.status);
    value["messageId"].as_str().expect("an id is text").to_owned()
}

/// Sends a request with these headers, at most one body, and reads the answer.
pub(crate) async fn send(
    client: &mut Client,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).expect("the test's request is well formed");
    client.send(request).await.expect("the server answers")
}

pub(crate) async fn get(client: &mut Client, path: &str) -> Answer {
    send(client, Method::GET, path, &[], "").await
}

/// Sends `body` as JSON, though it need not be any.
pub(crate) async fn post(client: &mut Client, path: &str, body: impl Into<Bytes>) -> Answer {
    send(client, Method::POST, path, &[("content-type", "application/json")], body).await
}

/// Sends `body` as JSON with any method.
pub(crate) async fn send_json(
    client: &mut Client,
    method: Method,
    path: &str,
    body: impl Into<Bytes>,
) -> Answer {
    send(client, method, path, &[("content-type", "application/json")], body).await
}

pub(crate) async fn delete(client: &mut Client, path: &str) -> Answer {
    send(client, Method::DELETE, path, &[], "").await
}

pub(crate) fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// Status and code of a refusal, which must be a whole problem.
pub(crate) fn refusal(answer: &Answer) -> (u16, String) {
    let problem = json(answer);
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{problem}");
    assert_eq!(problem["status"], answer.status.as_u16(), "{problem}");
    for member in ["type", "title", "detail"] {
        assert!(problem[member].is_string(), "{member} of {problem}");
    }
    (answer.status.as_u16(), problem["code"].as_str().unwrap_or_default().to_owned())
}
