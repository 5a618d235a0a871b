//! The example of an embedded agent does what it says.

#![allow(dead_code, reason = "the example's `main` is not called here")]

#[path = "../../examples/embedded_agent.rs"]
mod example;

#[test]
fn the_embedded_agents_story_ends_with_the_files_back() {
    let scratch = tempfile::tempdir().unwrap();
    let story = example::run(scratch.path()).unwrap();
    assert_eq!(
        story,
        "t1  add a greeting: 1 created, 0 modified, 0 deleted\n  t1.1  write_file src/greeting.txt\n\
         t2  clean up: 1 created, 0 modified, 2 deleted\n  t2.1  shell rm -rf src && echo done > report\n\
         rewind to t2 would bring back 2 files\nrewound, verified: true\n12 checkpoints were made on the way\n"
    );
    assert!(scratch.path().join("project/src/greeting.txt").exists());
    assert!(!scratch.path().join("project/report").exists());
}
