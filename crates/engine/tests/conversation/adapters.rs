//! Nothing is one agent's by accident: what the engine does with conversations works for an agent whose transcripts have
//! other names, another place and another form than those of any that piton knows.

use piton_engine::model::Scope;
use piton_engine::model::event::{Event, ToolCall};
use piton_engine::model::summary::SummarySide;
use piton_engine::view::Interrupted;
use piton_engine::{ConversationOptions, ForkOptions, NoConversation, OperationError, RewindOptions};
use piton_testkit::{Tiny, World};

fn three_turns_of_tiny<'w>(world: &'w World) -> Tiny<'w> {
    let tiny = Tiny::new(world, "tiny-1");
    for (text, content) in [("first", "1\n"), ("second", "2\n"), ("third", "3\n")] {
        tiny.turn(text, "a.txt", content);
    }
    tiny
}

fn said(world: &World, session: &str) -> Vec<String> {
    let options = ConversationOptions { session: Some(session.to_owned()), ..ConversationOptions::default() };
    let conversation = world.open().conversation(&options).unwrap();
    conversation.said.iter().map(|one| format!("{} {}: {}", one.turn, one.speaker, one.text)).collect()
}

#[test]
fn files_and_conversation_go_back_as_one() {
    let world = World::new();
    let tiny = three_turns_of_tiny(&world);
    let original = tiny.text();
    let both = RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() };
    let outcome = world.open().rewind_now("t3", &both).unwrap();
    let went = outcome.conversation.unwrap();
    assert_eq!(std::fs::read_to_string(world.path("a.txt")).unwrap(), "2\n");
    assert_eq!((went.prompt.as_deref(), tiny.text()), (Some("third"), original));
    let branch = Tiny::new(&world, went.agent_id.as_deref().unwrap());
    assert_eq!(went.resume.unwrap(), ["tiny", "on", &branch.id]);
    assert_eq!(went.cwd.as_deref(), world.ws().to_str());
    let header = format!("# {} {}", branch.id, world.ws().display());
    let lines = ["? tiny-1-1 first", "! wrote a.txt", "? tiny-1-2 second", "! wrote a.txt"];
    assert_eq!(branch.text(), format!("{header}\n{}\n", lines.join("\n")));
    // What it says is numbered on from there.
    branch.turn("otherwise", "a.txt", "4\n");
    assert_eq!(
        said(&world, &branch.id),
        ["1 user: first", "1 assistant: wrote a.txt", "2 user: second", "2 assistant: wrote a.txt"]
            .into_iter()
            .chain(["3 user: otherwise", "3 assistant: wrote a.txt"])
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_summary_and_a_fork_are_written_in_the_agents_own_form() {
    let world = World::new();
    three_turns_of_tiny(&world);
    let turns = world.open().to_summarize("t3", SummarySide::UpTo, None).unwrap();
    let made = world.open().summarize(&turns, "it began").unwrap().conversation.unwrap();
    let branch = Tiny::new(&world, made.agent_id.as_deref().unwrap());
    let lines: Vec<String> = branch.text().lines().skip(1).map(str::to_owned).collect();
    assert_eq!(lines, ["= it began", "? tiny-1-3 third", "! wrote a.txt"]);
    let turns = world.open().to_summarize("tiny-1:t2", SummarySide::From, None).unwrap();
    let made = world.open().summarize(&turns, "it went on").unwrap().conversation.unwrap();
    let branch = Tiny::new(&world, made.agent_id.as_deref().unwrap());
    let lines: Vec<String> = branch.text().lines().skip(1).map(str::to_owned).collect();
    assert_eq!(lines, ["? tiny-1-1 first", "! wrote a.txt", "= it went on"]);
    let forked = world.open().fork("tiny-1:t2", &ForkOptions::default()).unwrap();
    let branch = Tiny::new(&world, forked.outcome.conversation.unwrap().agent_id.as_deref().unwrap());
    assert_eq!(branch.text().lines().count(), 3);
}

/// A folder for each project is how Claude Code does it.
#[test]
fn only_a_file_in_its_own_place_is_a_transcript() {
    let world = World::new();
    let mut tiny = Tiny::new(&world, "tiny-1");
    tiny.folder.push("project");
    tiny.turn("first", "a.txt", "1\n");
    tiny.turn("second", "a.txt", "2\n");
    let both = RewindOptions { scope: Some(Scope::Both), ..RewindOptions::default() };
    let refused = world.open().rewind_now("t2", &both).unwrap_err();
    assert!(matches!(refused, OperationError::Conversation(NoConversation::Elsewhere)), "{refused}");
}

#[test]
fn that_the_user_stopped_it_is_in_its_transcript() {
    let world = World::new();
    let tiny = three_turns_of_tiny(&world);
    tiny.tell("p4", Event::Prompt { text: "go".into() });
    tiny.write("? p4 go");
    tiny.tell("p4", Event::BeforeTool(ToolCall { id: Some("c".into()), tool: "put".into(), ..ToolCall::default() }));
    let code = RewindOptions { scope: Some(Scope::Code), ..RewindOptions::default() };
    assert!(matches!(world.open().rewind_now("t2", &code), Err(OperationError::Running(_))));
    tiny.write("~");
    let outcome = world.open().rewind_now("t2", &code).unwrap();
    assert_eq!(outcome.interrupted[0].interrupted, Some(Interrupted::Transcript));
}

#[test]
fn a_session_that_began_before_piton_has_the_transcripts_numbers() {
    let world = World::new();
    let tiny = Tiny::new(&world, "tiny-7");
    let call = |id: &str| ToolCall { id: Some(id.into()), tool: "put".into(), ..ToolCall::default() };
    for line in ["? p1 a", "? p2 b", "? p3 c"] {
        tiny.write(line);
    }
    // Piton comes in the middle of turn 3.
    assert_eq!(tiny.tell("p3", Event::BeforeTool(call("c"))).turn, 3);
    assert_eq!(tiny.tell("p3", Event::AfterTool(call("c"))).turn, 3);
    assert_eq!(tiny.tell("p4", Event::Prompt { text: "four".into() }).turn, 4);
    assert_eq!(tiny.tell("p4", Event::Prompt { text: "four, and this".into() }).turn, 4);
    // A tool of something that the transcript has no turn for belongs to the turn before.
    tiny.write("? p4 d");
    assert_eq!(tiny.tell("task", Event::BeforeTool(call("d"))).turn, 4);
    tiny.write("? p5 e");
    assert_eq!(tiny.tell("p6", Event::Prompt { text: "six".into() }).turn, 6);
    // A folder is no transcript.
    std::fs::remove_file(tiny.path()).unwrap();
    std::fs::create_dir(tiny.path()).unwrap();
    assert_eq!(tiny.tell("p7", Event::Prompt { text: "seven".into() }).turn, 7);
}
