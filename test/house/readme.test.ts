// What the README shows must work as pasted: its configuration is one that the service takes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseConfigurationFile } from '../../src/domain/configuration/parse-configuration-file.ts';

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');

test("the README's configuration is read without a fault", () => {
  const example = /```yaml\n([\s\S]*?)```/.exec(README)?.[1];
  assert.ok(example !== undefined, 'the README has an example');
  const environment = { OPENAI_API_KEY: 'sk-test', WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}` };
  const parsed = parseConfigurationFile(example, environment);
  assert.deepEqual(parsed.ok ? [] : parsed.errors, []);
});
