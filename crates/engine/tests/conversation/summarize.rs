//! A summary in the place of turns: the branch, its numbers, what was summarized, and agents without a transcript.

use piton_engine::model::event::{Event, Report};
use piton_engine::model::summary::SummarySide;
use piton_engine::model::{Scope, SessionId};
use piton_engine::view::{Conversation, ConversationOutcome, SaidSource};
use piton_engine::{
    ConversationOptions, NoConversation, OperationError, RedoOptions, RewindOptions, SummarizeError, Workspace,
};
use piton_testkit::{Claude, World};

/// Four turns: each adds a line to `a.txt`.
fn four_turns(world: &World) -> Claude<'_> {
    let claude = Claude::new(world, 1);
    for (turn, words) in ["first", "second", "third", "fourth"].into_iter().enumerate() {
        claude.edits(words, &["a.txt"], |world| {
            world.write("a.txt", "line\n".repeat(turn + 1));
        });
    }
    claude
}

fn summarize(world: &World, target: &str, side: SummarySide, text: &str) -> ConversationOutcome {
    let mut workspace = world.open();
    let turns = workspace.to_summarize(target, side, None).unwrap();
    let outcome = workspace.summarize(&turns, text).unwrap();
    outcome.conversation.expect("a branch was made")
}

/// What was said, each thing on a line: turn, speaker, text.
fn told(conversation: &Conversation) -> Vec<String> {
    conversation.said.iter().map(|said| format!("{} {} {}", said.turn, said.speaker, said.text)).collect()
}

fn read(workspace: &Workspace, session: &str) -> Conversation {
    let options = ConversationOptions { session: Some(session.to_owned()), ..ConversationOptions::default() };
    workspace.conversation(&options).unwrap()
}

#[test]
fn the_turns_before_one_become_a_summary_and_numbers_go_on() {
    let world = World::new();
    let claude = four_turns(&world);
    let (before, original) = (world.snapshot(), std::fs::read(claude.path()).unwrap());
    let made = summarize(&world, "t3", SummarySide::UpTo, "two things were done");
    world.assert_is(&before);
    assert_eq!(std::fs::read(claude.path()).unwrap(), original);
    assert_eq!(made.prompt, None);
    let branch = Claude::resumed(&world, made.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["third", "fourth"]);
    let text = std::fs::read_to_string(branch.path()).unwrap();
    assert!(text.contains("two things were done") && !text.contains("second"), "{text}");
    // Nobody went anywhere, and there is nothing to take back.
    let workspace = world.open();
    let current = workspace.sessions().unwrap().sessions.into_iter().find(|session| session.current).unwrap();
    assert_eq!(current.id, claude.session());
    drop(workspace);
    let error = world.open().redo_now(&RedoOptions::default()).unwrap_err();
    assert!(matches!(error, OperationError::NothingToRedo), "{error}");
    // The branch goes on with the parent's numbers.
    branch.edits("fifth", &["b.txt"], |world| {
        world.write("b.txt", "b\n");
    });
    let workspace = world.open();
    let of_branch = workspace.sessions().unwrap().sessions.into_iter().find(|one| one.id == branch.session()).unwrap();
    assert_eq!(of_branch.turns, 5);
    assert_eq!(workspace.resolve("t5").unwrap().checkpoint.place.unwrap().session, branch.session());
    let conversation = read(&workspace, &branch.id);
    assert_eq!((conversation.missing, conversation.last, conversation.source), (2, 5, SaidSource::Transcript));
    let all = told(&conversation);
    assert!(all[0].starts_with("2 summary ") && all[0].ends_with("two things were done"), "{all:?}");
    assert_eq!(all[1..5], ["3 user third", "3 tool Edit a.txt", "3 assistant done", "4 user fourth"]);
    assert_eq!(all[7..], ["5 user fifth", "5 tool Edit b.txt", "5 assistant done"]);
    drop(workspace);
    // Going back in it works as ever, but not to where nothing is left.
    let options = |scope| RewindOptions { scope: Some(scope), ..RewindOptions::default() };
    let rewound = world.open().rewind_now("t4", &options(Scope::Both)).unwrap().conversation.unwrap();
    let twig = Claude::resumed(&world, rewound.agent_id.as_deref().unwrap());
    assert_eq!(twig.prompts(), ["third"]);
    twig.talks("fourth, otherwise");
    let conversation = read(&world.open(), &twig.id);
    assert_eq!((conversation.missing, conversation.last), (2, 4));
    let error = world.open().rewind_now("t2", &options(Scope::Both)).unwrap_err();
    assert!(matches!(error, OperationError::Conversation(NoConversation::NotThere { turn: 2 })), "{error}");
    // A summary of a summary stands for all of it.
    let workspace = world.open();
    let turns = workspace.to_summarize("t4", SummarySide::UpTo, None).unwrap();
    assert_eq!((turns.first, turns.last), (1, 3));
    assert!(turns.text.contains("two things were done"), "{}", turns.text);
    world.assert_sound();
}

#[test]
fn the_turns_from_one_on_become_a_summary() {
    let world = World::new();
    let claude = four_turns(&world);
    let made = summarize(&world, "t3", SummarySide::From, "the rest");
    let branch = Claude::resumed(&world, made.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["first", "second"]);
    assert_eq!(made.resume.as_deref().unwrap(), ["claude", "--resume", branch.id.as_str()]);
    let all = told(&read(&world.open(), &branch.id));
    assert_eq!(all.len(), 7);
    assert!(all[6].starts_with("2 summary ") && all[6].ends_with("the rest"), "{all:?}");
    branch.talks("third, otherwise");
    let workspace = world.open();
    assert_eq!(workspace.resolve("t3").unwrap().checkpoint.place.unwrap().session, branch.session());
    assert_eq!(read(&workspace, &branch.id).last, 3);
    assert_eq!(told(&read(&workspace, &claude.id)).len(), 12, "the original has all of it");
}

#[test]
fn the_whole_conversation_can_be_a_summary_from_either_side() {
    let world = World::new();
    four_turns(&world);
    for (target, side) in [("t1", SummarySide::From), ("t4.end", SummarySide::UpTo)] {
        let made = summarize(&world, target, side, "all of it");
        let branch = Claude::resumed(&world, made.agent_id.as_deref().unwrap());
        assert!(branch.prompts().is_empty());
        let all = told(&read(&world.open(), &branch.id));
        assert!(all.len() == 1 && all[0].ends_with("all of it"), "{all:?}");
    }
}

#[test]
fn what_is_given_to_a_summarizer_is_what_was_said_in_the_replaced_turns() {
    let world = World::new();
    let claude = four_turns(&world);
    claude.prompt("\u{1b}[2Jfifth");
    claude.answers("it is \u{1b}]0;title\u{7}red");
    let workspace = world.open();
    let turns = workspace.to_summarize("t4", SummarySide::From, None).unwrap();
    assert_eq!((turns.first, turns.last, turns.left_out), (4, 5, 0));
    let expected = "[turn 4, user]\nfourth\n\n[turn 4, tool] Edit a.txt\n\n[turn 4, assistant]\ndone\n\n\
                    [turn 5, user]\nfifth\n\n[turn 5, assistant]\nit is red\n\n";
    assert_eq!(turns.text, expected);
    let turns = workspace.to_summarize("t2", SummarySide::UpTo, None).unwrap();
    assert_eq!(turns.text, "[turn 1, user]\nfirst\n\n[turn 1, tool] Edit a.txt\n\n[turn 1, assistant]\ndone\n\n");
    assert!(
        turns.digest.contains("Turn 1\n- asked: first\n- files: created a.txt\n- answered: done"),
        "{}",
        turns.digest
    );
}

#[test]
fn of_very_much_the_beginning_and_the_end_are_given_and_the_rest_is_counted() {
    let world = World::new();
    let claude = Claude::new(&world, 1);
    for turn in 0..80 {
        claude.prompt(&format!("prompt {turn}"));
        claude.answers(&"word ".repeat(2_000));
    }
    let turns = world.open().to_summarize("t1", SummarySide::From, None).unwrap();
    assert!(turns.text.len() < 420_000 && turns.left_out > 300_000, "{} {}", turns.text.len(), turns.left_out);
    assert!(turns.text.contains("prompt 0\n") && turns.text.contains("prompt 79\n"));
    assert!(turns.text.contains(&format!("{} bytes of the conversation are left out here", turns.left_out)));
    assert!(turns.digest.len() < 50_000);
}

#[test]
fn what_was_said_while_somebody_summarized_is_not_lost() {
    let world = World::new();
    let claude = four_turns(&world);
    let mut workspace = world.open();
    let rest = workspace.to_summarize("t3", SummarySide::From, None).unwrap();
    let start = workspace.to_summarize("t3", SummarySide::UpTo, Some("short")).unwrap();
    claude.talks("fifth");
    let files = || std::fs::read_dir(claude.folder()).unwrap().count();
    let error = workspace.summarize(&rest, "without the fifth").unwrap_err();
    assert!(matches!(error, SummarizeError::Operation(OperationError::WentOn)), "{error}");
    assert_eq!(files(), 1, "nothing was made");
    // What is not summarized may well go on.
    let made = workspace.summarize(&start, "the beginning").unwrap().conversation.unwrap();
    let branch = Claude::resumed(&world, made.agent_id.as_deref().unwrap());
    assert_eq!(branch.prompts(), ["third", "fourth", "fifth"]);
    let named = workspace.sessions().unwrap().sessions.into_iter().find(|one| one.id == branch.session()).unwrap();
    assert_eq!(named.name.as_deref(), Some("short"));
}

#[test]
fn nothing_to_summarize_and_no_summary_are_refused() {
    let world = World::new();
    let claude = four_turns(&world);
    let mut workspace = world.open();
    for (target, side) in [("t1", SummarySide::UpTo), ("t4.end", SummarySide::From)] {
        let error = workspace.to_summarize(target, side, None).unwrap_err();
        assert!(matches!(error, SummarizeError::Nothing { .. }), "{target}: {error}");
    }
    for (target, words) in [("t6", "its transcript does not have turn 6"), ("t2.1", "goes back by whole turns")] {
        let error = workspace.to_summarize(target, SummarySide::From, None).unwrap_err().to_string();
        assert!(error.contains(words), "{target}: {error}");
    }
    let turns = workspace.to_summarize("t2", SummarySide::From, None).unwrap();
    for bad in ["", " \n\u{1b}[0m", &"x".repeat(200_000)] {
        let error = workspace.summarize(&turns, bad).unwrap_err();
        assert!(matches!(error, SummarizeError::Bad(_)), "{error}");
    }
    std::fs::remove_file(claude.path()).unwrap();
    let error = workspace.to_summarize("t2", SummarySide::From, None).unwrap_err();
    assert!(matches!(error, SummarizeError::Conversation(NoConversation::Gone)), "{error}");
    // It can be read all the same: from what was reported.
    let conversation = read(&workspace, &claude.id);
    assert_eq!(
        (conversation.source, conversation.no_transcript.as_deref()),
        (SaidSource::Reports, Some("its transcript is gone"))
    );
    assert_eq!(told(&conversation)[..4], ["1 user first", "1 tool Edit a.txt", "1 assistant done", "2 user second"]);
}

/// An agent without a transcript, under a name of its own.
struct Plain<'w>(&'w World);

impl Plain<'_> {
    fn say(&self, session: &str, event: Event) {
        let report = Report {
            agent: "my-agent".into(),
            session: session.into(),
            cwd: Some(self.0.ws()),
            transcript: None,
            prompt_id: None,
            subagent: None,
            event,
        };
        self.0.engine.observe(&report, &Default::default()).unwrap();
    }

    fn turn(&self, session: &str, prompt: &str) {
        self.say(session, Event::Prompt { text: prompt.into() });
        self.say(session, Event::Message { role: "assistant".into(), text: format!("{prompt}, yes") });
        let message = Some(format!("{prompt}, yes"));
        self.say(session, Event::TurnEnded { failed: false, message, background: false });
    }
}

#[test]
fn an_agent_without_a_transcript_gets_summary_and_turns_back() {
    let world = World::new();
    let agent = Plain(&world);
    ["one", "two", "three", "four"].into_iter().for_each(|prompt| agent.turn("g", prompt));
    let texts = |session: &str| told(&read(&world.open(), session));
    let both =
        |number: u32, prompt: &str| [format!("{number} user {prompt}"), format!("{number} assistant {prompt}, yes")];
    assert_eq!(texts("g"), [both(1, "one"), both(2, "two"), both(3, "three"), both(4, "four")].concat());
    // From the middle on.
    let rest = summarize(&world, "g:t3", SummarySide::From, "three and four").agent_id.unwrap();
    let head = [both(1, "one"), both(2, "two")].concat();
    assert_eq!(texts(&rest), [&head[..], &["2 summary three and four".into()]].concat());
    agent.turn(&rest, "three, otherwise");
    assert_eq!(texts(&rest)[5..], both(3, "three, otherwise"));
    // Up to the middle; and a branch of that branch.
    let short = summarize(&world, "g:t3", SummarySide::UpTo, "one and two").agent_id.unwrap();
    let tail = [both(3, "three"), both(4, "four")].concat();
    assert_eq!(texts(&short), [&["2 summary one and two".into()], &tail[..]].concat());
    agent.turn(&short, "five");
    assert_eq!(texts(&short)[5..], both(5, "five"));
    let options = RewindOptions { scope: Some(Scope::Conversation), ..RewindOptions::default() };
    let twig = world.open().rewind_now(&format!("{short}:t4"), &options).unwrap().conversation.unwrap();
    let twig = twig.agent_id.unwrap();
    assert_eq!(texts(&twig), [&["2 summary one and two".into()], &both(3, "three")[..]].concat());
    let error = world.open().rewind_now(&format!("{twig}:t2"), &options).unwrap_err();
    assert!(matches!(error, OperationError::Conversation(NoConversation::NotThere { turn: 2 })), "{error}");
    // A summary of what begins with a summary.
    let shorter = summarize(&world, &format!("{short}:t5"), SummarySide::UpTo, "all but five").agent_id.unwrap();
    assert_eq!(texts(&shorter), [&["4 summary all but five".into()], &both(5, "five")[..]].concat());
    let id = SessionId::of("my-agent", &shorter);
    assert!(world.open().sessions().unwrap().sessions.iter().any(|session| session.id == id));
    world.assert_sound();
}
