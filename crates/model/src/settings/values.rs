//! The forms of values in a settings file: sizes, times, tools, addresses.

use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

/// A number of bytes, or `512KiB`, `2 GB`. Units are powers of 1024, as for `piton init --budget`.
pub(super) fn size(value: &DeValue<'_>) -> Option<u64> {
    let bytes = match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok()?,
        DeValue::String(text) => {
            let (number, unit) = number_and_unit(text)?;
            let shift = match unit.to_ascii_uppercase().as_str() {
                "" | "B" => 0,
                "K" | "KB" | "KIB" => 10,
                "M" | "MB" | "MIB" => 20,
                "G" | "GB" | "GIB" => 30,
                "T" | "TB" | "TIB" => 40,
                _ => return None,
            };
            number.checked_mul(1 << shift)?
        }
        _ => return None,
    };
    Some(bytes).filter(|bytes| *bytes < 1 << 60)
}

/// A number, or its text in a variable.
pub(super) fn count(value: &DeValue<'_>) -> Option<u64> {
    let number = match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok()?,
        DeValue::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    Some(number).filter(|number| (1..=100_000).contains(number))
}

/// `10s`, `500ms`, `2m`.
pub(super) fn time(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let unit = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return None,
    };
    number.checked_mul(unit).map(Duration::from_millis)
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

pub(super) fn tools<'a, 'i>(found: &'a Spanned<DeValue<'i>>) -> Result<Vec<String>, &'a Spanned<DeValue<'i>>> {
    let tool = |entry: &'a Spanned<DeValue<'i>>| {
        let name = entry.get_ref().as_str().filter(|name| {
            let begin = name.strip_suffix('*').unwrap_or(name);
            !name.trim().is_empty() && !begin.contains('*')
        });
        name.map(str::to_owned).ok_or(entry)
    };
    found.get_ref().as_array().ok_or(found)?.iter().map(tool).collect()
}

/// A web address, or the empty text.
pub(super) fn url(text: &str) -> Option<String> {
    let text = text.trim();
    let is_address =
        ["http://", "https://"].iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|h| !h.is_empty()));
    let is_one_word = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    (text.is_empty() || (is_address && is_one_word)).then(|| text.to_owned())
}

pub(super) fn variable_name(text: &str) -> Option<String> {
    let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then(|| text.to_owned())
}
