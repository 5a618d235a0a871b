//! How much memory large input takes. A single test, because it counts what the whole process allocates.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use piton_agents::claude_code::branch::copy;
use piton_agents::claude_code::said::said;
use piton_agents::claude_code::survey::{prompt_at, survey};
use piton_agents::claude_code::turns::turns;
use piton_agents::{Event, claude_code, generic};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// Safety: delegates to the system's allocator, and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peak memory use of `act`, in bytes.
fn peak<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let out = act();
    (out, PEAK.load(Relaxed) - before)
}

#[test]
fn what_piton_does_not_use_takes_no_memory() {
    let long = "x\\n".repeat(20 << 20 >> 2);
    let claude = format!(
        r#"{{"session_id":"s","cwd":"/w","hook_event_name":"PostToolUse","tool_name":"Write","tool_input":{{"content":"{long}","file_path":"/w/a"}},"tool_response":{{"originalFile":"{long}"}},"more":["{long}"]}}"#
    );
    let (report, used) = peak(|| claude_code::AGENT.events.parse(claude.as_bytes()).unwrap());
    assert!(matches!(report.event, Event::AfterTool(call) if call.summary == "Write a"));
    assert!(used < 64 << 10, "{used} bytes for a report of {}", claude.len());

    let many = "\"a\",".repeat(1 << 20);
    let generic =
        format!(r#"{{"event":"after-tool","session":"s","cwd":"/w","tool":"t","more":"{long}","paths":[{many}"b"]}}"#);
    let (report, used) = peak(|| generic::AGENT.events.parse(generic.as_bytes()).unwrap());
    assert!(matches!(report.event, Event::AfterTool(call) if call.paths.len() == 1000));
    assert!(used < 512 << 10, "{used} bytes for a report of {}", generic.len());

    let deep = "[".repeat(1 << 20);
    let (report, used) = peak(|| claude_code::AGENT.events.parse(format!(r#"{{"a":{deep}"#).as_bytes()).is_err());
    assert!(report && used < 8 << 20, "{used} bytes for what never ends");

    let transcript = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"image","source":{{"data":"{long}"}}}},{{"type":"text","text":"look"}}]}}}}
{{"type":"user","message":{{"content":"and now"}}}}
"#
    );
    let mut texts = Vec::new();
    let (summary, used) = peak(|| turns(transcript.as_bytes(), |turn| texts.push(turn.text)).unwrap());
    assert_eq!((summary.turns, summary.unreadable), (2, 0));
    assert_eq!(texts, ["look", "and now"]);
    assert!(used < 4 << 20, "{used} bytes for a transcript of {}", transcript.len());

    a_large_transcript_takes_no_more_memory_than_its_turns(&long);
}

/// Repeats the same bytes, so that a large transcript never exists as a whole.
struct Again<'a> {
    bytes: &'a [u8],
    at: usize,
    times: usize,
}

impl Read for Again<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() {
            self.at = 0;
            self.times -= 1;
        }
        if self.times == 0 {
            return Ok(0);
        }
        let length = (&self.bytes[self.at..]).read(out)?;
        self.at += length;
        Ok(length)
    }
}

fn a_large_transcript_takes_no_more_memory_than_its_turns(long: &str) {
    // Cut between escapes.
    let long = &long[..6 << 20];
    let prompt = r#"{"sessionId":"old","type":"user","cwd":"/w","message":{"content":"do it"}}"#;
    let result = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","content":"{long}"}}]}},"toolUseResult":{{"all":["{}"]}},"sessionId":"old"}}"#,
        "x\",\"".repeat(1 << 19)
    );
    let call = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","name":"Write","input":{{"content":"{long}","file_path":"a"}}}}]}},"sessionId":"old"}}"#
    );
    let image = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"image","source":{{"data":"{long}"}}}},{{"type":"text","text":"look"}}]}}}}"#
    );
    let part = format!("{prompt}\n{result}\n{call}\n{image}\n");
    let large = || BufReader::new(Again { bytes: part.as_bytes(), at: 0, times: 2 });
    let length = 2 * part.len() as u64;

    let (found, used) = peak(|| survey(large()).unwrap());
    assert_eq!((found.turns.len(), found.length, found.unreadable), (4, length, 0));
    assert!(used < 6 << 20, "{used} bytes to survey {length}");

    let (copied, used) = peak(|| copy(large(), &mut io::sink(), "branch").unwrap());
    assert_eq!((copied.lines, copied.read, copied.bytes), (8, length, length + 6 * 3));
    assert!(used < 64 << 10, "{used} bytes to copy {length}");

    let mut told = Vec::new();
    let (_, used) = peak(|| said(large(), |said| told.push(said.text)).unwrap());
    assert_eq!(told[..3], ["do it", "Write a", "look"]);
    assert!(used < 6 << 20, "{used} bytes for what was said in {length}");

    let huge = format!(r#"{{"type":"user","message":{{"content":"{long}"}}}}"#);
    let (prompt, used) = peak(|| prompt_at(huge.as_bytes()).unwrap());
    assert!(prompt.is_some_and(|prompt| prompt.len() > 500_000));
    assert!(used < 8 << 20, "{used} bytes for a prompt of {}", huge.len());
}
