//! The way back that is printed after an operation is one that works, typed literally; and an operation that has begun
//! comes to its end, so that there is one.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests make and read files of their own")]
#![allow(clippy::unwrap_used, reason = "a test may stop where it likes")]

use piton_testkit::Scene;

const PITON: &str = env!("CARGO_BIN_EXE_piton");

mod in_the_way {
    use super::*;

    #[test]
    fn a_file_where_a_folder_must_be_is_named_with_a_way_that_works() {
        let scene = Scene::new(PITON);
        scene.world.write("src/in/b", "b\n");
        scene.ok(&["checkpoint", "one"]);
        scene.world.remove("src").write("src", "a file\n");
        let preview = scene.ok(&["rewind", "one", "--path", "src/in/b", "--preview"]);
        assert!(preview.contains("src: stands where a folder of that moment must be"), "{preview}");
        assert!(!preview.contains("--conflict") && preview.contains("--partial"), "{preview}");
        let refused = scene.fails(&["rewind", "one", "--path", "src/in/b", "--yes"]);
        assert!(!refused.contains("--conflict") && !refused.contains("not captured"), "{refused}");
        assert!(refused.contains("`--path src` asks for the whole of it"), "{refused}");
        assert_eq!(scene.read("src"), "a file\n");
        scene.told(&["rewind", "one", "--path", "src", "--yes"]);
        assert_eq!(scene.read("src/in/b"), "b\n");
        scene.told(&["redo", "--yes"]);
        assert_eq!(scene.read("src"), "a file\n");
    }
}
