use super::*;

const ROOT: &[u8] = b"/home/dev/work";

#[track_caller]
fn verdict_in(folder: &str, command: &str, path: &str) -> Verdict {
    let folder = [ROOT, b"/", folder.as_bytes()].concat();
    CommandClass::of(command).verdict(&WorkspacePath::new(path).unwrap(), &CommandPlace { root: ROOT, folder: &folder })
}

#[track_caller]
fn check(expected: Verdict, cases: &[(&str, &str)]) {
    for (command, path) in cases {
        assert_eq!(verdict_in("", command, path), expected, "`{command}` and {path}");
    }
}

#[test]
fn a_command_writes_what_it_names_its_folder_or_a_pattern_that_means_it() {
    check(
        Verdict::Writer,
        &[
            ("sed -i s/a/b/ src/a.rs", "src/a.rs"),
            ("sed -i 's/a/b/' src/*.rs", "src/a.rs"),
            ("sed -i.bak -e s/a/b/ -e s/c/d/ a.txt b.txt", "b.txt"),
            ("sed -i '' 's/a/b/' a.txt", "a.txt"),
            ("sed -i 's/a/b/' src/{a,b}.rs", "src/b.rs"),
            ("sed -i s/a/b/ src/**/x.rs", "src/deep/er/x.rs"),
            ("perl -pi -e 's/a/b/' a.txt", "a.txt"),
            ("perl -i -pe 's/a/b/' a.txt", "a.txt"),
            ("awk -i inplace '{print}' a.txt", "a.txt"),
            ("echo hello > a.txt", "a.txt"),
            ("echo hello >> 'with space.txt'", "with space.txt"),
            ("echo hello >| a.txt", "a.txt"),
            ("npm test > log.txt 2>&1", "log.txt"),
            ("npm test &> log.txt", "log.txt"),
            ("cat <<'EOF' > a.txt\nrm b.txt > c.txt\nEOF", "a.txt"),
            ("cat > a.txt <<EOF\nx\nEOF", "a.txt"),
            ("echo x | tee -a a.txt b.txt", "b.txt"),
            ("touch a.txt", "a.txt"),
            ("rm -rf src", "src/deep/a.rs"),
            ("rm -rf ./src/", "src/a.rs"),
            ("rm /home/dev/work/a.txt", "a.txt"),
            ("mv a.txt b.txt", "a.txt"),
            ("mv a.txt b.txt", "b.txt"),
            ("mv a.txt sub", "sub/a.txt"),
            ("cp a.txt b.txt", "b.txt"),
            ("cp src/*.rs out/", "out/a.rs"),
            ("cp -r src/ out", "out/deep/x"),
            ("cp -t out a.txt b.txt", "out/b.txt"),
            ("ln -s ../a.txt", "a.txt"),
            ("dd if=/dev/zero of=a.bin count=1", "a.bin"),
            ("tar -xzf x.tgz -C vendor", "vendor/x/y"),
            ("unzip x.zip -d out", "out/a"),
            ("curl -sSL https://example.org/x -o x.json", "x.json"),
            ("wget https://example.org/data/x.csv", "x.csv"),
            ("sort -o a.txt a.txt", "a.txt"),
            ("cd src && sed -i s/a/b/ a.rs", "src/a.rs"),
            ("cd /home/dev/work/src; touch a.rs", "src/a.rs"),
            ("(cd src && touch a.rs); touch b.rs", "b.rs"),
            ("FOO=1 BAR='x y' touch a.txt", "a.txt"),
            ("env FOO=1 touch a.txt", "a.txt"),
            ("sudo -u me touch a.txt", "a.txt"),
            ("timeout -k 5 10 touch a.txt", "a.txt"),
            ("bash -c 'touch a.txt'", "a.txt"),
            ("bash -lc \"cd src && touch a.rs\"", "src/a.rs"),
            ("sh <<'EOF'\ntouch a.txt\nEOF", "a.txt"),
            ("eval 'touch a.txt'", "a.txt"),
            ("if [ -f x ]; then rm x; else touch a.txt; fi", "a.txt"),
            ("for f in a b c; do echo hi > $f.txt; done", "b.txt"),
            ("for f in src/*.rs; do sed -i s/a/b/ \"$f\"; done", "src/x.rs"),
            ("F=src/a.rs\nsed -i s/a/b/ \"$F\"", "src/a.rs"),
            ("find src -name '*.rs' -exec sed -i s/a/b/ {} +", "src/deep/a.rs"),
            ("find . -name '*.tmp' -delete", "sub/x.tmp"),
            ("find src -name '*.rs' | xargs sed -i s/a/b/", "src/a.rs"),
            ("find src -name '*.rs' -print0 | xargs -0 -n 1 sed -i s/a/b/", "src/a.rs"),
            ("grep -rl foo src | grep -v test | xargs sed -i 's/foo/bar/g'", "src/a.rs"),
            ("git ls-files '*.rs' | xargs -I{} sed -i s/a/b/ {}", "src/a.rs"),
            ("sed -i s/a/b/ $(grep -rl foo src)", "src/a.rs"),
            ("sed -i s/a/b/ `find src -name '*.rs'`", "src/a.rs"),
            ("python3 - <<'EOF'\np = 'src/a.py'\ns = open(p).read()\nopen(p, 'w').write(s)\nEOF", "src/a.py"),
            ("python -c \"open('a.txt','w').write('x')\"", "a.txt"),
            ("node -e \"require('fs').writeFileSync('a.json', '{}')\"", "a.json"),
            ("python gen.py --out src/gen.ts", "src/gen.ts"),
            ("./tools/gen.sh src/gen.ts", "src/gen.ts"),
            ("protoc --out-dir gen x.proto", "gen/x.pb.go"),
            ("git checkout -- a.txt", "a.txt"),
            ("git restore src", "src/a.rs"),
            ("git -C sub rm a.txt", "sub/a.txt"),
            ("truncate -s 0 a.txt && npm test", "a.txt"),
            ("! touch a.txt || true", "a.txt"),
        ],
    );
    assert_eq!(verdict_in("src", "sed -i s/a/b/ a.rs", "src/a.rs"), Verdict::Writer);
    assert_eq!(verdict_in("src", "sed -i s/a/b/ ../a.rs", "a.rs"), Verdict::Writer);
    assert_eq!(verdict_in("src", "sed -i s/a/b/ a.rs", "a.rs"), Verdict::Idle);
}

#[test]
fn a_command_that_rewrites_trees_writes_every_file_in_them() {
    check(
        Verdict::Writer,
        &[
            ("cargo fmt", "src/a.rs"),
            ("cargo clippy --fix --allow-dirty", "src/a.rs"),
            ("gofmt -w .", "pkg/a.go"),
            ("go generate ./...", "pkg/a_gen.go"),
            ("npx prettier --write .", "src/a.ts"),
            ("npx prettier --write 'src/**/*.ts'", "src/deep/a.ts"),
            ("npx eslint --fix src", "src/a.ts"),
            ("yarn exec eslint --fix src", "src/a.ts"),
            ("node_modules/.bin/prettier -w src", "src/a.ts"),
            ("black .", "a.py"),
            ("python -m black src", "src/a.py"),
            ("poetry run isort src", "src/a.py"),
            ("uv run ruff format", "a.py"),
            ("ruff check --fix src", "src/a.py"),
            ("git checkout main", "a.txt"),
            ("git switch -c fix origin/main", "a.txt"),
            ("git stash", "a.txt"),
            ("git stash pop", "a.txt"),
            ("git pull --rebase", "a.txt"),
            ("git reset --hard HEAD~1", "a.txt"),
            ("git apply x.diff", "a.txt"),
            ("patch -p1 < x.diff", "a.txt"),
            ("npx jscodeshift -t x.js src", "src/a.js"),
            ("cd sub && git merge topic", "a.txt"),
        ],
    );
    // A formatter of one language leaves other files alone.
    check(Verdict::Idle, &[("cargo fmt", "a.py"), ("black .", "src/a.rs"), ("gofmt -w .", "README.md")]);
    check(Verdict::Idle, &[("npx prettier --write src", "lib/a.ts"), ("git checkout -- a.txt", "b.txt")]);
}

#[test]
fn a_command_of_which_all_is_known_writes_nothing_else() {
    for command in [
        "ls -la",
        "cat a.txt",
        "cat a.txt | head -5 | grep x > /dev/null 2>&1",
        "grep -rn foo .",
        "sed -n 1,20p a.txt",
        "awk '{print $1}' a.txt",
        "find . -name '*.txt'",
        "find . -name '*.rs' -exec wc -l {} +",
        "sleep 30",
        "cd src && ls",
        "true",
        "git status && git diff a.txt && git log --oneline -5",
        "git add -A && git commit --no-verify -m 'a.txt > b'",
        "git push origin main",
        "git checkout -b topic",
        "git stash list",
        "git reset a.txt",
        "npm test",
        "npm run test:unit -- a.txt",
        "npm run lint",
        "npm run dev",
        "yarn dev",
        "pnpm typecheck",
        "npx jest a.txt",
        "npx tsc --noEmit",
        "npx eslint .",
        "npx prettier --check .",
        "cargo test --workspace",
        "cargo fmt --check",
        "cargo clippy --all-targets",
        "RUST_LOG=debug cargo test 2>&1 | tail -20",
        "go test ./...",
        "pytest -q",
        "python -m pytest",
        "python -m http.server 8000",
        "python manage.py runserver",
        "make test",
        "timeout 60 npm test",
        "npm test; echo done",
        "sudo systemctl status nginx",
        "echo 'x > a.txt'",
        "curl -s https://example.org",
        "touch b.txt && npm test",
        "echo hi > out.log",
        "cp a.txt b.txt",
        "for i in 1 2 3; do sleep 1; done",
        "test -f a.txt && echo yes # rm a.txt",
        "while [ ! -S x.sock ]; do sleep 1; done; echo up > b.txt",
        "npm run dev &",
        "psql --version",
    ] {
        assert_eq!(verdict_in("", command, "a.txt"), Verdict::Idle, "`{command}`");
    }
}

#[test]
fn what_a_command_may_write_is_unknown_where_its_text_does_not_say_it() {
    check(
        Verdict::Unknown,
        &[
            ("./build.sh", "a.txt"),
            ("make", "a.txt"),
            ("npm run build", "a.txt"),
            ("npm run lint:fix", "a.txt"),
            ("npm run format", "a.txt"),
            ("npm install", "a.txt"),
            ("python gen.py", "a.txt"),
            ("node scripts/x.js", "a.txt"),
            ("node scripts/x.js", "scripts/x.js"),
            ("frobnicate --all", "a.txt"),
            ("echo hi > $FILE", "a.txt"),
            ("echo hi > ${F%.md}.txt", "a.txt"),
            ("rm -rf $DIR", "a.txt"),
            ("sed -i s/a/b/ $(cat list)", "a.txt"),
            ("cat list | xargs rm", "a.txt"),
            ("cd $X && touch a.txt", "a.txt"),
            ("cd - && touch a.txt", "a.txt"),
            ("source env.sh", "a.txt"),
            ("bash deploy.sh", "a.txt"),
            ("bash -c \"$CMD\"", "a.txt"),
            ("git commit -m x", "a.txt"),
            ("git frob", "a.txt"),
            ("jest -u", "a.txt"),
            ("npx jest --updateSnapshot", "a.txt"),
            ("INSTA_UPDATE=always cargo test", "a.txt"),
            ("tar xzf x.tgz", "a.txt"),
            ("python -c \"print(open('a.txt').read())\"", "a.txt"),
            // It was cut off in the middle.
            ("cat > b.txt <<'EOF'\nline", "a.txt"),
            ("echo 'and so", "a.txt"),
            ("f() { rm x; }; f", "a.txt"),
            ("case $1 in a) rm x;; esac", "a.txt"),
            ("", "a.txt"),
        ][..31],
    );
}

#[test]
fn side_effects_that_may_matter_are_told_and_others_are_not() {
    use SideEffect::{Database, Network, Packages, Processes, Push, Script, Services};
    for (command, effects) in [
        ("ls", &[][..]),
        ("cat a | grep b", &[]),
        ("sed -i s/a/b/ a.txt", &[]),
        ("cargo test", &[]),
        ("npm test", &[]),
        ("git commit -m x", &[]),
        ("cargo add serde", &[]),
        ("git push", &[Push]),
        ("git -C sub push origin main", &[Push]),
        ("cd sub && git push --force", &[Push]),
        ("npm publish", &[Push]),
        ("docker push x", &[Push]),
        ("curl -X POST https://example.org", &[Network]),
        ("ssh host 'rm -rf /'", &[Network]),
        ("scp a host:", &[Network]),
        ("npm install left-pad", &[Packages]),
        ("pip install -r requirements.txt", &[Packages]),
        ("python3 -m pip install x", &[Packages]),
        ("sudo apt-get install -y jq", &[Packages]),
        ("cargo install ripgrep", &[Packages]),
        ("brew list", &[]),
        ("psql -c 'drop table x'", &[Database]),
        ("npx prisma migrate dev", &[Database]),
        ("python manage.py migrate", &[Database]),
        ("rails db:migrate", &[Database]),
        ("systemctl restart nginx", &[Services]),
        ("docker compose up -d", &[Services]),
        ("docker ps", &[]),
        ("kubectl get pods", &[]),
        ("kubectl apply -f x.yaml", &[Services]),
        ("npm run dev &", &[Processes]),
        ("nohup ./server > log &", &[Processes, Script]),
        ("pkill -f vite", &[Processes]),
        ("./deploy.sh", &[Script]),
        ("make deploy", &[Push, Script]),
        ("bash -c 'git push && curl x'", &[Network, Push]),
        ("echo 'git push'", &[]),
    ] {
        let mut effects = effects.to_vec();
        effects.sort();
        let found: Vec<SideEffect> =
            CommandClass::of(command).effects().filter(|one| effects.contains(one) || *one != Script).collect();
        assert_eq!(found, effects, "`{command}`");
    }
}

#[test]
fn no_text_makes_the_classifier_panic_or_wait() {
    let whole = "for f in $(find . -name '*.rs'); do sed -i \"s/${A}/`b`/\" $f > x 2>&1 <<E | xargs -0 env A=1 sh -c 'x'; done\nE\n";
    for at in (0..whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        CommandClass::of(&whole[..at]);
        CommandClass::of(&whole[at..]);
    }
    for text in [
        "(((((",
        "))))",
        "$(",
        "`",
        "a=$a a=$a",
        "{a,{b,{c,",
        "\\",
        ">",
        "2>",
        "<<",
        "for",
        "for x",
        "xargs",
        "sudo",
        "cd",
        "git",
        "git -C",
    ] {
        CommandClass::of(text);
        CommandClass::of(&text.repeat(500));
    }
    let deep = "sh -c '".repeat(50);
    CommandClass::of(&deep);
    let braces = format!("touch {}", "{a,b}".repeat(40));
    assert_ne!(verdict_in("", &braces, "zz"), Verdict::Writer);
}
