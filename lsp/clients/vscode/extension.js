// eagle-assist for VS Code: starts `eagle-assist lsp` and shows what it says of itself. Ghost text, accepting it whole
// or by word, and reporting that it was accepted are vscode-languageclient's and VS Code's own.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SECTION = "eagle-assist";
const ICONS = { ready: "sparkle", loading: "loading~spin", starting: "loading~spin", unavailable: "warning" };

let client;
let item;

function command() {
  const [program, ...args] = vscode.workspace.getConfiguration("eagleAssist").get("command");
  return { command: program, args, options: { env: process.env } };
}

function show({ state, message, why }) {
  item.text = `$(${ICONS[state] ?? "question"}) eagle-assist`;
  item.tooltip = [state, message, why && `Nothing is shown: ${why}`].filter(Boolean).join("\n");
  item.show();
}

async function start(context) {
  client = new LanguageClient(SECTION, "eagle-assist", command(), {
    // Files and unsaved texts; not what version control, terminals and output panes show.
    documentSelector: [{ scheme: "file" }, { scheme: "untitled" }, { scheme: "vscode-remote" }],
    synchronize: { configurationSection: SECTION },
    initializationOptions: vscode.workspace.getConfiguration().get(SECTION),
  });
  client.onNotification("eagle-assist/didChangeStatus", show);
  show({ state: "starting", message: "" });
  try {
    await client.start();
  } catch (error) {
    show({ state: "unavailable", message: `${command().command} cannot be started: set eagleAssist.command.` });
  }
  context.subscriptions.push(client);
}

async function report() {
  const uri = vscode.window.activeTextEditor?.document.uri.toString();
  const status = await client.sendRequest("eagle-assist/status", uri ? { textDocument: { uri } } : {});
  const { shown, accepted, kept } = status.counts;
  const why = status.why ? ` Nothing is shown here: ${status.why}.` : "";
  const counts = `Of ${shown} suggestions, ${accepted} were accepted and ${kept} kept.`;
  vscode.window.showInformationMessage(`eagle-assist is ${status.state}. ${status.message}${why} ${counts}`);
}

async function toggle() {
  const settings = vscode.workspace.getConfiguration(SECTION);
  const enabled = settings.get("editor.enabled") !== false;
  await settings.update("editor.enabled", !enabled, vscode.ConfigurationTarget.Global);
}

async function activate(context) {
  item = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Right);
  item.command = "eagleAssist.status";
  context.subscriptions.push(
    item,
    vscode.commands.registerCommand("eagleAssist.status", report),
    vscode.commands.registerCommand("eagleAssist.toggle", toggle),
    vscode.commands.registerCommand("eagleAssist.restart", () => client.restart()),
  );
  await start(context);
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
