//! Times of the host's clock. For display only: order is given by sequence numbers, never by the clock.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01 UTC; RFC 3339 in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A clock can be so wrong that no calendar can express it; that must not stop a capture.
        let nearest = if self.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        // By seconds: `from_millisecond` refuses the milliseconds of the calendar's last second.
        let (second, rest) = (self.0.div_euclid(1_000), self.0.rem_euclid(1_000) as i32);
        let time = jiff::Timestamp::new(second, rest * 1_000_000).unwrap_or(nearest);
        write!(f, "{time:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let time: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(time.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_rfc_3339_and_reads_back() {
        for (ms, text) in [(0, "\"1970-01-01T00:00:00.000Z\""), (1_794_772_991_042, "\"2026-11-15T20:03:11.042Z\"")] {
            assert_eq!(serde_json::to_string(&Timestamp(ms)).unwrap(), text);
            assert_eq!(serde_json::from_str::<Timestamp>(text).unwrap(), Timestamp(ms));
        }
    }

    #[test]
    fn a_time_at_the_ends_of_the_calendar_stays_there() {
        for text in ["\"9999-12-30T22:00:00.999Z\"", "\"9999-12-30T22:00:00.699Z\"", "\"-009999-01-02T01:59:59.000Z\""]
        {
            let time: Timestamp = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&time).unwrap(), text);
        }
        assert_eq!(Timestamp(i64::MAX).to_string(), "9999-12-30T22:00:00.999Z");
        assert_eq!(Timestamp(i64::MIN).to_string(), "-009999-01-02T01:59:59.000Z");
    }
}
