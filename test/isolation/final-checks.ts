// Checks what must be true once a run is over: nothing is open any more, and every tenant who looks up or lists
// generations and responses finds only its own.

import { SeededRandom } from '../simulation/seeded-random.ts';
import { GAUGES } from '../support/gateway-gauges.ts';
import { httpCall } from '../support/http-call.ts';
import { readMetrics } from '../support/metric-values.ts';
import { waitFor } from '../support/waiting.ts';
import { askAgain } from './ask-again.ts';
import { ClientConnection } from './client.ts';
import type { Load } from './load.ts';
import { findMarks, markOf } from './marks.ts';
import { buildExchange, type Exchange } from './plan.ts';
import type { Watch } from './watch.ts';
import { warmKey } from './world.ts';

const LOOKED_UP = 5;
/** The first number of these exchanges. */
const FIRST_INDEX = 70_000_000_000;
const QUIET_TIMEOUT_MS = 90_000;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export interface FinalParts {
  readonly url: string;
  readonly adminUrl: string;
  readonly load: Load;
  readonly watch: Watch;
  /** The tenants that took part. */
  readonly tenants: readonly number[];
}

export async function checkQuiet({ adminUrl, watch }: Pick<FinalParts, 'adminUrl' | 'watch'>): Promise<void> {
  const read = async (): Promise<string> => {
    const valueOf = await readMetrics(adminUrl);
    return GAUGES.filter((name) => valueOf(name) !== 0)
      .map((name) => `${name} ${valueOf(name)}`)
      .join(', ');
  };
  await waitFor('nothing to be under way', read, (left) => left === '', QUIET_TIMEOUT_MS).catch((fault: Error) =>
    watch.violation('left over', fault.message),
  );
}

export async function checkLookUps(parts: FinalParts): Promise<void> {
  // The tenants are checked in parallel: each check waits for the database or for reports, and none depends on another.
  await Promise.all(
    parts.tenants.flatMap((tenant) => [
      checkGenerations(parts, tenant),
      checkListing(parts, tenant),
      checkForeignResponses(parts, tenant),
    ]),
  );
}

function other({ tenants }: FinalParts, tenant: number): number {
  return tenants[(tenants.indexOf(tenant) + 1) % tenants.length] ?? 0;
}

/** Repeats a request after 503: a missing record may not be posted yet, and on a busy machine posting is slow. */
async function get({ url }: FinalParts, path: string, tenant: number): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${warmKey(tenant, false)}` };
  const { status, body } = await waitFor(
    `an answer to ${path}`,
    () => askAgain(() => httpCall(url + path, { headers })),
    (answer) => answer.status !== 503,
    QUIET_TIMEOUT_MS,
  );
  return { status, text: body.toString('latin1') };
}

async function checkGenerations(parts: FinalParts, tenant: number): Promise<void> {
  const { watch, load } = parts;
  for (const { index, executionId } of (load.executions.get(tenant) ?? []).slice(-LOOKED_UP)) {
    const byLabel = `/v1/generations?client_request_id=${markOf(tenant, 'c', index)}`;
    const byId = `/v1/generation?id=${executionId}`;
    const own = await waitFor(
      'a generation to be recorded',
      () => get(parts, byLabel, tenant),
      ({ text }) => text.includes(executionId),
    ).catch(() => null);
    if (own === null)
      watch.violation('left over', `tenant ${tenant} does not find its execution ${executionId} (exchange ${index})`);
    const foreign = await get(parts, byLabel, other(parts, tenant));
    if (UUID.test(foreign.text))
      watch.violation(
        'foreign mark',
        `tenant ${other(parts, tenant)} finds by ${byLabel}: ${foreign.text.slice(0, 200)}`,
      );
    UUID.lastIndex = 0;
    const [ownById, foreignById] = [await get(parts, byId, tenant), await get(parts, byId, other(parts, tenant))];
    if (ownById.status !== 200 || foreignById.status !== 404)
      watch.violation('foreign mark', `${byId}: ${ownById.status} to its own, ${foreignById.status} to another`);
  }
}

/** Checks a listing of what is in the facts by now. */
async function checkListing(parts: FinalParts, tenant: number): Promise<void> {
  const { watch, load } = parts;
  const { status, text } = await get(parts, '/v1/usage/me/requests', tenant);
  watch.count(watch.answers, `listing ${status}`);
  for (const id of text.match(UUID) ?? []) {
    const owner = load.ownerOf.get(id);
    if (owner !== undefined && owner !== tenant)
      watch.violation('foreign mark', `tenant ${tenant} lists execution ${id} of tenant ${owner}`);
  }
  for (const mark of findMarks(text))
    if (mark.tenant !== tenant) watch.violation('foreign mark', `tenant ${tenant} lists ${JSON.stringify(mark)}`);
}

/** Another tenant's response can be neither read nor continued, and no provider is called for it. */
async function checkForeignResponses(parts: FinalParts, tenant: number): Promise<void> {
  const { url, load, watch } = parts;
  const random = new SeededRandom(tenant);
  const savedId = load.saved.get(other(parts, tenant))?.at(-1);
  if (savedId === undefined) return;
  const ask = async (kind: 'saved' | 'continued', place: number): Promise<void> => {
    const exchange: Exchange = buildExchange(
      {
        index: FIRST_INDEX + tenant * 10 + place,
        tenant,
        kind,
        key: warmKey(tenant, false),
        bytes: 300,
        providerSteps: [],
        client: 'stays',
        isStream: false,
        savedId,
        reply: { bytes: 400, framing: 'length', pieces: 1 },
      },
      random,
    );
    exchange.forbidden = `it names a response of tenant ${other(parts, tenant)}`;
    load.open.set(exchange.index, exchange);
    const connection = new ClientConnection(Number(new URL(url).port), watch, () => undefined);
    watch.count(watch.answers, `foreign response ${await connection.run([exchange])}`);
    connection.close();
  };
  await Promise.all((['saved', 'continued'] as const).map(ask));
}
