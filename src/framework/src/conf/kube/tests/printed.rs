//! What is printed compiles to the same policy.

use super::{HEAD, catalogue, one, policy};

#[test]
fn what_is_printed_compiles_to_the_same_policy() {
    for source in [
        HEAD.to_owned(),
        one(
            "- schedulerName: a\n  percentageOfNodesToScore: 30\n  plugins:\n    score: {enabled: [{name: Tuned, weight: \
             5}], disabled: [{name: ImageLocality}]}\n  pluginConfig: [{name: Tuned, args: {strength: 2, inner: {pace: \
             Fast}}}]\n- schedulerName: b\n  plugins: {filter: {disabled: [{name: \"*\"}]}}\n",
        ),
        format!(
            "{HEAD}podMaxBackoffSeconds: 60\nextenders:\n- {{urlPrefix: \"http://a\", filterVerb: f, tlsConfig: {{caFile: \
             /ca}}, managedResources: [{{name: a.b/c, ignoredByScheduler: false}}]}}\n"
        ),
    ] {
        let policy = policy(&source);
        let printed = policy.to_yaml(&catalogue());
        assert_eq!(super::policy(&printed), policy, "{printed}");
    }
}

#[test]
fn keys_of_extenders_are_not_shown() {
    let source = format!("{HEAD}extenders: [{{urlPrefix: \"http://a\", tlsConfig: {{keyData: U0VDUkVU}}}}]\n");
    let printed = policy(&source).to_yaml(&catalogue());
    assert!(!printed.contains("U0VDUkVU") && printed.contains("keyData: (not shown)"), "{printed}");
}
