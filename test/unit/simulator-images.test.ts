// The simulated provider's Images API: what the official client reads, and whether files arrive as they were sent.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { makePng, wholeImageKind } from '../../src/simulator/image-files.ts';
import { readMultipart } from '../../src/simulator/multipart.ts';
import { httpCall } from '../support/http-call.ts';
import { loadOpenapiSchemas } from '../support/openapi-schema.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';

describe('the simulated Images API', () => {
  let provider: SimulatedProvider;
  let client: OpenAI;
  const schemas = loadOpenapiSchemas();
  const [first, second, mask] = [makePng(1, 0), makePng(2, 70_000), makePng(3, 0)];
  const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

  before(async () => {
    provider = await startSimulatedProvider();
    client = new OpenAI({ baseURL: `${provider.url}/v1`, apiKey: 'any', maxRetries: 0 });
  });

  after(() => provider?.stop());

  test('paints as many images as asked, with usage', async () => {
    const answer = await client.images.generate({
      model: 'sim-image',
      prompt: 'A cat',
      n: 3,
      quality: 'low',
      size: '1024x1024',
    });
    assert.equal(answer.data?.length, 3);
    for (const { b64_json: image } of answer.data ?? [])
      assert.equal(wholeImageKind(Buffer.from(image ?? '', 'base64')), 'png');
    assert.deepEqual(answer.usage?.input_tokens_details, { image_tokens: 0, text_tokens: 2 });
    assert.deepEqual([answer.usage?.output_tokens, answer.usage?.total_tokens], [816, 818]);
    if (schemas !== null) assert.deepEqual(schemas.problems('ImagesResponse', answer), []);
    assert.equal((await provider.lastEnd()).images, 3);
    const large = await client.images.generate({ model: 'sim-image', prompt: 'A large cat [[sim: bytes=100000]]' });
    assert.ok((large.data?.[0]?.b64_json?.length ?? 0) > 100_000);
  });

  test('streams partial images and the whole one', async () => {
    const types: string[] = [];
    for await (const event of await client.images.generate({
      model: 'sim-image',
      prompt: 'A cat',
      stream: true,
      partial_images: 2,
    })) {
      types.push(event.type);
      if (schemas !== null) assert.deepEqual(schemas.problems('ImageGenStreamEvent', event), []);
    }
    assert.deepEqual(types, [
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ]);
    assert.equal((await provider.lastEnd()).usageSent, true);
  });

  test('edits several files with a mask, and logs each as it arrived', async () => {
    const files = [
      await toFile(first, 'first.png', { type: 'image/png' }),
      await toFile(second, 'second.png', { type: 'image/png' }),
    ];
    const answer = await client.images.edit({
      model: 'sim-image',
      prompt: 'Make it green',
      image: files,
      mask: await toFile(mask, 'mask.png', { type: 'image/png' }),
      n: 2,
    });
    assert.equal(answer.data?.length, 2);
    assert.ok((answer.usage?.input_tokens_details.image_tokens ?? 0) > 270);
    const end = await provider.lastEnd();
    assert.equal(end.api, 'image_edits');
    assert.deepEqual(
      end.parts
        ?.flatMap(({ name, filename, contentType, sha256: sum }) =>
          filename === null ? [] : [[name, filename, contentType, sum]],
        )
        .sort(),
      [
        ['image[]', 'first.png', 'image/png', sha256(first)],
        ['image[]', 'second.png', 'image/png', sha256(second)],
        ['mask', 'mask.png', 'image/png', sha256(mask)],
      ],
    );
  });

  test('takes the JSON form that real clients send', async () => {
    const ask = (image: string) =>
      httpCall(`${provider.url}/v1/images/edits`, {
        headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'sim-image',
          prompt: 'turn the logo to green',
          n: 1,
          images: [{ image_url: image }],
        }),
      });
    assert.equal((await ask(`data:image/png;base64,${first.toString('base64')}`)).status, 200);
    assert.deepEqual(
      (await provider.lastEnd()).parts?.map(({ name, sha256: sum }) => [name, sum]),
      [['images[0]', sha256(first)]],
    );
    const refused = await ask('https://example.com/logotype.svg');
    assert.deepEqual(
      [refused.status, JSON.parse(refused.body.toString('utf8'))],
      [
        400,
        {
          error: {
            message: 'Invalid image data.',
            type: 'image_generation_user_error',
            param: 'images[0].image_url',
            code: 'invalid_image_file',
          },
        },
      ],
    );
  });

  test('notices a file that was changed on the way', async () => {
    const changed = Buffer.from(second);
    changed[40_000] = 0;
    await assert.rejects(
      client.images.edit({
        model: 'sim-image',
        prompt: 'x',
        image: await toFile(changed, 'x.png', { type: 'image/png' }),
      }),
      {
        status: 400,
        code: 'invalid_image_file',
      },
    );
    await assert.rejects(
      client.images.edit({ model: 'sim-image', prompt: 'x', image: await toFile(first.subarray(0, -1), 'x.png') }),
      { status: 400 },
    );
    const whole = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n';
    assert.equal(readMultipart(Buffer.from(whole), 'multipart/form-data; boundary=b')?.[0]?.content.toString(), 'm');
    for (let length = 0; length < whole.length - 2; length += 1)
      assert.equal(
        readMultipart(Buffer.from(whole.slice(0, length)), 'multipart/form-data; boundary=b'),
        null,
        `${length} bytes`,
      );
  });

  test('refuses what OpenAI refuses', async () => {
    const generate = (fields: object) => client.images.generate({ model: 'sim-image', prompt: 'x', ...fields });
    await assert.rejects(generate({ n: 11 }), { status: 400, code: 'integer_above_max_value' });
    await assert.rejects(generate({ n: 0 }), { status: 400, param: 'n' });
    await assert.rejects(generate({ n: '2' }), { status: 400, param: 'n' });
    await assert.rejects(generate({ response_format: 'url' }), { status: 400, code: 'unknown_parameter' });
    await assert.rejects(generate({ prompt: undefined }), { status: 400, param: 'prompt' });
    await assert.rejects(generate({ prompt: '[[sim: status=500]]' }), { status: 500 });
    assert.ok((await generate({ model: 'dall-e-3', response_format: 'url' })).data?.[0]?.url);
  });
});
