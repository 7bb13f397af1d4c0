// `tollgate status`: whether this installation runs, and whether all of it is ready.

import { get } from 'node:http';
import { readConfig } from '../config.ts';
import { readAddresses } from '../supervisor/addresses.ts';
import { findInstallationHolder } from '../supervisor/installation-lock.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command.ts';

export const statusCommand: Command = {
  usage: ['tollgate status'],
  summary: 'Says whether this installation (DATA_DIR) runs and is ready. Exit code 0: ready, 1: not.',
  run,
};

const ASK_LIMIT_MS = 3_000;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  expectPositionals(parseArguments(args, {}).positionals, []);
  const { dataDirectory } = readConfig(environment);
  const holder = findInstallationHolder(dataDirectory);
  if (holder === null) {
    print(`not running (${dataDirectory})`);
    return 1;
  }
  const addresses = readAddresses(dataDirectory);
  const readiness = addresses === null ? null : await ask(`${addresses.adminUrl}/readyz`);
  print(`running as process ${holder.pid} (${dataDirectory})`);
  if (addresses === null || readiness === null) {
    print('not ready: starting, or its admin address does not answer');
    return 1;
  }
  print(`serves ${addresses.url}, admin ${addresses.adminUrl}\n${readiness.text.trim()}`);
  return readiness.ok ? 0 : 1;
}

async function ask(url: string): Promise<{ ok: boolean; text: string } | null> {
  return new Promise((resolve) => {
    const request = get(url, { timeout: ASK_LIMIT_MS, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ ok: response.statusCode === 200, text }));
      response.on('error', () => resolve(null));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
  });
}
