"""The subcommands of `eagle-assist`, one module each; `assistant.cli` loads a module when its command runs."""
