// Codex: speaks Responses, runs commands in its own shell tool, and keeps its sessions under its home.

import { join } from 'node:path';
import { type Agent, readJsonLines } from './agent.ts';
import { writeConnected } from './connected-settings.ts';

const SETTINGS = ['--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];

export const codex: Agent = {
  name: 'codex',
  packageName: '@openai/codex',
  command: 'codex',
  installScripts: [],
  path: '/v1/responses',
  model: 'gpt-5',
  shellTools: {
    exec_command: (command) => ({ cmd: command }),
    shell_command: (command) => ({ command }),
    shell: (command) => ({ command: ['bash', '-lc', command] }),
  },
  // It is told to dial a WebSocket first, which spec 4.2 refuses so that it falls back.
  isExpectedRefusal: ({ method, path, status }) =>
    method === 'GET' && path.startsWith('/v1/responses') && status === 426,
  configure(place) {
    writeConnected(
      'codex',
      place,
      'gpt-5',
      `check_for_update_on_startup = false

[model_providers.tollgate]
supports_websockets = true

[analytics]
enabled = false

[feedback]
enabled = false

[features]
plugins = false
apps = false

[otel]
exporter = "none"
`,
    );
    return { TOLLGATE_KEY: place.key, CODEX_HOME: join(place.home, '.codex') };
  },
  ask: (prompt, sessionId) => [
    'exec',
    ...(sessionId === null ? [] : ['resume']),
    ...SETTINGS,
    ...(sessionId === null ? [] : [sessionId]),
    prompt,
  ],
  readOutput(stdout) {
    const events = readJsonLines(stdout);
    const items = events.map(({ item }) => item as { type?: string; text?: string } | undefined);
    return {
      text: items.flatMap((item) => (item?.type === 'agent_message' ? [item.text ?? ''] : [])).join('\n'),
      sessionId: (events.find(({ type }) => type === 'thread.started')?.thread_id as string | undefined) ?? null,
    };
  },
};
