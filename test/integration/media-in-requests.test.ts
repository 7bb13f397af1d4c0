// Nothing of an uploaded file comes into a request (spec 4.7): a provider gets ids and addresses as the client wrote
// them, byte for byte, whether or not the organization has such a file.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiName } from '../../src/domain/models/apis.ts';
import { type FakeUpstream, ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';

const MODEL = 'sim/sees';
const PROVIDER_MODEL = 'sees-1';
const BOUNDARY = 'a-boundary-of-a-test';
const MARK = 'what-is-in-the-file-and-nowhere-else';
const APIS: readonly ApiName[] = ['chat_completions', 'messages', 'responses'];

describe('an uploaded file that a request names', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;

  before(async () => {
    upstream = await startFakeUpstream(() => ONE_TOKEN_REPLY);
    tollgate = await startFront({
      configurationYaml: testConfiguration({
        upstreamUrl: `${upstream.url}/v1`,
        models: [{ id: MODEL, providerModel: PROVIDER_MODEL, outputCap: 16_384, apis: APIS }],
      }),
      env: { MEDIA: 'disk' },
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  test('stays named, in each place where an API has files', async () => {
    const uploaded = await httpCall(`${tollgate.url}/v1/media/upload`, {
      headers: {
        authorization: `Bearer ${KEYS.free}`,
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      },
      body: writeForm(BOUNDARY, [{ name: 'file', filename: 'a', value: MARK }]),
    });
    assert.equal(uploaded.status, 200, uploaded.body.toString());
    const { id, url } = JSON.parse(uploaded.body.toString()) as { id: string; url: string };
    for (const [path, body] of requestsThatName(id, url)) {
      const seen = upstream.requests.length;
      await httpCall(`${tollgate.url}${path}`, {
        headers: { authorization: `Bearer ${KEYS.free}`, 'content-type': 'application/json' },
        body,
        isOffFormat: true,
      });
      const [received, ...others] = upstream.requests.slice(seen);
      assert.equal(received?.body.toString(), body.replace(MODEL, PROVIDER_MODEL), path);
      assert.deepEqual(others, []);
    }
    assert.ok(upstream.requests.every(({ body }) => !body.includes(MARK)));
  });
});

function requestsThatName(id: string, url: string): readonly (readonly [string, string])[] {
  const head = `{ "model" : "${MODEL}",  `;
  const chat = (part: string) => `${head}"max_tokens":5,"messages":[{"role":"user","content":[${part}]}] }`;
  const input = (part: string) => `${head}"max_output_tokens":5,"input":[{"role":"user","content":[${part}]}] }`;
  return [
    ['/v1/chat/completions', chat(`{"type":"text","text":"see ${id} and ${url}"}`)],
    ['/v1/chat/completions', chat(`{"type":"image_url","image_url":{"url":"${url}"}}`)],
    ['/v1/messages', chat(`{"type":"image","source":{"type":"url","url":"${url}"}}`)],
    ['/v1/responses', input(`{"type":"input_image","image_url":"${url}"}`)],
    ['/v1/responses', input(`{"type":"input_file","file_url":"${url}"},{"type":"input_text","text":"${id}"}`)],
  ];
}
