//! One extender: its address, its certificates, its time.

use std::time::Duration;

use krafla_framework::conf::policy::{ExtenderPolicy, ExtenderTls};
use kube::client::Body;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use kube::{Client, Config};
use tokio::time::timeout;

use crate::exchange::exchange;
use crate::perform::text_of;

/// The longest answer that is read, in bytes: some 10,000 whole nodes.
const LONGEST_ANSWER: usize = 128 << 20;

/// A client of one extender.
#[derive(Clone)]
pub(super) struct Connection {
    client: Client,
    url: String,
    most: Duration,
    longest: usize,
}

impl Connection {
    /// Makes the client; nothing is sent yet. Must be called on the runtime.
    pub(super) async fn open(policy: &ExtenderPolicy) -> Result<Self, String> {
        let kubeconfig = kubeconfig(policy);
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(|error| text_of(&error))?;
        config.default_retry = false;
        let client = Client::try_from(config).map_err(|error| text_of(&error))?;
        let most = Duration::from_millis(policy.http_timeout_ms);
        Ok(Self { client, url: policy.url_prefix.clone(), most, longest: LONGEST_ANSWER })
    }

    /// Sends JSON to a verb, and answers the JSON that comes back.
    pub(super) async fn post(&self, verb: &str, body: Vec<u8>) -> Result<Vec<u8>, String> {
        let failed = |why: String| format!("{verb} at {}: {why}", self.url);
        let request = http::Request::post(format!("/{}", verb.trim_start_matches('/')))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .map_err(|error| failed(error.to_string()))?;
        let silence = || Err(format!("no answer within {} ms (httpTimeout)", self.most.as_millis()));
        let answer = timeout(self.most, exchange(&self.client, request, self.longest)).await;
        answer.unwrap_or_else(|_| silence()).map_err(failed)
    }

    /// With another limit for answers.
    #[cfg(test)]
    pub(super) fn with_longest(self, longest: usize) -> Self {
        Self { longest, ..self }
    }
}

/// The same in the form of a kubeconfig, which knows all of it. As in kube-scheduler, with `enableHTTPS` and no
/// authority to check against, the certificate is not checked.
fn kubeconfig(policy: &ExtenderPolicy) -> Kubeconfig {
    const NAME: &str = "extender";
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let tls = policy.tls.clone().unwrap_or_default();
    let ExtenderTls { insecure, server_name, cert_file, key_file, ca_file, cert_data, key_data, ca_data } = &tls;
    let unchecked = *insecure || (policy.enable_https && ca_file.is_empty() && ca_data.is_empty());
    let cluster = Cluster {
        server: Some(policy.url_prefix.trim_end_matches('/').to_owned()),
        insecure_skip_tls_verify: Some(unchecked),
        certificate_authority: given(ca_file).filter(|_| ca_data.is_empty()),
        certificate_authority_data: given(ca_data),
        tls_server_name: given(server_name),
        ..Cluster::default()
    };
    let user = AuthInfo {
        client_certificate: given(cert_file).filter(|_| cert_data.is_empty()),
        client_certificate_data: given(cert_data),
        client_key: given(key_file).filter(|_| key_data.is_empty()),
        client_key_data: given(key_data).map(Into::into),
        ..AuthInfo::default()
    };
    let context = Context { cluster: NAME.to_owned(), user: Some(NAME.to_owned()), ..Context::default() };
    let (cluster, user, context) = (Some(cluster), Some(user), Some(context));
    Kubeconfig {
        clusters: vec![NamedCluster { name: NAME.to_owned(), cluster, ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: NAME.to_owned(), auth_info: user, ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: NAME.to_owned(), context, ..NamedContext::default() }],
        current_context: Some(NAME.to_owned()),
        ..Kubeconfig::default()
    }
}
