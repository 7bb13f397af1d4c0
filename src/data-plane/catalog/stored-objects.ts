// Whether a request names objects that its provider stores, and who may then serve it: nobody here knows whose they are, so only providers whose account
// the operator shares with all organizations (`stored_objects: shared`).

import type { Refusal } from '../../domain/refusals/refusal.ts';
import { findStoredObjects, type StoredObjectsFound } from '../../domain/stored-objects/find-stored-objects.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { ScannedBody } from '../dialects/read-request.ts';
import type { ControlKey } from '../dialects/request-scan/scanned-keys.ts';
import type { Offer } from './serving-catalog.ts';

/** The part of the worker pool that is needed here. */
export type StoredObjectWorkers = Pick<WorkerPool<'find-stored-objects'>, 'run'>;

/** As of a typed question (systemone-request.ts): parsing less than this costs no more than handing it over. */
const INLINE_BYTES_MAX = 16_384;
const DEADLINE_MS = 2_000;

/** Fields of the outermost object that name one, by API; in the image APIs a prompt is text. */
const NAMING_FIELDS: Readonly<Partial<Record<string, readonly ControlKey[]>>> = {
  responses: ['conversation', 'prompt'],
  messages: ['container'],
  count_tokens: ['container'],
};

/** The offers that may serve. Nearly every request names nothing, which the scan tells; only one with keys that might is looked at. */
export function offersForStoredObjects(
  api: string,
  request: ScannedBody,
  offers: readonly Offer[],
  workers: StoredObjectWorkers,
): readonly Offer[] | Refusal | Promise<readonly Offer[] | Refusal> {
  const { scanned, body } = request;
  if (scanned === null) return offers;
  const field = namingField(api, request);
  if (field !== null) return sharedOffers(offers, field);
  if (scanned.storedObjectKeys === 0 || api === 'systemone' || offers.every(isShared)) return offers;
  if (body.length <= INLINE_BYTES_MAX) return judge(findStoredObjects(body), scanned.storedObjectKeys, offers);
  return lookInWorker(body, scanned.storedObjectKeys, offers, workers);
}

/** Offers of providers whose stored objects every organization may use. */
function sharedOffers(offers: readonly Offer[], field: string): readonly Offer[] | Refusal {
  const shared = offers.filter(isShared);
  return shared.length > 0
    ? shared
    : { kind: 'invalid_field', field, reason: 'it names an object stored at the provider, which this service cannot know to be yours' };
}

export function isShared({ provider }: Offer): boolean {
  return provider.storedObjects === 'shared';
}

function namingField(api: string, { scanned }: ScannedBody): string | null {
  if (scanned === null) return null;
  for (const field of NAMING_FIELDS[api] ?? []) {
    const value = scanned.valueOf(field);
    if (value !== null && value.kind !== 'null') return field;
  }
  if (api !== 'responses') return null;
  // An item that is only an id stands for one that the provider keeps.
  return scanned.hasUnnamedItem || scanned.types.some(({ of }) => of === 'item') ? 'input' : null;
}

async function lookInWorker(body: Buffer, keys: number, offers: readonly Offer[], workers: StoredObjectWorkers): Promise<readonly Offer[] | Refusal> {
  const copy = new Uint8Array(body);
  const options = { bytes: copy.byteLength, deadlineMs: DEADLINE_MS, transfer: [copy.buffer] };
  const found = await workers.run<StoredObjectsFound>('find-stored-objects', copy, options);
  // Nothing is sent on a guess.
  return found.ok ? judge(found.value, keys, offers) : { kind: 'traffic_capacity_unavailable' };
}

/** `keys`: how many the scan has met. Fewer in the parsed body mean that one came twice, and parsers differ in which of the two they take. */
function judge(found: StoredObjectsFound, keys: number, offers: readonly Offer[]): readonly Offer[] | Refusal {
  if (found.path !== null) return sharedOffers(offers, found.path);
  return found.keys === keys ? offers : { kind: 'invalid_field', field: 'body', reason: 'a field that may name a stored object comes twice in one object' };
}
