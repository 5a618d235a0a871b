//! `piton completions`: what a shell needs to complete piton's words.

use clap_complete::Shell;
use piton_wording::Failure;
use serde::Serialize;

use crate::args;
use crate::console::Console;

/// Print a script that completes piton's commands in your shell
///
/// In bash, zsh and fish it offers turns with their prompts, names, sessions, operations and numbers of changes: the
/// shell asks piton, which answers from its store in a few milliseconds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  piton completions bash > ~/.local/share/bash-completion/completions/piton
  piton completions zsh > \"${fpath[1]}/_piton\"
  piton completions fish > ~/.config/fish/completions/piton.fish";

#[derive(Serialize)]
struct Completions {
    shell: String,
    script: String,
}

pub fn run(args: &Args, console: &mut Console) -> Result<(), Failure> {
    let script = script(args.shell);
    let made = Completions { shell: args.shell.to_string(), script: String::from_utf8_lossy(&script).into_owned() };
    console.print(&made, |out, _| out.write_all(&script))
}

/// The shells that ask piton get a script that does; all others know the commands and flags of now.
fn script(shell: Shell) -> Vec<u8> {
    match shell {
        Shell::Bash => include_bytes!("completions/piton.bash").to_vec(),
        Shell::Zsh => include_bytes!("completions/piton.zsh").to_vec(),
        Shell::Fish => include_bytes!("completions/piton.fish").to_vec(),
        shell => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::in_terminal(), "piton", &mut script);
            script
        }
    }
}
