// opencode: speaks the dialect of whichever provider package it is given, here Chat Completions or Messages.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Agent, readJsonLines } from './agent.ts';
import { writeConnected } from './connected-settings.ts';

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
    configure(place) {
      const settings = {
        $schema: 'https://opencode.ai/config.json',
        permission: { bash: 'allow' },
        autoupdate: false,
        share: 'disabled',
      };
      writeConnected('opencode', place, 'sim/agent', JSON.stringify(settings, null, 2));
      // What is connected speaks Chat Completions; by hand its provider can be another.
      const path = join(place.home, '.config', 'opencode', 'opencode.json');
      writeFileSync(path, readFileSync(path, 'utf8').replace('@ai-sdk/openai-compatible', providerPackage));
      const off = ['AUTOUPDATE', 'LSP_DOWNLOAD', 'MODELS_FETCH', 'DEFAULT_PLUGINS', 'SHARE'];
      return {
        TOLLGATE_KEY: place.key,
        ...Object.fromEntries(off.map((what) => [`OPENCODE_DISABLE_${what}`, '1'])),
      };
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
