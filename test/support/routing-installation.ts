// A whole installation for tests of auto routing: the simulated provider behind a proxy that keeps every request, and
// access to the records.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import { notifyAboutSpools, POSTING_WANTED_CHANNEL } from '../../src/storage/postgres/ledger/open-spools.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { type FakeUpstream, type ReceivedRequest, startFakeUpstream } from './fake-upstream.ts';
import { type Front, startFront } from './front.ts';
import { startTollgate, type Tollgate } from './gateway.ts';
import { type ContractAnswer, callRoute } from './generation-routes.ts';
import { httpCall } from './http-call.ts';
import { silentLog } from './silent-log.ts';
import { type SimulatedProvider, startSimulatedProvider } from './simulated-provider.ts';
import { waitFor } from './waiting.ts';

export const ROUTING_KEYS = {
  /** Prepaid, routes by `default`. */
  acme: `tg-route-acme-${'a'.repeat(32)}`,
  /** Not billed, routes by `default`. */
  free: `tg-route-free-${'b'.repeat(32)}`,
  /** Auto routing is off. */
  off: `tg-route-off-${'c'.repeat(33)}`,
  /** Its policy's candidates are inactive. */
  stranded: `tg-route-stranded-${'d'.repeat(28)}`,
  /** Its classifier is a chat model that tells log-probabilities. */
  lettered: `tg-route-lettered-${'1'.repeat(29)}`,
  /** Its classifier is a server that needs no credential. */
  local: `tg-route-local-${'2'.repeat(32)}`,
  /** May use none of the candidates. */
  denied: `tg-route-denied-${'e'.repeat(30)}`,
} as const;

export const ROUTING_ADMIN_TOKEN = 'tg-admin-Rw8sKq2ZtVb5NxM7jLc4HyPd9GfT3uEa6';

export const ROUTING_PATHS = {
  chat_completions: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  count_tokens: '/v1/messages/count_tokens',
} as const;

/** Pico-dollars per token of each model: expected costs are computed from these. */
export const ROUTING_PRICES = {
  small: { input: 250_000n, output: 2_000_000n },
  large: { input: 1_250_000n, output: 10_000_000n },
} as const;

const ALL = '[chat_completions, responses, messages, count_tokens]';

export const ROUTING_POLICY = `
    classifier: { model: judge-latest, timeout_ms: 10000, confidence_floor: 0.6 }
    tiers:
      - { name: light, description: "Easy.", models: [{ id: sim/small }, { id: sim/claude }, { id: sim/coder, strengths: [code] }, { id: sim/chatter, strengths: [smalltalk] }] }
      - { name: strong, description: "Hard.", models: [{ id: sim/large }] }
    fallback_tier: strong
    kinds: { code: "Code.", prose: "Text.", smalltalk: "Chat." }
    follow_up: { corrections: true, threshold: 0.7 }
    sticky: { min_tokens: 20000 }
    prefer_native_api: true`;

/** The path prefix of the provider without a credential, which has the same address as the other. */
const LOCAL_PREFIX = '/local';

function routingConfiguration(upstreamUrl: string, policy = ROUTING_POLICY): string {
  const model = (id: string, apis: string, price: string, more = '') =>
    `  - { id: sim/${id}, context_length: 200000, max_output_tokens: 16000, max_completion_tokens_cap: ` +
    `4000, ${more} served_by: [{ provider: upstream, model: ${id}-1, apis: ${apis}, price: ${price} }] }`;
  const cheap = '{ input: "0.25", output: "2.00" }';
  const organization = (slug: string, billing: string, routing: string, key: string) => `  - slug: ${slug}
    billing: ${billing}${billing === 'prepaid' ? '\n    opening_credit: "1000.00"' : ''}${routing === '' ? '' : `\n    auto_routing: { policy: ${routing} }`}
    users: [{ email: o@${slug}.test, role: owner }]
    keys: [{ name: only, user: o@${slug}.test, secret: ${key} }]`;
  return `providers:
  - { id: upstream, base_url: ${upstreamUrl}, api_key: sk-provider-canary }
  - { id: local, base_url: ${upstreamUrl}${LOCAL_PREFIX}, auth: none }
models:
${[
  model('small', ALL, cheap),
  model('claude', '[messages, count_tokens]', cheap),
  model('coder', ALL, cheap),
  // A model for one kind of work that is not served on every API.
  model('chatter', '[chat_completions]', cheap),
  model('large', ALL, '{ input: "1.25", output: "10.00" }'),
  model('gone', ALL, cheap, 'active: false,'),
].join('\n')}
  - { id: sim/judge, kind: evaluation, aliases: [judge-latest], served_by: [{ provider: upstream, model: judge-latest, apis: [systemone], price: { input: "0.042" } }] }
  - { id: sim/lettered, kind: evaluation, served_by: [{ provider: local, model: chat-judge, apis: [systemone], via: logprobs, price: { input: "0.15", output: "0.60", request: "0.000001" } }] }
  - { id: sim/local-judge, kind: evaluation, served_by: [{ provider: local, model: judge-latest, apis: [systemone] }] }
routing_policies:
  - name: default${policy}
  - name: lettered${policy.replace('judge-latest', 'sim/lettered')}
  - name: local${policy.replace('judge-latest', 'sim/local-judge')}
  - name: stranded
    classifier: { model: judge-latest }
    tiers: [{ name: only, description: "All.", models: [{ id: sim/gone }] }]
organizations:
${[
  organization('acme', 'prepaid', 'default', ROUTING_KEYS.acme),
  organization('free', 'none', 'default', ROUTING_KEYS.free),
  organization('off', 'prepaid', '', ROUTING_KEYS.off),
  organization('lettered', 'prepaid', 'lettered', ROUTING_KEYS.lettered),
  organization('local', 'none', 'local', ROUTING_KEYS.local),
  organization('stranded', 'prepaid', 'stranded', ROUTING_KEYS.stranded),
  organization('denied', 'prepaid', 'default', ROUTING_KEYS.denied),
].join('\n')}
`;
}

export interface RoutedCall {
  readonly api?: keyof typeof ROUTING_PATHS;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object;
}

export interface RoutedAnswer extends ContractAnswer {
  readonly executionId: string;
  /** The model in the response header; null: there is none. */
  readonly model: string | null;
}

export interface RoutingInstallation {
  readonly tollgate: Front;
  /** null: the installation runs in the test's own process. */
  readonly processes: Tollgate | null;
  readonly postgres: Postgres;
  readonly upstream: FakeUpstream;
  /** The simulated provider behind the proxy, with its own log of what it served. */
  readonly provider: SimulatedProvider;
  /** Sends a request for the virtual model, with an output limit unless the call sets one. */
  ask(call: RoutedCall): Promise<RoutedAnswer>;
  /** The record of an execution, once it is posted. */
  routeOf(executionId: string): Promise<ModelRoute>;
  /** The requests to the classifier, in order. */
  judged(): readonly ReceivedRequest[];
  /** Stops the installation, then reads its facts, which only one process can open. */
  stopAndRead<T>(read: (dataDir: string) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

export interface RoutingOptions {
  readonly gatewayProcesses?: number;
  readonly policy?: string;
  /** Uses this Postgres instead of its own. */
  readonly databaseUrl?: string;
  /** Uses this ClickHouse instead of its own. */
  readonly clickhouseUrl?: string;
  /** For tests that request no report. */
  readonly clickhouse?: 'away';
}

export async function startRoutingInstallation(options: RoutingOptions = {}): Promise<RoutingInstallation> {
  const provider = await startSimulatedProvider();
  const upstream = await startFakeUpstream(async ({ method, path, headers, body }) => {
    const kept = headers.filter(([name]) => !/^(host|connection|content-length|transfer-encoding)$/i.test(name));
    // The simulated provider requires a credential, with any value.
    if (path.startsWith(LOCAL_PREFIX)) kept.push(['authorization', 'Bearer of-the-tap']);
    const answer = await httpCall(provider.url + path.replace(LOCAL_PREFIX, ''), {
      method,
      headers: Object.fromEntries(kept),
      ...(body.length === 0 ? {} : { body }),
    });
    return {
      status: answer.status,
      headers: [['content-type', answer.headers['content-type'] ?? 'application/json']],
      body: answer.body,
    };
  });
  const { tollgate, processes } = await startWith(upstream.url, options);
  const postgres = createPostgres({ url: options.databaseUrl ?? tollgate.postgresUrl, log: silentLog, max: 2 });
  return {
    tollgate,
    processes,
    postgres,
    upstream,
    provider,
    async ask({ api = 'chat_completions', key = ROUTING_KEYS.acme, headers = {}, body }) {
      const limits = api === 'messages' ? { max_tokens: 100 } : {};
      const version = ROUTING_PATHS[api].startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {};
      const answer = await callRoute(tollgate.url + ROUTING_PATHS[api], {
        key,
        headers: { ...version, ...headers },
        body: JSON.stringify({ model: 'service/auto', ...limits, ...body }),
      });
      const model = answer.headers['x-service-routed-model'];
      return {
        ...answer,
        executionId: String(answer.headers['x-service-execution-id'] ?? ''),
        model: typeof model === 'string' ? model : null,
      };
    },
    async routeOf(executionId) {
      const read = async () => {
        const { rows } = await postgres.query<{ model_route: ModelRoute | null; ended: boolean }>(
          'SELECT model_route, ended_at IS NOT NULL AS ended FROM generations WHERE id = $1',
          [executionId],
        );
        // As a look-up does that waits for its record: jobs posts it at once.
        if (rows[0]?.ended !== true) await notifyAboutSpools(postgres, POSTING_WANTED_CHANNEL, '');
        return rows[0];
      };
      const row = await waitFor('the record to be posted', read, (found) => found?.ended === true);
      assert.ok(row?.model_route, 'the request was not routed');
      return row.model_route;
    },
    judged: () => upstream.requests.filter(({ path }) => path === '/v1/systemone'),
    async stopAndRead(read) {
      const behind = async () =>
        (
          await postgres.query<{ n: number }>(
            'SELECT count(*)::integer AS n FROM spool_cursors WHERE facts_offset < posted_offset',
          )
        ).rows[0]?.n;
      await waitFor('all facts to be written', behind, (n) => n === 0, 60_000);
      await tollgate.stop({ keepData: true });
      return read(tollgate.dataDir);
    },
    async stop() {
      await postgres.close();
      await tollgate.stop();
      await upstream.close();
      await provider.stop();
    },
  };
}

/** Runs in the test's own process, unless the options need an installation of its own. */
async function startWith(
  upstreamUrl: string,
  options: RoutingOptions,
): Promise<Pick<RoutingInstallation, 'tollgate' | 'processes'>> {
  const configurationYaml = routingConfiguration(upstreamUrl, options.policy);
  const { databaseUrl, clickhouseUrl, clickhouse, gatewayProcesses = 1 } = options;
  if (clickhouse === 'away' && databaseUrl === undefined && gatewayProcesses === 1)
    return {
      tollgate: await startFront({ configurationYaml, env: { ADMIN_TOKEN: ROUTING_ADMIN_TOKEN } }),
      processes: null,
    };
  const processes = await startTollgate({
    configurationYaml,
    env: {
      // With DATABASE_URL only random secrets are accepted.
      ADMIN_TOKEN: databaseUrl === undefined ? ROUTING_ADMIN_TOKEN : randomBytes(24).toString('base64url'),
      ...(clickhouseUrl === undefined ? {} : { CLICKHOUSE_URL: clickhouseUrl }),
      ...(databaseUrl === undefined
        ? {}
        : { DATABASE_URL: databaseUrl, MASTER_KEY: randomBytes(32).toString('base64') }),
    },
    gatewayProcesses,
    ...(clickhouse === undefined ? {} : { clickhouse }),
  });
  return { tollgate: processes, processes };
}
