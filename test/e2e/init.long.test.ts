// From nothing to an answer: a file that `tollgate init` wrote starts, serves, is applied again without a difference,
// and `tollgate doctor` finds nothing wrong but what is missing.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { runCommand, startTollgate } from '../support/gateway.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('tollgate init, start, a request, apply --dry-run, doctor', async (context) => {
  const models = { data: [{ id: 'own-model', max_context_length: 32_000 }] };
  const provider = await startFakeUpstream(({ path }) =>
    path === '/v1/models' ? { body: JSON.stringify(models) } : ONE_TOKEN_REPLY,
  );
  context.after(() => provider.close());
  const file = join(temporaryDirectory(context), 'tollgate.yaml');
  const address = provider.url.replace('http://', '');
  const written = await runCommand(['init', '--provider', `lmstudio,address=${address}`, '--file', file], process.env);
  assert.equal(written.exitCode, 0, written.output);

  const tollgate = await startTollgate({ configurationYaml: readFileSync(file, 'utf8'), clickhouse: 'away' });
  context.after(() => tollgate.stop());
  const key = /key "first" of "main", shown only now: (\S+)/.exec(tollgate.output())?.[1];
  assert.ok(key !== undefined, tollgate.output());
  const reply = await fetch(`${tollgate.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'lmstudio/own-model', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  assert.equal(reply.status, 200, await reply.text());

  const applied = await tollgate.run(['apply', file, '--dry-run']);
  assert.equal(applied.exitCode, 0, applied.output);
  assert.match(applied.output, /no difference\n$/);

  const { exitCode, output } = await tollgate.run(['doctor', '--config', file]);
  assert.equal(exitCode, 1, output);
  assert.match(output, /an installation runs on .* as process \d+/);
  assert.match(output, /Postgres \d\S* answers \(DATABASE_URL\)/);
  assert.match(output, /provider "lmstudio" lists the model of the file/);
  const wrong = output.split('\n').filter((line) => line.startsWith('WRONG'));
  assert.equal(wrong.length, 1, output);
  assert.match(wrong[0] ?? '', /CLICKHOUSE_URL/);
});
