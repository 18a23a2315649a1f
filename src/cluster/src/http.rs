//! Pages: metrics, health, readiness; and the log level, on a socket that only this machine reaches.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Deserialize;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::health::Health;
use crate::metrics::Metrics;

/// Serves `/metrics`.
pub(crate) async fn serve_metrics(address: SocketAddr, metrics: Metrics) -> std::io::Result<SocketAddr> {
    let page = |State(metrics): State<Metrics>| async move {
        ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], metrics.text())
    };
    serve(address, Router::new().route("/metrics", get(page)).with_state(metrics)).await
}

/// Serves `/healthz` and `/readyz`.
pub(crate) async fn serve_health(address: SocketAddr, health: Health) -> std::io::Result<SocketAddr> {
    let alive = |State(health): State<Health>| async move { answer(health.alive()) };
    let ready = |State(health): State<Health>| async move { answer(health.ready()) };
    let pages = Router::new().route("/healthz", get(alive)).route("/livez", get(alive)).route("/readyz", get(ready));
    serve(address, pages.with_state(health)).await
}

fn answer(result: Result<(), String>) -> impl IntoResponse {
    match result {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

async fn serve(address: SocketAddr, pages: Router) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, pages).await {
            warn!("the page server at {bound} has ended: {error}");
        }
    });
    Ok(bound)
}

/// Sets what is logged; `None` is what was set at the start.
pub type SetLevel = Arc<dyn Fn(Option<&str>) -> Result<(), String> + Send + Sync>;

#[derive(Clone)]
struct Levels {
    set: SetLevel,
    state: Arc<Mutex<LevelState>>,
}

#[derive(Default)]
struct LevelState {
    level: Option<u8>,
    reset: Option<JoinHandle<()>>,
}

#[derive(Deserialize)]
struct Wish {
    level: u8,
    duration: String,
}

/// Serves `/setlevel?level=N&duration=D` and `/getlevel` on a Unix socket, as Volcano does: levels as klog counts
/// them, and back to the start after the duration.
pub(crate) fn serve_levels(folder: &Path, set: SetLevel) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join("klog-klog.sock");
    // Left behind by a process that was killed.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let levels = Levels { set, state: Arc::default() };
    let pages = Router::new().route("/setlevel", get(set_level)).route("/getlevel", get(get_level)).with_state(levels);
    info!("the log level can be set at {}", path.display());
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, pages).await {
            warn!("the log level socket has ended: {error}");
        }
    });
    Ok(())
}

async fn set_level(State(levels): State<Levels>, Query(wish): Query<Wish>) -> impl IntoResponse {
    let duration = match krafla_api::parse_duration(&wish.duration).map(u64::try_from) {
        Ok(Ok(ms @ 1..)) => Duration::from_millis(ms),
        _ => return (StatusCode::BAD_REQUEST, format!("duration {} is not one, such as 5m\n", wish.duration)),
    };
    if let Err(why) = (levels.set)(Some(filter_of(wish.level))) {
        return (StatusCode::INTERNAL_SERVER_ERROR, why);
    }
    let mut state = levels.state.lock().unwrap_or_else(PoisonError::into_inner);
    state.level = Some(wish.level);
    let later = levels.clone();
    let reset = tokio::spawn(async move {
        tokio::time::sleep(duration).await;
        let _ = (later.set)(None);
        later.state.lock().unwrap_or_else(PoisonError::into_inner).level = None;
    });
    if let Some(earlier) = state.reset.replace(reset) {
        earlier.abort();
    }
    (StatusCode::OK, format!("level {} ({}) for {}\n", wish.level, filter_of(wish.level), wish.duration))
}

async fn get_level(State(levels): State<Levels>) -> String {
    let level = levels.state.lock().unwrap_or_else(PoisonError::into_inner).level;
    level.map_or("as started\n".to_owned(), |level| format!("{level}\n"))
}

/// klog's levels in our words.
pub const fn filter_of(level: u8) -> &'static str {
    match level {
        0..=3 => "info",
        4 => "debug",
        _ => "trace",
    }
}
