// The front configurations of deploy/fronts, each with the real program before a real installation: streams, uploads,
// refusals, clients that leave, health. A program that is not on this machine is skipped with a word.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import OpenAI, { toFile } from 'openai';
import { makePng } from '../../src/simulator/image-files.ts';
import { AT_LENGTH_ONLY } from '../support/at-length.ts';
import {
  type ClientInstallation,
  expectFailure,
  LEAVING,
  LEAVING_TOKENS,
  startClientInstallation,
} from '../support/client-installation.ts';
import { findFreePort } from '../support/free-port.ts';
import { httpCall } from '../support/http-call.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const run = promisify(execFile);
const DIRECTORY = fileURLToPath(new URL('../../deploy/fronts/', import.meta.url));
const BODY_LIMIT_BYTES = 2_000_000;

interface Front {
  /** Runs and tells its version where it is installed. */
  readonly probe: readonly [command: string, ...args: string[]];
  readonly file: string;
  /** In the file, where clients come in; in its place, a port of loopback. */
  readonly listens: string;
  readonly listensOn: (port: number) => string;
  /** What a test must say beside the file. */
  readonly preface?: string;
  readonly command: (file: string, directory: string) => readonly [command: string, ...args: string[]];
  /** The options of its tests where it is there. */
  readonly options: { readonly skip?: string };
}

const FRONTS: Readonly<Record<string, Front>> = {
  nginx: {
    probe: ['nginx', '-v'],
    file: 'nginx.conf',
    listens: 'listen 80;',
    listensOn: (port) => `listen 127.0.0.1:${port};`,
    command: (file, directory) => [
      'nginx',
      '-p',
      directory,
      '-c',
      file,
      '-g',
      `daemon off; pid ${join(directory, 'nginx.pid')}; error_log stderr;`,
    ],
    options: {},
  },
  HAProxy: {
    probe: ['haproxy', '-v'],
    file: 'haproxy.cfg',
    listens: 'bind :80\n',
    listensOn: (port) => `bind 127.0.0.1:${port}\n`,
    command: (file) => ['haproxy', '-db', '-f', file],
    options: AT_LENGTH_ONLY,
  },
  Caddy: {
    probe: ['caddy', 'version'],
    file: 'Caddyfile',
    listens: ':80 {',
    listensOn: (port) => `http://127.0.0.1:${port} {`,
    preface: '{\n\tadmin off\n}\n',
    command: (file) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
    options: AT_LENGTH_ONLY,
  },
};

async function isThere([command, ...args]: readonly [string, ...string[]]): Promise<boolean> {
  return run(command, args).then(
    () => true,
    () => false,
  );
}

for (const [name, front] of Object.entries(FRONTS)) {
  const there = await isThere(front.probe);
  const options = there ? front.options : { skip: `${front.probe[0]} is not on this machine` };
  describe(`behind ${name}`, options, () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-front-'));
    let installation: ClientInstallation;
    let program: ChildProcess | null = null;
    let said = '';
    let url = '';

    before(async () => {
      installation = await startClientInstallation({ BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) });
      const port = await findFreePort();
      url = `http://127.0.0.1:${port}`;
      const file = join(directory, front.file);
      writeFileSync(file, configurationOf(front, port, new URL(installation.url).host));
      const [command, ...args] = front.command(file, directory);
      program = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: directory } });
      for (const stream of [program.stdout, program.stderr])
        stream?.on('data', (text: Buffer) => (said += text.toString()));
      await waitFor(
        `${name} to serve`,
        () =>
          httpCall(`${url}/readyz`).then(
            ({ status }) => status,
            () => 0,
          ),
        (status) => status === 200,
        20_000,
      ).catch((fault: unknown) => assert.fail(`${String(fault)}; it said ${said}`));
    });

    after(async () => {
      const running = program;
      if (running !== null && running.exitCode === null) {
        const ended = new Promise((resolve) => running.once('exit', resolve));
        running.kill('SIGTERM');
        await ended;
      }
      await installation?.stop();
      rmSync(directory, { recursive: true });
    });

    const client = (): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEYS.acme, maxRetries: 0 });
    const hello = (content: string) => ({ model: 'sim/small', messages: [{ role: 'user' as const, content }] });
    const authorization = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };

    test('health is told', async () => {
      for (const path of ['/healthz', '/readyz']) assert.equal((await httpCall(`${url}${path}`)).status, 200, path);
    });

    test('requests come through one after the other and at once', async () => {
      const openai = client();
      const ask = async () =>
        assert.equal((await openai.chat.completions.create(hello('Hello'))).choices[0]?.finish_reason, 'stop');
      for (let round = 0; round < 20; round += 1) await ask();
      await Promise.all(Array.from({ length: 20 }, ask));
    });

    test('a stream comes piece by piece', async () => {
      const before = installation.provider.ends().length;
      const stream = await client().chat.completions.create({
        ...hello('Slowly [[sim: tokens=60 delay_ms=50]]'),
        stream: true,
      });
      let endsAtFirst: number | null = null;
      let pieces = 0;
      for await (const chunk of stream) {
        endsAtFirst ??= installation.provider.ends().length;
        pieces += chunk.choices.length;
      }
      assert.equal(endsAtFirst, before, 'the first piece came before the provider was done');
      assert.ok(pieces > 50, `${pieces}`);
    });

    test('a reply tells its execution', async () => {
      const { headers } = await httpCall(`${url}/v1/chat/completions`, {
        headers: authorization,
        body: JSON.stringify(hello('Hello')),
      });
      assert.match(String(headers['x-service-execution-id']), /^[0-9a-f-]{36}$/);
    });

    test('uploads come whole, with a length and in chunks', async () => {
      const bytes = makePng(3, 900_000);
      const path = join(directory, 'large.png');
      writeFileSync(path, bytes);
      for (const image of [await toFile(bytes, 'large.png', { type: 'image/png' }), createReadStream(path)]) {
        const answer = await client().images.edit({ model: 'sim/image', prompt: 'Make it blue', image });
        assert.equal(answer.data?.length, 1);
        const part = (await installation.provider.lastEnd()).parts?.find(({ name: field }) => field === 'image');
        assert.equal(part?.sha256, createHash('sha256').update(bytes).digest('hex'));
      }
    });

    for (const isChunked of [false, true]) {
      test(`a body over the limit is Tollgate's 413, ${isChunked ? 'in chunks' : 'with a length'}`, async () => {
        const body = JSON.stringify(hello('x'.repeat(BODY_LIMIT_BYTES)));
        const answer = await httpCall(`${url}/v1/chat/completions`, { headers: authorization, body, isChunked });
        assert.equal(answer.status, 413);
        assert.ok(answer.body.includes(`limit of ${BODY_LIMIT_BYTES} bytes`), answer.body.toString());
      });
    }

    test('a refusal is as it was written', async () => {
      const failure = await expectFailure(client().chat.completions.create({ ...hello('Hello'), model: 'sim/none' }));
      assert.ok(failure instanceof OpenAI.NotFoundError);
      assert.equal(failure.code, 'model_not_found');
    });

    test('a client that leaves leaves the provider, in a stream and before a reply', async () => {
      await installation.leaveStream(async () => {
        const controller = new AbortController();
        const stream = await client().chat.completions.create(
          { ...hello(LEAVING), max_tokens: LEAVING_TOKENS, stream: true },
          { signal: controller.signal },
        );
        let seen = 0;
        for await (const chunk of stream) {
          seen += chunk.choices.length;
          if (seen === 5) controller.abort();
        }
        return seen;
      });
      await installation.abortCall((signal) =>
        client().chat.completions.create({ ...hello(LEAVING), max_tokens: LEAVING_TOKENS }, { signal }),
      );
    });
  });
}

/** The file as it stands in the repository, but for the two addresses. */
function configurationOf({ file, listens, listensOn, preface = '' }: Front, port: number, gateway: string): string {
  let text = readFileSync(join(DIRECTORY, file), 'utf8');
  for (const [from, to] of [
    [listens, listensOn(port)],
    ['127.0.0.1:8080', gateway],
  ] as const) {
    assert.equal(text.split(from).length, 2, `${file} has ${JSON.stringify(from)} once`);
    text = text.replace(from, to);
  }
  return preface + text;
}
