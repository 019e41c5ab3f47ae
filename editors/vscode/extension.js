// The extension starts the language server of raddle, and shows the picture of a graph beside its file. All knowledge
// of the files is in the server.
'use strict';

const {execFile} = require('node:child_process');
const path = require('node:path');
const vscode = require('vscode');
const {LanguageClient} = require('vscode-languageclient/node');

/** @type {import('vscode-languageclient/node').LanguageClient | undefined} */
let client;

/** The program, as the settings name it. */
function program() {
  return vscode.workspace.getConfiguration('raddle').get('path', 'raddle');
}

async function startServer() {
  const documents = ['**/graph.yaml', '**/config.yaml', '**/*.test.yaml', '**/*.{sh,py,ts}'];
  client = new LanguageClient(
    'raddle',
    'raddle',
    {command: program(), args: ['lsp']},
    {
      documentSelector: documents.map(pattern => ({scheme: 'file', pattern})),
      synchronize: {fileEvents: documents.map(pattern => vscode.workspace.createFileSystemWatcher(pattern))},
    },
  );
  try {
    await client.start();
  } catch (error) {
    const open = 'Open the setting';
    if (await vscode.window.showErrorMessage(`raddle cannot be started as "${program()}": ${error}`, open) === open) {
      await vscode.commands.executeCommand('workbench.action.openSettings', 'raddle.path');
    }
  }
}

/**
 * Returns the picture of the agent of a stored file as SVG.
 * @param {string} file
 * @returns {Promise<string>}
 */
function draw(file) {
  const dir = path.dirname(file);
  return new Promise((resolve, reject) => {
    execFile(program(), ['graph', dir, '--format', 'svg', '-o', '-'], {cwd: dir, timeout: 20000, maxBuffer: 32 << 20}, (error, stdout, stderr) => {
      if (error) {
        reject(new Error(stderr.trim() || error.message));
      } else {
        resolve(stdout);
      }
    });
  });
}

/** @param {string} text */
function escape(text) {
  return text.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
}

/**
 * Returns the page of a picture. It runs no scripts and loads nothing.
 * @param {string} inner
 */
function page(inner) {
  return `<!DOCTYPE html>
<html><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>body { padding: 1rem } img { max-width: 100% } pre { white-space: pre-wrap }</style></head>
<body>${inner}</body></html>`;
}

/** @type {Map<string, vscode.WebviewPanel>} */
const panels = new Map();

/**
 * Shows the picture of a file in its panel, or why there is none.
 * @param {string} file
 */
async function refresh(file) {
  const panel = panels.get(file);
  if (!panel) {
    return;
  }
  let inner;
  try {
    const svg = await draw(file);
    inner = `<img alt="${escape(path.basename(path.dirname(file)))}" src="data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}">`;
  } catch (error) {
    inner = `<pre>${escape(String(error instanceof Error ? error.message : error))}</pre>`;
  }
  if (panels.get(file) === panel) {
    panel.webview.html = page(inner);
  }
}

async function showPicture() {
  const document = vscode.window.activeTextEditor?.document;
  if (!document || document.uri.scheme !== 'file' || path.basename(document.fileName) !== 'graph.yaml') {
    void vscode.window.showInformationMessage('Open a graph.yaml first.');
    return;
  }
  const file = document.fileName;
  let panel = panels.get(file);
  if (panel) {
    panel.reveal(undefined, true);
  } else {
    panel = vscode.window.createWebviewPanel('raddle.picture', path.basename(path.dirname(file)), {viewColumn: vscode.ViewColumn.Beside, preserveFocus: true}, {enableScripts: false});
    panels.set(file, panel);
    panel.onDidDispose(() => panels.delete(file));
  }
  await refresh(file);
}

/** @param {vscode.ExtensionContext} context */
exports.activate = async context => {
  context.subscriptions.push(
    vscode.commands.registerCommand('raddle.showPicture', showPicture),
    vscode.commands.registerCommand('raddle.restart', async () => {
      await client?.stop();
      await startServer();
    }),
    vscode.workspace.onDidSaveTextDocument(document => refresh(document.fileName)),
  );
  await startServer();
};

exports.deactivate = () => client?.stop();
