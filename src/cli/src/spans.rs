//! How long actions and plugins take, measured from their spans: the core itself has no clock.

use std::sync::OnceLock;
use std::time::Instant;

use krafla_cluster::Metrics;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{Filtered, dynamic_filter_fn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Where measured times go. Until it is set nothing is measured, and spans cost nothing.
static METRICS: OnceLock<Metrics> = OnceLock::new();

/// From now on times go to these metrics.
pub(crate) fn measure(metrics: &Metrics) {
    let _ = METRICS.set(metrics.clone());
    tracing::callsite::rebuild_interest_cache();
}

/// Measures the spans of actions and of plugins' hooks.
pub(crate) struct SpanTimes;

impl SpanTimes {
    /// The layer, which sees nothing else.
    pub(crate) fn layer<S>() -> Filtered<Self, impl tracing_subscriber::layer::Filter<S>, S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        Self.with_filter(dynamic_filter_fn(|metadata, _| is_measured(metadata)))
    }
}

fn is_measured(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && METRICS.get().is_some() && ["action", "plugin"].contains(&metadata.name())
}

#[derive(Default)]
struct Labels {
    name: String,
    hook: String,
}

impl Visit for Labels {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "name" => value.clone_into(&mut self.name),
            "hook" => value.clone_into(&mut self.hook),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S> Layer<S> for SpanTimes
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut labels = Labels::default();
        attributes.record(&mut labels);
        span.extensions_mut().insert((labels, Instant::now()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let (Some(span), Some(metrics)) = (context.span(&id), METRICS.get()) else { return };
        let extensions = span.extensions();
        let Some((labels, began)) = extensions.get::<(Labels, Instant)>() else { return };
        match span.name() {
            "action" => metrics.action(&labels.name, began.elapsed()),
            _ => metrics.plugin(&labels.name, &labels.hook, began.elapsed()),
        }
    }
}
