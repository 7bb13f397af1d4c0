// `tollgate connect`: connects a coding agent or an editor to the gateway. Prints the tool's settings, writes them into
// the file in the person's home directory, restores that file, or tries one request.

import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ConnectedGateway, SettingsFile, Tool } from '../connect/tools.ts';
import { StartFault } from '../installation/start-fault.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, UsageFault } from './command/command.ts';

export const connectCommand: Command = {
  usage: [
    'tollgate connect claude-code|codex|opencode|cline|zed|cursor ' +
      '[--url URL] [--key K] [--model M] [--write [--dry-run] | --undo | --check]',
  ],
  summary:
    'Prints the settings that connect a tool with the gateway at --url (http://127.0.0.1:8080), with the models ' +
    'of the key (--key or TOLLGATE_KEY). --write merges them into your settings file and keeps a copy of the ' +
    'file; --dry-run shows the result of --write, --undo restores the copy, --check makes one request and shows ' +
    'model and cost.',
  run,
};

const OPTIONS = {
  url: { type: 'string', default: 'http://127.0.0.1:8080' },
  key: { type: 'string' },
  model: { type: 'string' },
  write: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  undo: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
} as const;

/** Printed instead of the key, because a terminal's history is no place for it. */
const KEY_SHOWN = 'YOUR_KEY';

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [name = ''] = expectPositionals(positionals, ['TOOL']);
  const { TOOLS } = await import('../connect/tools.ts');
  const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  if (tool === undefined) throw new UsageFault(`unknown tool "${name}"; there are ${Object.keys(TOOLS).join(', ')}`);
  if ([values.write, values.undo, values.check].filter(Boolean).length > 1)
    throw new UsageFault('--write, --undo and --check exclude each other');
  if (values['dry-run'] && !values.write) throw new UsageFault('--dry-run goes with --write');
  const home = environment['HOME'] ?? homedir();
  if (values.undo) return undo(home, name, print);
  const gateway = await readGateway(tool, values, environment['TOLLGATE_KEY'] ?? '');
  if (values.check) return check(tool, gateway, print);
  if (tool.file === null) {
    if (values.write) throw new StartFault(`${name} has no settings file to write: do what is printed without --write`);
    for (const step of tool.steps(gateway)) print(step);
    return 0;
  }
  if (values.write) await write({ home, name, file: tool.file, gateway, isDry: values['dry-run'], print });
  else print(`# ~/${tool.file.path}\n${tool.file.merge('', { ...gateway, key: KEY_SHOWN })}`);
  if (!values['dry-run']) for (const step of tool.steps(gateway)) print(`then: ${step}`);
  return 0;
}

type Values = ReturnType<typeof parseArguments<typeof OPTIONS>>['values'];

async function readGateway(tool: Tool, { url, key, model }: Values, keyOfEnvironment: string) {
  const address = URL.parse(url);
  if (address === null || !['http:', 'https:'].includes(address.protocol))
    throw new UsageFault(`--url "${url}" is not an http:// or https:// address`);
  if (!['', '/', '/v1', '/v1/'].includes(address.pathname))
    throw new UsageFault(`--url "${url}" has a path: the gateway's address has none`);
  const known = key ?? keyOfEnvironment;
  if (known === '') throw new UsageFault('--key is missing, and TOLLGATE_KEY is not set');
  if (/[^\x21-\x7e]/.test(known)) throw new UsageFault('--key has characters that no key has');
  const { askModels } = await import('../connect/ask-gateway.ts');
  const asked = await askModels(address.origin, known);
  if (!asked.ok) throw new StartFault(asked.reason);
  const models = asked.value.filter(({ apis }) => apis.length === 0 || apis.includes(tool.api));
  const first = models.find(({ id }) => id.endsWith('/auto')) ?? models[0];
  if (first === undefined) throw new StartFault(`no model of this key speaks ${tool.api}, which the tool needs`);
  if (model !== undefined && !models.some(({ id }) => id === model))
    throw new StartFault(
      `the key has no model "${model}" for ${tool.api}; it has ${models.map(({ id }) => id).join(', ')}`,
    );
  return { url: address.origin, key: known, model: model ?? first.id, models } satisfies ConnectedGateway;
}

interface WriteParams {
  readonly home: string;
  readonly name: string;
  readonly file: SettingsFile;
  readonly gateway: ConnectedGateway;
  readonly isDry: boolean;
  readonly print: CommandContext['print'];
}

async function write({ home, name, file, gateway, isDry, print }: WriteParams): Promise<void> {
  const { readSettings, repositoryOf, writeKept } = await import('../connect/kept-copy.ts');
  const path = join(home, file.path);
  const repository = file.hasKey ? repositoryOf(path) : null;
  if (repository !== null)
    throw new StartFault(`${path} lies in the repository ${repository}, where no key is written: others would see it`);
  const before = readSettings(path);
  const text = before === null ? null : file.merge(before, isDry ? { ...gateway, key: KEY_SHOWN } : gateway);
  if (text === null)
    throw new StartFault(`${path} cannot be read: it is left as it is; "tollgate connect ${name}" prints what to add`);
  if (isDry) {
    print(`# ${path} would be\n${text}`);
    return;
  }
  const reason = writeKept(home, name, path, text);
  if (reason !== null) throw new StartFault(`${path} is left as it is: ${reason}`);
  print(`written: ${path}; "tollgate connect ${name} --undo" restores the file as it was`);
}

async function undo(home: string, name: string, print: CommandContext['print']): Promise<number> {
  const { keptPath, undoKept } = await import('../connect/kept-copy.ts');
  const { result, path } = undoKept(home, name);
  if (result === 'nothing_kept') throw new StartFault(`nothing was written for ${name}: there is no ${path}`);
  if (result === 'damaged')
    throw new StartFault(`${path} is damaged: the settings of ${name} cannot be restored from it`);
  if (result === 'changed_since')
    throw new StartFault(
      `${path} was changed after it was written: it is left as it is; ` +
        `${keptPath(home, name)} has the file as it was, in base64`,
    );
  print(result === 'removed' ? `removed: ${path}, which did not exist before` : `restored: ${path}`);
  return 0;
}

async function check({ api }: Tool, { url, key, model }: ConnectedGateway, print: CommandContext['print']) {
  const { checkRequest } = await import('../connect/ask-gateway.ts');
  const checked = await checkRequest(url, key, api, model);
  if (!checked.ok) throw new StartFault(checked.reason);
  const { model: served, cost, isRouted, executionId } = checked.value;
  print(`asked for: ${model} (${api})`);
  print(`served by: ${served}${isRouted ? ', chosen by auto routing' : ''}`);
  print(`cost: ${cost === null ? 'not known' : `${cost} USD`}`);
  if (executionId !== null) print(`record: ${url}/v1/generation?id=${executionId}`);
  return 0;
}
