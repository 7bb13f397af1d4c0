// Limits over four gateway processes under unequal load: never above, and hardly below; money that lies in another
// process is not refused.

import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { howMany } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import type { FakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { ADMIN_TOKEN, ask, organizationIdOf } from '../support/identity-world.ts';
import {
  chatBody,
  limitedConfiguration,
  limitedKey,
  PICO_PER_OUTPUT_TOKEN,
  startExactProvider,
  UNLIMITED_TOKENS,
  unlimitedChatBody,
} from '../support/limited-organizations.ts';
import { silentLog } from '../support/silent-log.ts';
import { decimalOfPico } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';

const GATEWAY_PROCESSES = 4;
const PLACES = 20;
const REQUESTS_PER_MINUTE = 300;
const BUDGET_AFFORDS = 13;
/** How many output tokens a request asks for tells the provider whose it is. */
const TOKENS = { places: 2, rate: 3, budget: 50 } as const;
/** What two requests that were admitted 60 seconds apart may come closer on their way to the provider. */
const TRANSIT_MS = 500;
const WINDOW_MS = 60_000 - TRANSIT_MS;
/** At each, the places move to other processes. */
const ROUNDS_OF_PLACES = howMany({ short: 6, long: 15 });
/** Several times what uses all of the first minute, at length until the minute has gone by and its requests with it. */
const RATE_LOAD_MS = howMany({ short: 10_000, long: 80_000 });

/** A client with a connection of its own, which stays with one process. */
class Client {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });
  private readonly url: string;
  private readonly slug: string;

  constructor(url: string, slug: string) {
    this.url = `${url}/v1/chat/completions`;
    this.slug = slug;
  }

  chat(outputTokens: number, body = chatBody(outputTokens)): Promise<number> {
    const headers = {
      authorization: `Bearer ${limitedKey(this.slug)}`,
      'content-type': 'application/json',
      'content-length': String(body.length),
    };
    return new Promise((resolve, reject) => {
      const request = httpRequest(this.url, { method: 'POST', agent: this.agent, headers }, (response) => {
        response.on('end', () => resolve(response.statusCode ?? 0)).resume();
      });
      request.on('error', reject).end(body);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

/** Requests that the provider has open, and keeps open until it may answer them. */
class OpenRequests {
  count = 0;
  highest = 0;
  private mayAnswer = Promise.withResolvers<void>();

  async stayOpen(): Promise<void> {
    this.count += 1;
    this.highest = Math.max(this.highest, this.count);
    await this.mayAnswer.promise;
    this.count -= 1;
  }

  answerAll(): void {
    this.mayAnswer.resolve();
    this.mayAnswer = Promise.withResolvers<void>();
  }
}

describe('limits over several processes', { concurrency: true, timeout: 400_000 }, () => {
  const places = new OpenRequests();
  const ratedAtMs: number[] = [];
  let provider: FakeUpstream;
  let tollgate: Tollgate;

  before(async () => {
    provider = await startExactProvider(async (outputTokens) => {
      if (outputTokens === TOKENS.rate) ratedAtMs.push(performance.now());
      if (outputTokens === TOKENS.places) await places.stayOpen();
    });
    const budget = decimalOfPico(PICO_PER_OUTPUT_TOKEN * BigInt(TOKENS.budget * BUDGET_AFFORDS));
    const unlimitedBudget = decimalOfPico(
      PICO_PER_OUTPUT_TOKEN * BigInt(UNLIMITED_TOKENS + TOKENS.budget * (BUDGET_AFFORDS - 1)),
    );
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: limitedConfiguration(provider.url, [
        { slug: 'places', credit: null, limits: [`{ kind: concurrent_requests, limit: ${PLACES} }`] },
        { slug: 'rate', credit: null, limits: [`{ kind: requests_per_minute, limit: ${REQUESTS_PER_MINUTE} }`] },
        { slug: 'budget', credit: null, limits: [`{ kind: budget, window: month, limit: "${budget}" }`] },
        {
          slug: 'unlimited',
          credit: null,
          limits: [`{ kind: budget, window: month, limit: "${unlimitedBudget}" }`],
        },
        { slug: 'thin', credit: decimalOfPico(PICO_PER_OUTPUT_TOKEN * 10_000n) },
        { slug: 'frozen', credit: '1000' },
      ]),
      gatewayProcesses: GATEWAY_PROCESSES,
      env: { ADMIN_TOKEN },
    });
  });
  after(async () => {
    await tollgate?.stop();
    await provider?.close();
  });

  const withClients = async <T>(
    slug: string,
    count: number,
    work: (clients: readonly Client[]) => Promise<T>,
  ): Promise<T> => {
    const clients = Array.from({ length: count }, () => new Client(tollgate.url, slug));
    try {
      return await work(clients);
    } finally {
      for (const client of clients) client.close();
    }
  };

  /** Until what it afforded is posted to the budget of an organization, and nothing is lent of it. */
  const untilSpent = async (slug: string): Promise<void> => {
    const database = createPostgres({ url: tollgate.postgresUrl, log: silentLog, max: 1 });
    try {
      await waitFor(
        'what was used to be posted to the budget, and the rest to be back',
        async () =>
          (
            await database.query(
              `SELECT used::text, leased::text FROM limit_pools JOIN usage_limits
                ON limit_id = usage_limits.id AND kind = 'budget' JOIN organizations ON organizations.id =
                usage_limits.organization_id AND slug = $1`,
              [slug],
            )
          ).rows,
        (pools) =>
          pools.length === 1 &&
          pools[0]?.['used'] === String(PICO_PER_OUTPUT_TOKEN * BigInt(TOKENS.budget * BUDGET_AFFORDS)) &&
          pools[0]['leased'] === '0',
      );
    } finally {
      await database.close();
    }
  };

  test('concurrent_requests: all places can be taken, wherever they were last, and never one more', async () => {
    const random = seededRandom(2);
    const untilServed = async (client: Client): Promise<void> => {
      while ((await client.chat(TOKENS.places)) !== 200) await pause(20 * random());
    };
    await withClients('places', 3 * PLACES, async (clients) => {
      for (let round = 0; round < ROUNDS_OF_PLACES; round += 1) {
        // Others each time, so that the places have to change their processes.
        const shuffled = clients
          .map((client) => ({ client, at: random() }))
          .sort((first, second) => first.at - second.at);
        const served = Promise.all(shuffled.slice(0, PLACES).map(({ client }) => untilServed(client)));
        await waitFor(
          'all places to be taken',
          () => places.count,
          (count) => count === PLACES,
        );
        const others = await Promise.all(shuffled.slice(PLACES).map(({ client }) => client.chat(TOKENS.places)));
        assert.deepEqual(new Set(others), new Set([429]));
        places.answerAll();
        await served;
      }
    });
    assert.equal(places.highest, PLACES);
  });

  test(
    'requests_per_minute: never above in any minute, at least 95% used in the first and, at length, afterwards, ' +
      'however unequal the processes',
    async () => {
      const random = seededRandom(1);
      const startedMs = performance.now();
      // A machine may be too busy to use the minute up as soon as that.
      const goesOn = (sinceMs: number): boolean =>
        sinceMs < RATE_LOAD_MS || (sinceMs < 60_000 && ratedAtMs.length < 0.95 * REQUESTS_PER_MINUTE);
      await withClients('rate', 16, async (clients) => {
        await Promise.all(
          clients.map(async (client, index) => {
            while (goesOn(performance.now() - startedMs)) {
              const status = await client.chat(TOKENS.rate);
              assert.ok(status === 200 || status === 429, `status ${status}`);
              await pause((index === 0 ? 20 : 500) * (0.5 + random()));
            }
          }),
        );
      });
      for (const [index, atMs] of ratedAtMs.entries()) {
        const next = ratedAtMs[index + REQUESTS_PER_MINUTE];
        assert.ok(
          next === undefined || next - atMs >= WINDOW_MS,
          `more than ${REQUESTS_PER_MINUTE} in ${WINDOW_MS} ms, from ${Math.round(atMs - startedMs)} on`,
        );
      }
      const inFirst = ratedAtMs.filter((atMs) => atMs - startedMs < 60_000).length;
      assert.ok(inFirst >= 0.95 * REQUESTS_PER_MINUTE, `${inFirst} in the first minute`);
      const later = ratedAtMs.length - inFirst;
      if (RATE_LOAD_MS > 60_000)
        assert.ok(later >= 0.95 * REQUESTS_PER_MINUTE, `${later} more once the first ones were a minute old`);
    },
  );

  test('a budget that affords exactly 13 of 200 parallel requests answers exactly 13', async () => {
    const statuses = await withClients('budget', 200, (clients) =>
      Promise.all(clients.map((client) => client.chat(TOKENS.budget))),
    );
    assert.equal(statuses.filter((status) => status === 200).length, BUDGET_AFFORDS);
    assert.equal(statuses.filter((status) => status === 429).length, 200 - BUDGET_AFFORDS);
    await untilSpent('budget');
  });

  test('a budget of who is not billed serves requests without a limit to the last one that it has room for', async () => {
    await withClients('unlimited', 12, async (clients) => {
      const ask = (at: number) => clients[at % clients.length]?.chat(0, unlimitedChatBody(TOKENS.budget));
      // One after the other, each on another connection: what the one before did not use is room for the next.
      for (let at = 0; at < BUDGET_AFFORDS; at += 1) assert.equal(await ask(at), 200, `request ${at}`);
      for (const at of clients.keys()) assert.equal(await ask(at), 429);
    });
    await untilSpent('unlimited');
  });

  test('money that other processes have leased is not refused', async () => {
    let left = 10_000;
    await withClients('thin', 12, async (clients) => {
      // Every process leases some.
      for (const client of clients) assert.equal(await client.chat(1), 200);
      left -= clients.length;
      // Each takes half of what is left, wherever that lies, and the last one all of it.
      for (const client of clients.slice(1)) {
        const tokens = Math.floor(left / 2);
        assert.equal(await client.chat(tokens), 200, `${tokens} of ${left}`);
        left -= tokens;
      }
      assert.equal(await clients[0]?.chat(left + 1), 402);
      assert.equal(await clients[0]?.chat(left), 200, `the last ${left}`);
    });
  });

  test('a frozen wallet is refused by every process, also where its money was at hand', async () => {
    const path = `/v1/admin/organizations/${await organizationIdOf(tollgate.url, ADMIN_TOKEN, 'frozen')}`;
    await withClients('frozen', 24, async (clients) => {
      const askAll = () => Promise.all(clients.map((client) => client.chat(1)));
      assert.deepEqual(new Set(await askAll()), new Set([200]));
      await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', path, { frozen: true });
      await waitFor('all to be refused', askAll, (statuses) => statuses.every((status) => status === 403));
      for (let round = 0; round < 10; round += 1) assert.deepEqual(new Set(await askAll()), new Set([403]));
      await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', path, { frozen: false });
      await waitFor('all to be served', askAll, (statuses) => statuses.every((status) => status === 200));
    });
  });
});
