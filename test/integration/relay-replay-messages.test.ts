// Byte for byte, for the Messages dialect: every recorded exchange and token count goes through a whole gateway in
// pieces down to one byte; only `model` changes on the way in, nothing on the way back, and the bill is the recording's
// to the last digit.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  assertBill,
  assertRelayed,
  inParallel,
  loadReplays,
  type ReplayInstallation,
  SEED,
  SKIP_WITHOUT_RECORDINGS,
  startReplayInstallation,
} from '../support/replays.ts';

const messages = loadReplays('messages');
const counts = loadReplays('count_tokens');
const VERSION = { 'anthropic-version': '2023-06-01' };

describe(`recorded Messages exchanges (TEST_SEED=${SEED})`, { skip: SKIP_WITHOUT_RECORDINGS }, () => {
  let installation: ReplayInstallation;

  before(async () => {
    installation = await startReplayInstallation([...messages, ...counts]);
  });

  after(() => installation?.stop());

  test(`${messages.length} messages`, async () => {
    assert.ok(messages.some(({ stream }) => stream) && messages.some(({ stream }) => !stream));
    await inParallel(messages, async (replay) => {
      const { headers } = await assertRelayed(installation, replay, VERSION);
      assert.match(String(headers['request-id']), /^req_/, replay.name);
      assert.equal(
        installation.received(replay.providerModel)[0]?.header('anthropic-version'),
        VERSION['anthropic-version'],
        replay.name,
      );
      await assertBill(installation, replay, String(headers['x-service-execution-id']));
    });
    assert.deepEqual(installation.upstream.violations, []);
  });

  test(`${counts.length} token counts, free of charge`, async () => {
    assert.ok(counts.length > 0);
    await inParallel(counts, async (replay) => {
      const { headers } = await assertRelayed(installation, replay, VERSION);
      const record = await assertBill(installation, replay, String(headers['x-service-execution-id']));
      assert.equal(record.totalCost ?? '0', '0', replay.name);
      const { input_tokens: count } = JSON.parse(String(replay.reply.body)) as { input_tokens?: number };
      assert.equal(record.tokensPrompt ?? null, replay.status < 300 ? String(count) : null, replay.name);
    });
    assert.deepEqual(installation.upstream.violations, []);
  });
});
