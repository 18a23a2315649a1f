//! The small parts: names that are near, durations, switches.

use super::super::arguments::{Arguments, Value, duration_ms};
use super::super::names::{nearest, shown};
use super::super::switches::{Point, SWITCHES, Switches};

#[test]
fn only_near_names_are_suggested() {
    let names = ["allocate", "backfill", "preempt", "reclaim"];
    for (typed, want) in [
        ("prempt", Some("preempt")),
        ("preepmt", Some("preempt")),
        ("ALLOCATE", Some("allocate")),
        ("allocator", Some("allocate")),
        ("reclaim2", Some("reclaim")),
        ("enqueue", None),
        ("", None),
        ("p", None),
    ] {
        assert_eq!(nearest(typed, names), want, "{typed}");
    }
    assert_eq!(nearest(&"x".repeat(1_000_000), names), None);
}

#[test]
fn names_in_messages_are_tame() {
    assert_eq!(shown("a\u{1b}[31mb"), "`a\u{fffd}[31mb`");
    assert_eq!(shown(&"x".repeat(100)).chars().count(), 63);
}

#[test]
fn durations_as_go_writes_them() {
    for (text, want) in [
        ("90s", Some(90_000)),
        ("1h30m", Some(5_400_000)),
        ("1.5h", Some(5_400_000)),
        ("1h2m3s4ms", Some(3_723_004)),
        ("250ms", Some(250)),
        (".5s", Some(500)),
        ("1us", Some(1)),
        ("1µs", Some(1)),
        ("0", Some(0)),
        ("0s", Some(0)),
        ("+3m", Some(180_000)),
        ("-3m", None),
        ("3", None),
        ("", None),
        ("s", None),
        ("1.2.3s", None),
        ("3 m", None),
        ("1d", None),
        ("99999999999999999999999999999999999999h", None),
        ("999999999999999999999999999999h", None),
    ] {
        assert_eq!(duration_ms(text), want, "{text}");
    }
}

#[test]
fn everything_is_on_but_the_hierarchy() {
    let default = Switches::default();
    for point in SWITCHES.iter().filter_map(|switch| switch.guards) {
        assert_eq!(default.allows(point), point != Point::Hierarchy, "{point:?}");
        assert!(default.with(point, true).allows(point), "{point:?}");
        assert!(!default.with(point, false).allows(point), "{point:?}");
        assert_eq!(default.with(point, false).with(point, true), default.with(point, true), "{point:?}");
    }
    for point in [Point::JobValid, Point::VictimQueueOrder, Point::UnifiedEvictable] {
        assert!(default.with(point, false).allows(point), "{point:?}");
    }
    let changed = default.with(Point::Overused, false).with(Point::Hierarchy, true);
    assert_eq!(changed.changed().collect::<Vec<_>>(), [("enableHierarchy", true), ("enabledOverused", false)]);
}

#[test]
fn a_getter_falls_back_to_the_default() {
    let arguments: Arguments = [("a", Value::Integer(3)), ("b", Value::Text("5m".to_owned()))].into_iter().collect();
    assert_eq!(arguments.integer("a", 1), 3);
    assert_eq!(arguments.integer("missing", 1), 1);
    assert!(arguments.bool("a", true));
    assert_eq!(arguments.text("b", "x"), "5m");
    assert_eq!(arguments.duration_ms("b", 7), 300_000);
    assert_eq!(arguments.duration_ms("a", 7), 7);
    assert_eq!(arguments.number("a", 1.5), 1.5);
}
