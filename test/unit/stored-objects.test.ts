// Requests that name objects stored at a provider: who may serve them, and that what only looks like a name passes.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findStoredObjects } from '../../src/domain/stored-objects/find-stored-objects.ts';
import type { Deployment } from '../../src/generation/catalog/serving-catalog.ts';
import {
  readStoredObjects,
  type StoredObjects,
  type StoredObjectWorkers,
} from '../../src/generation/catalog/stored-objects.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import { imageEdits } from '../../src/generation/dialects/images.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { systemone } from '../../src/generation/dialects/systemone.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { HeaderLines } from '../../src/upstream/http1/request-head.ts';
import { agentRequests } from '../support/agent-requests.ts';
import { loadRecordedExchanges } from '../support/recorded-exchanges.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const scanner = new RequestScanner();

const deploymentOf = (id: string, storedObjects?: 'shared'): Deployment => ({
  provider: {
    id,
    baseUrl: 'http://x',
    apiKey: '',
    auth: 'none',
    onDisconnect: 'cancel',
    ...(storedObjects === undefined ? {} : { storedObjects }),
  },
  origin: 'http://127.0.0.1',
  providerModel: 'm',
  modelJson: Buffer.from('"m"'),
  modelText: Buffer.from('m'),
  insteadOfModel: null,
  price: null,
  asksForUsage: false,
  credential: new HeaderLines([]),
});
const OWN = deploymentOf('own');
const SHARED = deploymentOf('shared', 'shared');

const DIALECTS = {
  chat_completions: chatCompletions,
  responses,
  messages,
  count_tokens: countTokens,
  images: imageEdits,
  systemone,
} as const;
type Api = keyof typeof DIALECTS;

/** What a worker does, and how often one was asked. */
let handedOver = 0;
const workers = {
  run: async (_task: string, body: Uint8Array) => {
    handedOver += 1;
    return { ok: true, value: findStoredObjects(body) };
  },
} as unknown as StoredObjectWorkers;

/** The field that is refused; null: every deployment may serve. */
async function refusedField(api: Api, body: string): Promise<string | null> {
  const bytes = Buffer.from(body);
  const request = { body: bytes, scanned: scanner.scan(bytes), form: null };
  const shared = await readStoredObjects(DIALECTS[api], request, [OWN, SHARED], workers);
  const found = await readStoredObjects(DIALECTS[api], request, [OWN], workers);
  if (!('kind' in found)) {
    assert.deepEqual(
      [found.deployments, found.itemIds, found.addsUnknownInput, 'deployments' in shared && shared.deployments],
      [[OWN], [], false, [OWN, SHARED]],
    );
    return null;
  }
  assert.equal(found.kind, 'invalid_field');
  const field = found.kind === 'invalid_field' ? found.field : '';
  if (field !== 'body')
    assert.deepEqual('deployments' in shared && shared.deployments, [SHARED], 'whoever shares its objects serves');
  return field;
}

const padding = `"pad": "${'x'.repeat(20_000)}"`;
const schema =
  '{"type":"object","properties":{"file_id":{"type":"string"},"container":{"type":"string"}},"default":{"file_id":"x"}}';

const ROWS: readonly (readonly [api: Api, members: string, field: string | null])[] = [
  ['responses', '"conversation": "conv_1"', 'conversation'],
  ['responses', '"conversation": {"id": "conv_1"}', 'conversation'],
  ['responses', '"conversation": null', null],
  ['responses', '"prompt": {"id": "pmpt_1"}', 'prompt'],
  ['images', '"prompt": "a cat"', null],
  ['responses', '"input": [{"type": "item_reference"}]', 'input'],
  ['responses', '"input": [{"type": "item_reference", "id": null}]', 'input'],
  ['responses', '"input": [{"type": "item_reference", "id": "a b"}]', 'input'],
  ['responses', `"input": [{"type": "item_reference", "id": "${'x'.repeat(129)}"}]`, 'input'],
  ['responses', '"input": [{"type": "item_reference", "id": "msg_1", "id": "msg_2"}]', 'input'],
  ['responses', '"input": [{"type": "item_reference", "type": "message", "id": "msg_1"}]', 'input'],
  // Whether it refers is for the provider to say, and each would say something else.
  ['responses', '"input": [{"type": "message", "Type": "item_reference", "id": "msg_1"}]', 'input'],
  [
    'responses',
    '"input": [{"type": "item_reference", "id": "msg_1"}, {"content": [{"file_id": "f"}], "role": "user"}]',
    'input[1].content[0].file_id',
  ],
  ['responses', '"input": [{"type": "message", "id": "msg_1", "role": "user", "content": "item_reference"}]', null],
  [
    'responses',
    '"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]',
    'input[0].content[0].file_id',
  ],
  [
    'responses',
    '"input": [{"role": "user", "content": [{"type": "input_image", "File_Id": "file-1"}]}]',
    'input[0].content[0].File_Id',
  ],
  [
    'responses',
    '"input": [{"type": "computer_call_output", "output": {"file_id": "file-1"}}]',
    'input[0].output.file_id',
  ],
  ['responses', '"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]', 'tools[0].vector_store_ids'],
  ['responses', '"tools": [{"type": "code_interpreter", "container": "cntr_1"}]', 'tools[0].container'],
  [
    'responses',
    '"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}]',
    'tools[0].container.file_ids',
  ],
  ['responses', '"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": []}}]', null],
  ['responses', `"tools": [{"type": "function", "name": "f", "parameters": ${schema}}]`, null],
  [
    'chat_completions',
    '"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]',
    'messages[0].content[0].file.file_id',
  ],
  [
    'chat_completions',
    '"messages": [{"role": "user", "content": [{"type": "file", "file": {"\\u0066ile_id": "f"}}]}]',
    'messages[0].content[0].file.file_id',
  ],
  ['chat_completions', '"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]', 'messages[0].audio'],
  ['chat_completions', '"messages": [{"role": "user", "content": "file_id"}]', null],
  ['chat_completions', `"tools": [{"type": "function", "function": {"name": "f", "parameters": ${schema}}}]`, null],
  ['messages', '"container": "container_1"', 'container'],
  ['count_tokens', '"container": {"id": "container_1"}', 'container'],
  [
    'messages',
    '"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}]',
    'messages[0].content[0].source.file_id',
  ],
  [
    'messages',
    '"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "read", "input": {"file_id": "f"}}]}]',
    null,
  ],
  ['messages', `"tools": [{"name": "f", "input_schema": ${schema}}]`, null],
  ['images', '"images": [{"file_id": "file-1"}]', 'images[0].file_id'],
  ['images', '"mask": {"file_id": "file-1"}', 'mask.file_id'],
  ['systemone', '"state": {"file_id": "what is asked about"}', null],
  // Whichever of the two a provider takes.
  ['chat_completions', '"messages": [{"content": [{"file": {"file_id": "f"}, "file": {"x": 1}}]}]', 'body'],
  ['chat_completions', '"messages": [{"content": [{"file": {"file_id": "f", "file_id": null}}]}]', 'body'],
];

describe('items to which a request refers', () => {
  const itemIdsIn = async (members: string): Promise<readonly string[]> => {
    const body = Buffer.from(`{"model": "m", ${members}}`);
    const found = await readStoredObjects(responses, { body, scanned: scanner.scan(body), form: null }, [OWN], workers);
    assert.ok('deployments' in found, JSON.stringify(found));
    assert.deepEqual([found.deployments, found.addsUnknownInput], [[OWN], false]);
    return found.itemIds;
  };

  test('are told by their ids, in a small body and in a big one', async () => {
    for (const [items, ids] of [
      [
        '{"type": "item_reference", "id": "msg_1"}, {"role": "user"}, {"id": "rs_1", "type": "item_reference"}',
        ['msg_1', 'rs_1'],
      ],
      ['{"type": "item\\u005freference", "\\u0069d": "msg_1"}', ['msg_1']],
      ['{"id": "msg_1"}', ['msg_1']],
      ['{"type": null, "ID": "msg_1"}', ['msg_1']],
      ['{"Type": "item_reference", "id": "msg_1", "role": "user"}', ['msg_1']],
      ['{"type": "message", "id": "msg_1"}, {"role": "user", "id": "msg_2"}, "msg_3", [{"id": "msg_4"}]', []],
    ] as const) {
      assert.deepEqual(await itemIdsIn(`"input": [${items}]`), ids, items);
      assert.deepEqual(await itemIdsIn(`"input": [${items}], ${padding}`), ids, items);
    }
  });

  test('may be as many as a long conversation has, and no more', async () => {
    const references = (count: number): string =>
      Array.from({ length: count }, (_, index) => `{"type": "item_reference", "id": "msg_${index}"}`).join();
    assert.equal((await itemIdsIn(`"input": [${references(1_024)}]`)).length, 1_024);
    assert.equal(await refusedField('responses', `{"input": [${references(1_025)}]}`), 'input');
  });
});

describe('objects stored at a provider', () => {
  for (const [api, members, field] of ROWS) {
    test(`${api}: ${members.slice(0, 110)} ${field === null ? 'passes' : 'is refused'}`, async () => {
      assert.equal(await refusedField(api, `{"model": "m", ${members}}`), field);
      assert.equal(await refusedField(api, `{"model": "m", ${members}, ${padding}}`), field, 'a big body');
    });
  }

  test('a big body that may name one is parsed by a worker, and where none has room nothing is sent', async () => {
    const bytes = Buffer.from(`{"messages": [{"content": [{"file_id": "f"}]}], ${padding}}`);
    const request = { body: bytes, scanned: scanner.scan(bytes), form: null };
    const before = handedOver;
    await readStoredObjects(chatCompletions, request, [OWN], workers);
    assert.equal(handedOver, before + 1);
    const full = { run: async () => ({ ok: false, reason: 'queue_full' }) } as unknown as StoredObjectWorkers;
    assert.deepEqual(await readStoredObjects(chatCompletions, request, [OWN], full), {
      kind: 'traffic_capacity_unavailable',
    });
    assert.deepEqual(
      ((await readStoredObjects(chatCompletions, request, [SHARED], full)) as StoredObjects).deployments,
      [SHARED],
    );
  });
});

describe('real clients', {
  skip: sharedAssets() === null ? 'recordings are not beside this repository' : false,
}, () => {
  test('coding agents name none, and are not even looked at', async () => {
    const before = handedOver;
    for (const { name, url, body } of agentRequests()) {
      const api = url.startsWith('/v1/responses')
        ? 'responses'
        : url.startsWith('/v1/chat')
          ? 'chat_completions'
          : 'messages';
      assert.equal(await refusedField(api, JSON.stringify(body)), null, name);
    }
    assert.equal(handedOver, before);
  });

  for (const [format, api] of [
    ['chat', 'chat_completions'],
    ['responses', 'responses'],
    ['messages', 'messages'],
  ] as const) {
    test(`recorded ${format} requests name none`, async () => {
      for (const { name, requestBody } of loadRecordedExchanges(format)) {
        if (requestBody !== null) assert.equal(await refusedField(api, requestBody.toString()), null, name);
      }
    });
  }
});
