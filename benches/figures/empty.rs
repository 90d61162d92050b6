//! What a put is measured against: an axum handler that reads its body and says 201.

use std::process::Command;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use crate::process::Process;
use crate::{AnyError, table};

/// Makes this program that server, with as many threads as Horolog has for HTTP.
pub(crate) const FLAG: &str = "--empty-handler";

pub(crate) fn start() -> Result<Process, AnyError> {
    Process::start(Command::new(std::env::current_exe()?).arg(FLAG))
}

pub(crate) async fn serve() -> Result<(), AnyError> {
    let router = Router::new().route("/v1/topics/{topic}/messages", post(read_and_say_created));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    listener.local_addr().map(|address| table::say(&format!("http://{address}")))?;
    let listener = listener.tap_io(|stream| {
        // A connection that is gone already needs no setting.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

async fn read_and_say_created(body: Bytes) -> StatusCode {
    drop(body);
    StatusCode::CREATED
}
