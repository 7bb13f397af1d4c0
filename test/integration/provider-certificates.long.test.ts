// Certificates on the way to a provider: authorities that the environment adds (NODE_EXTRA_CA_CERTS), and a client
// certificate that is renewed on disk and taken when gateways are replaced (SIGHUP).

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startTollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { startRawProvider } from '../support/raw-provider.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const pathOf = (name: string): string => fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url));
const LOCALHOST = { cert: pathOf('localhost-certificate'), key: pathOf('localhost-key') };
const OTHER = { cert: pathOf('providers-certificate'), key: pathOf('providers-key') };
const BODY = JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
const REPLY = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\nconnection: close\r\n\r\n`;
const server = { cert: readFileSync(LOCALHOST.cert), key: readFileSync(LOCALHOST.key) };

describe('NODE_EXTRA_CA_CERTS', () => {
  const SCRIPT = `
    import { MetricsRegistry } from '${new URL('../../src/platform/metrics.ts', import.meta.url).href}';
    import { systemClock } from '${new URL('../../src/platform/clock.ts', import.meta.url).href}';
    import { readRequestSettings } from '${new URL('../../src/domain/configuration/schema/request-settings.ts', import.meta.url).href}';
    import { ProviderCalls } from '${new URL('../../src/upstream/providers.ts', import.meta.url).href}';
    import { verifyProvider } from '${new URL('../../src/upstream/verify-provider.ts', import.meta.url).href}';
    const [baseUrl, client, ca] = process.argv.slice(1);
    const calls = new ProviderCalls(new MetricsRegistry(), systemClock, { client });
    const requests = readRequestSettings(ca === '' ? {} : { tls: { ca } });
    const provider = { id: 'p', baseUrl, apiKey: 'k', auth: 'bearer', onDisconnect: 'cancel', requests };
    console.log((await verifyProvider(provider, calls)).result);
    await calls.close();`;

  for (const client of ['own', 'undici']) {
    for (const [what, ca] of [
      ['alone', ''],
      ['beside an authority of the provider', OTHER.cert],
    ] as const) {
      test(`is trusted ${what}, over ${client}`, async () => {
        const provider = await startRawProvider((socket) => socket.end(REPLY + BODY), server);
        const ask = async (extra: string): Promise<string> => {
          const args = ['--input-type=module', '-e', SCRIPT, `https://localhost:${provider.port}`, client, ca];
          const env = { ...process.env, NODE_EXTRA_CA_CERTS: extra };
          return (await promisify(execFile)(process.execPath, args, { env })).stdout.trim();
        };
        assert.deepEqual([await ask(''), await ask(LOCALHOST.cert)], ['unreachable', 'good']);
        await provider.close();
      });
    }
  }
});

describe('a client certificate', () => {
  test('that was renewed on disk is taken when the gateways are replaced', async (context) => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
    const files = { cert: join(directory, 'gateway.pem'), key: join(directory, 'gateway.key') };
    const put = (from: typeof LOCALHOST): void => {
      copyFileSync(from.cert, files.cert);
      copyFileSync(from.key, files.key);
    };
    put(LOCALHOST);
    const known: string[] = [];
    const provider = await startRawProvider(
      (socket) => {
        known.push(String((socket as TLSSocket).getPeerCertificate().subject?.CN));
        socket.end(REPLY + BODY);
      },
      { ...server, requestCert: true, rejectUnauthorized: false },
    );
    context.after(async () => {
      await provider.close();
      rmSync(directory, { recursive: true });
    });
    const tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: JSON.stringify({
        providers: [
          {
            id: 'p',
            base_url: `https://localhost:${provider.port}`,
            api_key: 'sk-1',
            tls: { ca: LOCALHOST.cert, ...files },
          },
        ],
        models: [{ id: 'm', served_by: [{ provider: 'p', model: 'm', apis: ['chat_completions'] }] }],
        organizations: [{ slug: 'acme', billing: 'none', keys: [{ name: 'k', secret: KEYS.acme }] }],
      }),
    });
    try {
      const ask = async (): Promise<string | undefined> => {
        const { status, body } = await httpCall(`${tollgate.url}/v1/chat/completions`, {
          headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'm', messages: [] }),
        });
        assert.equal(status, 200, body.toString());
        return known.at(-1);
      };
      assert.equal(await ask(), 'localhost');
      put(OTHER);
      assert.equal(await ask(), 'localhost');
      process.kill(tollgate.pid, 'SIGHUP');
      await waitFor('the renewed certificate', ask, (name) => name === 'doubles of providers');
    } finally {
      await tollgate.stop();
    }
  });
});
