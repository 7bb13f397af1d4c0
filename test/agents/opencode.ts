// opencode: speaks the dialect of whichever provider package it is given, here Chat Completions or Messages.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Agent, readJsonLines } from './agent.ts';

export const opencodeChat = opencode('opencode (chat)', '/v1/chat/completions', '@ai-sdk/openai-compatible');
export const opencodeMessages = opencode('opencode (messages)', '/v1/messages', '@ai-sdk/anthropic');

function opencode(name: string, path: string, providerPackage: string): Agent {
  return {
    name,
    packageName: 'opencode-ai',
    command: 'opencode',
    installScripts: ['opencode-ai/postinstall.mjs'],
    path,
    model: 'sim/agent',
    shellTools: { bash: (command) => ({ command, description: 'Looks at the note' }) },
    isExpectedRefusal: () => false,
    configure({ home, gatewayUrl, key }) {
      const directory = join(home, '.config', 'opencode');
      mkdirSync(directory, { recursive: true });
      const provider = {
        npm: providerPackage,
        name: 'Tollgate',
        options: { baseURL: `${gatewayUrl}/v1`, apiKey: key },
        models: { 'sim/agent': { name: 'Agent' } },
      };
      const settings = {
        provider: { tollgate: provider },
        permission: { bash: 'allow' },
        autoupdate: false,
        share: 'disabled',
      };
      writeFileSync(
        join(directory, 'opencode.json'),
        JSON.stringify({ $schema: 'https://opencode.ai/config.json', ...settings }, null, 2),
      );
      const off = ['AUTOUPDATE', 'LSP_DOWNLOAD', 'MODELS_FETCH', 'DEFAULT_PLUGINS', 'SHARE'];
      return Object.fromEntries(off.map((what) => [`OPENCODE_DISABLE_${what}`, '1']));
    },
    ask: (prompt, sessionId) => [
      'run',
      '--format',
      'json',
      '--model',
      'tollgate/sim/agent',
      ...(sessionId === null ? [] : ['--session', sessionId]),
      '--',
      prompt,
    ],
    readOutput(stdout) {
      const events = readJsonLines(stdout);
      const parts = events.flatMap(({ type, part }) =>
        type === 'text' ? [(part as { text?: string }).text ?? ''] : [],
      );
      const sessionId = events.find((event) => typeof event.sessionID === 'string')?.sessionID;
      return { text: parts.join('\n'), sessionId: typeof sessionId === 'string' ? sessionId : null };
    },
  };
}
