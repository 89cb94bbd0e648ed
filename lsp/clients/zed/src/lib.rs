//! eagle-assist for Zed: starts `eagle-assist lsp` where the program is on the worktree's PATH.

use zed_extension_api::{self as zed, Command, LanguageServerId, Result, Worktree};

struct EagleAssist;

impl zed::Extension for EagleAssist {
    fn new() -> Self {
        Self
    }

    fn language_server_command(&mut self, _: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let command = worktree
            .which("eagle-assist")
            .ok_or("eagle-assist is not on PATH; install it, or start Zed from a shell that finds it")?;
        Ok(Command { command, args: vec!["lsp".into()], env: worktree.shell_env() })
    }
}

zed::register_extension!(EagleAssist);
