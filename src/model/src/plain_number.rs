//! Ratios in serialized form: plain numbers, for `#[serde(with = "...")]`. The library's own feature for it would bring
//! random numbers into the core.

use ordered_float::OrderedFloat;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes the number.
pub fn serialize<S: Serializer>(number: &OrderedFloat<f64>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(**number)
}

/// Reads the number.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OrderedFloat<f64>, D::Error> {
    f64::deserialize(from).map(OrderedFloat)
}
