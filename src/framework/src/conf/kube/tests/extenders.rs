//! `extenders`, and what they change in profiles.

use super::{Expected, HEAD, expect, policy};
use crate::conf::arguments::Value;
use crate::conf::policy::{ExtenderPolicy, ExtenderTls, ManagedResource};

fn with(extenders: &str) -> String {
    format!("{HEAD}extenders:\n{extenders}")
}

#[test]
fn every_field_is_read() {
    let source = with(
        "- urlPrefix: http://a\n  filterVerb: f\n  ignorable: true\n- urlPrefix: https://b\n  filterVerb: filter\n  \
         preemptVerb: p\n  prioritizeVerb: s\n  bindVerb: b\n  weight: 3\n  enableHTTPS: true\n  httpTimeout: 1500ms\n  \
         nodeCacheCapable: true\n  tlsConfig: {caFile: /ca, serverName: b, certData: YWJj}\n  managedResources:\n  - \
         name: a.com/gpu\n    ignoredByScheduler: true\n  - name: b.com/gpu\n",
    );
    let policy = policy(&source);
    let text = |text: &str| Some(text.to_owned());
    let tls = ExtenderTls {
        ca_file: "/ca".into(),
        server_name: "b".into(),
        cert_data: "YWJj".into(),
        ..ExtenderTls::default()
    };
    let managed = |name: &str, ignored_by_scheduler| ManagedResource { name: name.into(), ignored_by_scheduler };
    let want = ExtenderPolicy {
        url_prefix: "https://b".into(),
        filter_verb: text("filter"),
        preempt_verb: text("p"),
        prioritize_verb: text("s"),
        weight: 3,
        bind_verb: text("b"),
        enable_https: true,
        tls: Some(tls),
        http_timeout_ms: 1_500,
        node_cache_capable: true,
        managed_resources: vec![managed("a.com/gpu", true), managed("b.com/gpu", false)],
        ignorable: false,
    };
    assert_eq!(policy.extenders[0], want, "an ignorable one goes behind the others");
    let ignorable = &policy.extenders[1];
    assert_eq!((ignorable.ignorable, ignorable.http_timeout_ms, ignorable.weight), (true, 5_000, 1));
    let ignored = Value::List(vec![Value::Text("a.com/gpu".into())]);
    let fit = Value::Map([("ignoredResources".to_owned(), ignored)].into());
    assert_eq!(policy.profiles[0].arguments.get("NodeResourcesFit"), Some(&fit));
}

#[test]
fn mistakes() {
    let cases: &[(&str, &str, &[Expected<'_>])] = &[
        ("no address", "- filterVerb: f\n", &[("error 4:3", "an extender needs a `urlPrefix`", "http://")]),
        (
            "a score without a weight",
            "- urlPrefix: http://a\n  prioritizeVerb: p\n",
            &[("error 4:3", "needs a positive `weight`", "write `weight: 1`")],
        ),
        (
            "a score with a weight of 0",
            "- urlPrefix: http://a\n  prioritizeVerb: p\n  weight: 0\n",
            &[("error 6:11", "needs a positive `weight`", "write `weight: 1`")],
        ),
        (
            "two binders",
            "- {urlPrefix: http://a, bindVerb: b}\n- {urlPrefix: http://b, bindVerb: b}\n",
            &[("error 5:25", "only one extender may bind", "line 4")],
        ),
        (
            "a resource of Kubernetes",
            "- {urlPrefix: http://a, filterVerb: f, managedResources: [{name: cpu}]}\n",
            &[("error 4:66", "`cpu` is not an extended resource", "example.com/gpu")],
        ),
        (
            "a resource of two extenders",
            "- {urlPrefix: http://a, managedResources: [{name: a.b/c}]}\n- {urlPrefix: http://b, managedResources: \
             [{name: a.b/c}]}\n",
            &[("error 5:51", "the managed resource `a.b/c` is there twice", "line 4")],
        ),
        (
            "insecure, with an authority",
            "- {urlPrefix: http://a, tlsConfig: {insecure: true, caFile: /ca}}\n",
            &[("error 4:37", "would check nothing", "")],
        ),
        (
            "data that is not base64",
            "- {urlPrefix: http://a, tlsConfig: {caData: \"a!\"}}\n",
            &[("error 4:45", "`caData` has to be base64", "base64 --wrap=0")],
        ),
        (
            "an unknown field",
            "- {urlPrefix: http://a, filterverb: f}\n",
            &[("error 4:25", "an extender has no field `filterverb`", "did you mean `filterVerb`?")],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, &with(source), want);
    }
}
