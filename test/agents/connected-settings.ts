// The settings of an agent as `tollgate connect` writes them, into what the test says besides.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TOOLS } from '../../src/connect/tools.ts';
import type { AgentPlace } from './agent.ts';

/** `besides`: the file as a person has it before. */
export function writeConnected(
  tool: string,
  { home, gatewayUrl, key }: AgentPlace,
  model: string,
  besides: string,
): void {
  const file = TOOLS[tool]?.file;
  if (file == null) throw new Error(`${tool} has no settings file`);
  const models = [{ id: model, name: 'Agent', contextLength: null, maxOutputTokens: null, apis: [] }];
  const text = file.merge(besides, { url: gatewayUrl, key, model, models });
  if (text === null) throw new Error(`the settings of ${tool} cannot be merged`);
  const path = join(home, file.path);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
