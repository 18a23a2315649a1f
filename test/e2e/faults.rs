//! What goes wrong in clusters. After each of these, everything that can run does, no node is overfull, nothing was
//! bound twice, and the scheduler's books are right.

use std::time::{Duration, Instant};

use krafla_sandbox::Options;

use crate::harness::{Stage, eventually};
use crate::proxy::{Mischief, Proxy};

/// Gangs of `size`, `n` in all.
async fn gangs(stage: &Stage, n: usize, size: usize, cpu: &str) {
    futures::future::join_all(
        (0..n).map(|i| async move { stage.gang(&format!("g{i}"), size, size, cpu, "default").await }),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_is_away_for_twenty_seconds_in_the_middle_of_a_thousand_binds() {
    let Some(mut stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(50, "20", "64Gi").await;
    gangs(&stage, 10, 100, "1").await;
    let krafla = stage.krafla();
    stage
        .eventually("binding has begun", async || match stage.bound("").await? {
            n if n >= 150 => Ok(()),
            n => Err(format!("{n} are bound")),
        })
        .await;
    stage.control_plane.kill_api_server();
    tokio::time::sleep(Duration::from_secs(20)).await;
    stage.control_plane.start_api_server().await.expect("it comes back");
    stage.until_bound("", 1_000).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tenth_bind_is_answered_with_an_error() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(20, "20", "64Gi").await;
    let proxy = Proxy::start(stage.client.clone(), stage.folder.path(), None, |n, _, _| match n % 40 {
        10 => Mischief::Refuse(500, "internal"),
        20 => Mischief::Refuse(409, "conflict"),
        30 => Mischief::Refuse(429, "too many"),
        // The worst: it is done, and nobody is told so.
        0 => Mischief::DoneButAnswered(500),
        _ => Mischief::Pass,
    })
    .await;
    gangs(&stage, 8, 50, "1").await;
    let krafla = stage.krafla_with(proxy.kubeconfig(), &["--leader-elect=false"]);
    stage.until_bound("", 400).await;
    assert!(proxy.binds() > 420, "{} binds are too few to have met errors", proxy.binds());
    assert_eq!(proxy.bound_twice(), Vec::<String>::new());
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_are_cut_every_second() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(10, "20", "64Gi").await;
    let life = Some(Duration::from_secs(1));
    let proxy = Proxy::start(stage.client.clone(), stage.folder.path(), life, |_, _, _| {
        Mischief::Late(Duration::from_millis(100))
    })
    .await;
    let krafla = stage.krafla_with(proxy.kubeconfig(), &["--leader-elect=false"]);
    for i in 0..6 {
        stage.gang(&format!("g{i}"), 20, 20, "1", "default").await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        if i == 2 {
            stage.delete_pod("g0-3").await;
        }
    }
    stage.until_bound("", 119).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_is_restarted() {
    let Some(mut stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(20, "20", "64Gi").await;
    gangs(&stage, 8, 50, "1").await;
    let krafla = stage.krafla();
    stage
        .eventually("binding has begun", async || match stage.bound("").await? {
            n if n >= 50 => Ok(()),
            n => Err(format!("{n} are bound")),
        })
        .await;
    stage.control_plane.restart_etcd().await.expect("it comes back");
    stage.until_bound("", 400).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_killed_in_the_middle_of_a_gang_completes_it_before_anything_else() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    // Room for one of the two gangs.
    stage.nodes(10, "4", "64Gi").await;
    let proxy = Proxy::start(stage.client.clone(), stage.folder.path(), None, |n, _, _| {
        // Slow enough to be killed in the middle: from the eleventh on they take for ever.
        Mischief::Late(if n <= 10 { Duration::ZERO } else { Duration::from_secs(60) })
    })
    .await;
    stage.gang("a", 40, 40, "1", "default").await;
    let mut krafla = stage.krafla_with(proxy.kubeconfig(), &["--leader-elect=false"]);
    stage.until_bound("group=a", 10).await;
    krafla.kill();
    drop(proxy);
    stage.gang("b", 40, 40, "1", "default").await;
    let krafla = stage.krafla();
    stage.until_bound("group=a", 40).await;
    assert_eq!(stage.bound("group=b").await, Ok(0));
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_from_a_killed_leader_and_binds_nothing_twice() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(20, "20", "64Gi").await;
    let proxy = Proxy::start(stage.client.clone(), stage.folder.path(), None, |_, _, _| {
        Mischief::Late(Duration::from_millis(300))
    })
    .await;
    let flags = [
        "--leader-elect-lease-duration=4s",
        "--leader-elect-renew-deadline=3s",
        "--leader-elect-retry-period=500ms",
        "--binds-at-once=20",
    ];
    let mut leader = stage.krafla_with(proxy.kubeconfig(), &flags);
    leader.until_ready().await;
    eventually("the first leads", Duration::from_secs(20), async || {
        if leader.metric("krafla_leading").await == Some(1.0) { Ok(()) } else { Err(leader.log()) }
    })
    .await;
    let standby = stage.krafla_with(proxy.kubeconfig(), &flags);
    standby.until_ready().await;
    assert_eq!(standby.metric("krafla_leading").await, Some(0.0));
    gangs(&stage, 8, 50, "1").await;
    stage
        .eventually("binding has begun", async || match stage.bound("").await? {
            n if n >= 40 => Ok(()),
            n => Err(format!("{n} are bound")),
        })
        .await;
    let killed = Instant::now();
    leader.kill();
    eventually("the standby leads", Duration::from_secs(20), async || {
        if standby.metric("krafla_leading").await == Some(1.0) { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .await;
    // The lease, one try, and what this machine is slow.
    assert!(killed.elapsed() < Duration::from_secs(8), "it took {:?}", killed.elapsed());
    stage.until_bound("", 400).await;
    assert_eq!(proxy.bound_twice(), Vec::<String>::new());
    stage.no_node_is_overfull().await;
    standby.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_that_is_told_to_stop_finishes_what_it_has_decided_and_gives_the_lease_back() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(10, "20", "64Gi").await;
    let proxy = Proxy::start(stage.client.clone(), stage.folder.path(), None, |_, _, _| {
        Mischief::Late(Duration::from_millis(500))
    })
    .await;
    stage.gang("a", 60, 60, "1", "default").await;
    let mut krafla = stage.krafla_with(proxy.kubeconfig(), &["--binds-at-once=10"]);
    stage
        .eventually("binding has begun", async || match stage.bound("").await? {
            0 => Err("none is bound".to_owned()),
            _ => Ok(()),
        })
        .await;
    assert_eq!(krafla.stop(), Some(0), "{}", krafla.log());
    assert_eq!(stage.bound("group=a").await, Ok(60), "the gang was decided, so it is bound whole");
    let lease =
        stage.api("coordination.k8s.io/v1", "Lease", Some("volcano-system")).get("volcano").await.expect("a lease");
    assert_eq!(lease.data["spec"]["holderIdentity"], "");
}
