//! The user's time zone: what `TZ` says, else the machine's.
//!
//! Whatever `TZ` names is read like any file that somebody else chose: only a regular file of a sane size. The functions of
//! the time library read a device to its end and wait for pipes, in the folder of zones too.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::tz::TimeZone;

/// Where systems keep their zones, if `TZDIR` does not say.
const ZONES: [&str; 4] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];

/// The machine's own zone.
const MACHINE: &str = "/etc/localtime";

/// The largest compiled zone that is read, in bytes; real ones have a few thousand.
const LARGEST: u64 = 1 << 20;

/// The zone that times are shown in; unknown where nothing says, or what does cannot be read.
pub fn local() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let variable = |name: &str| std::env::var_os(name);
    ZONE.get_or_init(|| {
        let Some(value) = variable("TZ") else {
            return read("", Path::new(MACHINE)).unwrap_or_else(TimeZone::unknown);
        };
        let zones = variable("TZDIR").filter(|folder| !folder.is_empty());
        let zones = zones.map_or_else(|| ZONES.map(PathBuf::from).to_vec(), |folder| vec![folder.into()]);
        value.to_str().and_then(|value| named(value, &zones)).unwrap_or_else(TimeZone::unknown)
    })
    .clone()
}

/// The zone that a value of `TZ` means: a rule of POSIX, the name of a zone, or the path of one. A colon before it means
/// that it is no rule.
fn named(value: &str, zones: &[PathBuf]) -> Option<TimeZone> {
    let (name, may_be_rule) = value.strip_prefix(':').map_or((value, true), |name| (name, false));
    if name.is_empty() || name == "UTC" {
        return Some(TimeZone::UTC);
    }
    if let Some(zone) = zones.iter().find_map(|folder| read(name, &folder.join(name))) {
        return Some(zone);
    }
    TimeZone::posix(name).ok().filter(|_| may_be_rule)
}

fn read(name: &str, file: &Path) -> Option<TimeZone> {
    let bytes = piton_engine::read_bounded(file, LARGEST).ok()??;
    TimeZone::tzif(name, &bytes).ok()
}
