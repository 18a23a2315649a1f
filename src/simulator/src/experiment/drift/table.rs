//! Both days side by side, for a terminal.

use comfy_table::CellAlignment::{Left, Right};

use super::{COOL_DOWN, Day, MINUTE, Report};
use crate::report::tables;

/// The report as tables, at most `width` wide.
pub fn table(report: &Report, width: u16) -> String {
    format!("{}\n{}", hours(report, width), totals(report, width))
}

fn percent(permille: Option<i64>) -> String {
    permille.map_or_else(|| "-".to_owned(), |permille| format!("{}.{} %", permille / 10, permille % 10))
}

/// A row for each hour.
fn hours(report: &Report, width: u16) -> String {
    let columns = [
        ("hour", Right),
        ("load", Left),
        ("moves with plan", Right),
        ("without", Right),
        ("fullest node with plan", Right),
        ("without", Right),
    ];
    let mut table = tables::table(width, &columns);
    for hour in 0..report.planned.moves.len() {
        let load = if hour < report.quiet_from { "changes" } else { "constant" };
        table.add_row(tables::cells([
            (hour + 1).to_string(),
            load.to_owned(),
            report.planned.moves[hour].to_string(),
            report.unplanned.moves[hour].to_string(),
            percent(report.planned.hottest_in(hour)),
            percent(report.unplanned.hottest_in(hour)),
        ]));
    }
    let options = report.options;
    let title = format!("A day on {} nodes: moves in each hour, and the load of the fullest node", options.nodes);
    tables::finish(&title, &table, "")
}

/// A row for each law.
fn totals(report: &Report, width: u16) -> String {
    let mut table = tables::table(width, &[("", Left), ("with the plan", Right), ("without", Right)]);
    let mut row = |name: String, of: &dyn Fn(&Day) -> String| {
        table.add_row(tables::cells([name, of(&report.planned), of(&report.unplanned)]));
    };
    let (quiet, all) = (report.quiet_from, report.planned.moves.len());
    let settled = (quiet + super::SETTLES_WITHIN_HOURS).min(all);
    let spans = [
        (0..quiet, "load changes"),
        (quiet..settled, "load is constant, and what is too full is relieved"),
        (settled..all, "load is constant"),
    ];
    for (hours, what) in spans {
        let name = format!("moves in hours {} to {}: {what}", hours.start + 1, hours.end);
        row(name, &|day| day.moves_in(hours.clone()).to_string());
    }
    let minutes = COOL_DOWN / MINUTE;
    row(format!("a template between the same two nodes again within {minutes} minutes"), &|day| {
        day.ping_pongs.to_string()
    });
    row("pods that came back to the node they left".to_owned(), &|day| day.returned.to_string());
    row("disruption budgets overspent".to_owned(), &|day| day.overspent.to_string());
    for (name, at) in [("before the first round", 0), ("at the end", usize::MAX)] {
        row(format!("load of the fullest node {name}"), &|day| {
            let hottest = &day.hottest_permille;
            percent(hottest.get(at.min(hottest.len().saturating_sub(1))).copied())
        });
    }
    tables::finish("The whole day", &table, "")
}
