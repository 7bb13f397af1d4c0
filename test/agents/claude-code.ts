// Claude Code: speaks Messages with a bearer token, and may run only the shell tool here.

import { type Agent, readJsonLines } from './agent.ts';
import { writeConnected } from './connected-settings.ts';

export const claudeCode: Agent = {
  name: 'claude-code',
  packageName: '@anthropic-ai/claude-code',
  command: 'claude',
  installScripts: ['@anthropic-ai/claude-code/install.cjs'],
  path: '/v1/messages',
  model: 'claude-sonnet-4-5',
  shellTools: { Bash: (command) => ({ command, description: 'look at the note' }) },
  asksAgainUnstreamed: true,
  isExpectedRefusal: () => false,
  configure(place) {
    writeConnected('claude-code', place, 'claude-sonnet-4-5', '');
    return {
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_TELEMETRY: '1',
    };
  },
  ask: (prompt, sessionId) => [
    '--print',
    '--output-format',
    'json',
    '--allowedTools=Bash',
    ...(sessionId === null ? [] : ['--resume', sessionId]),
    '--',
    prompt,
  ],
  readOutput(stdout) {
    const result = readJsonLines(stdout).find(({ type }) => type === 'result');
    return {
      text: typeof result?.result === 'string' ? result.result : '',
      sessionId: typeof result?.session_id === 'string' ? result.session_id : null,
    };
  },
};
