// Counts the database calls about leases of four real gateway processes while they refuse: for want of credit, of
// places for open requests, and of requests a minute, at 40 and at 400 requests a second. `node
// benchmarks/refused-calls.ts` (two minutes). The model of lease-calls.ts has more processes.

import { Agent, request as httpRequest } from 'node:http';
import { startTollgate } from '../test/support/gateway.ts';
import {
  chatBody,
  limitedConfiguration,
  limitedKey,
  startExactProvider,
} from '../test/support/limited-organizations.ts';
import { readMetrics } from '../test/support/metric-values.ts';
import { pause } from '../test/support/waiting.ts';
import { median } from './harness/median.ts';

const GATEWAY_PROCESSES = 4;
const SECONDS = 15;
const RATES = [40, 400];
/** Connections find their processes by chance, so many reach them all. */
const CONNECTIONS = 128;
/** How long the provider has each request open. */
const OPEN_MS = 1_000;
const BODY = chatBody(1);
const ORGANIZATIONS = [
  { slug: 'empty', credit: '0', kind: 'credit', words: 'an empty wallet' },
  {
    slug: 'places',
    credit: null,
    limits: ['{ kind: concurrent_requests, limit: 20 }'],
    kind: 'concurrent_requests',
    words: '20 open requests of a second',
  },
  {
    slug: 'rate',
    credit: null,
    limits: ['{ kind: requests_per_minute, limit: 300 }'],
    kind: 'requests_per_minute',
    words: '300 requests a minute',
  },
];

interface Answer {
  readonly status: number;
  readonly tookMs: number;
}

class Load {
  private readonly agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 2 }));
  private readonly url: string;
  private readonly headers: Readonly<Record<string, string>>;

  constructor(url: string, slug: string) {
    this.url = `${url}/v1/chat/completions`;
    this.headers = {
      authorization: `Bearer ${limitedKey(slug)}`,
      'content-type': 'application/json',
      'content-length': String(BODY.length),
    };
  }

  /** Sends by a schedule that waits for nobody. Resolves with all answers. */
  async run(rate: number): Promise<readonly Answer[]> {
    const beganMs = performance.now();
    const sent: Promise<Answer>[] = [];
    for (let passedMs = 0; passedMs < SECONDS * 1_000; passedMs = performance.now() - beganMs) {
      while (sent.length < (passedMs / 1_000) * rate) sent.push(this.ask(sent.length));
      await pause(5);
    }
    return Promise.all(sent);
  }

  private ask(index: number): Promise<Answer> {
    const agent = this.agents[index % this.agents.length];
    const sentAtMs = performance.now();
    return new Promise((resolve, reject) => {
      const request = httpRequest(this.url, { method: 'POST', agent, headers: this.headers }, (response) => {
        response
          .on('end', () => resolve({ status: response.statusCode ?? 0, tookMs: performance.now() - sentAtMs }))
          .resume();
      });
      request.on('error', reject).end(BODY);
    });
  }

  close(): void {
    for (const agent of this.agents) agent.destroy();
  }
}

const provider = await startExactProvider(() => pause(OPEN_MS));
const tollgate = await startTollgate({
  configurationYaml: limitedConfiguration(provider.url, ORGANIZATIONS),
  gatewayProcesses: GATEWAY_PROCESSES,
});
try {
  console.log(
    '| short of | requests/s | served | refused | calls: take · give back · revoke | refused after, median ms |',
  );
  console.log('|---|---|---|---|---|---|');
  for (const { slug, kind, words } of ORGANIZATIONS) {
    const load = new Load(tollgate.url, slug);
    for (const rate of RATES) {
      const before = await readCalls(kind);
      const answers = await load.run(rate);
      const after = await readCalls(kind);
      const refused = answers.filter(({ status }) => status !== 200);
      const calls = after.map((count, index) => count - (before[index] ?? 0));
      const cells = [words, rate, answers.length - refused.length, refused.length, calls.join(' · ')];
      console.log(`| ${cells.join(' | ')} | ${median(refused.map(({ tookMs }) => tookMs)).toFixed(0)} |`);
    }
    load.close();
  }
} finally {
  await tollgate.stop();
  await provider.close();
}

/** What all gateways have called since they began. */
async function readCalls(kind: string): Promise<readonly number[]> {
  const valueOf = await readMetrics(tollgate.adminUrl);
  return ['take', 'give_back', 'revoke'].map((call) => {
    const value = valueOf(`tollgate_lease_calls_total{call="${call}",kind="${kind}"}`);
    return Number.isNaN(value) ? 0 : value;
  });
}
