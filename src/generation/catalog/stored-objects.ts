// Finds the stored objects that a request names, and which deployments may then serve it. The gateway does not know
// whose the objects are, so only providers whose account the operator shares with all organizations may serve
// (`stored_objects: shared`).

import type { Refusal } from '../../domain/refusals/refusal.ts';
import { findStoredObjects, type StoredObjectsFound } from '../../domain/stored-objects/find-stored-objects.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { Dialect, StoredObjectFields } from '../dialects/dialect.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import type { ScannedBody } from '../request/scanned-body.ts';
import type { Deployment } from './serving-catalog.ts';

/** The part of the worker pool that this file needs. */
export type StoredObjectWorkers = Pick<WorkerPool<'find-stored-objects'>, 'run'>;

/**
 * The same bound as for typed questions (dialects/systemone.ts). A body of this size takes 13 µs as clients write it,
 * and 1.3 ms if it has nothing but keys; to hand it over costs the event loop 60 µs.
 */
const INLINE_BYTES_MAX = 16_384;
const DEADLINE_MS = 2_000;

/** The part of a dialect that this file needs. */
type Naming = Pick<Dialect, 'storedObjects'>;

const NOWHERE_ELSE: StoredObjectFields = { fields: [], addInput: false };

/** The stored objects that a request names, as far as they decide who may serve it. */
export interface StoredObjects {
  /** The deployments that may serve the request, whichever provider stores the items. */
  readonly deployments: readonly Deployment[];
  /** Items that the request refers to, whose owner is not known yet. */
  readonly itemIds: readonly string[];
  /** The named object may add input of unknown length. */
  readonly addsUnknownInput: boolean;
}

const NO_ITEMS: readonly string[] = [];

const UNKNOWN_ITEM =
  'it refers to an item that this service does not know to be yours. ' +
  'Send the items themselves, as clients do with "store": false, or ask the operator about "stored_objects: shared"';

/**
 * Nearly every request names no stored object, as its scan shows. Only a request that refers to items, or has keys that
 * might name objects, is parsed.
 */
export function readStoredObjects(
  { storedObjects = NOWHERE_ELSE }: Naming,
  request: ScannedBody,
  deployments: readonly Deployment[],
  workers: StoredObjectWorkers,
): StoredObjects | Refusal | Promise<StoredObjects | Refusal> {
  const { scanned, body } = request;
  if (scanned === null || storedObjects === null) return { deployments, itemIds: NO_ITEMS, addsUnknownInput: false };
  const field = namingField(storedObjects, scanned);
  const addsUnknownInput = field !== null && storedObjects.addInput;
  const found = field === null ? deployments : sharedDeployments(deployments, field);
  if ('kind' in found) return found;
  const references = referencesIn({ storedObjects }, scanned);
  const mayName = references > 0 || (scanned.storedObjectKeys > 0 && !found.every(isShared));
  if (!mayName) return { deployments: found, itemIds: NO_ITEMS, addsUnknownInput };
  if (references > 0 && scanned.hasAmbiguousReference) return withUnknownItems(found);
  const scan: ScannedNames = { keys: scanned.storedObjectKeys, references, deployments: found, addsUnknownInput };
  return body.length <= INLINE_BYTES_MAX ? judge(findStoredObjects(body), scan) : findInWorker(body, scan, workers);
}

/** What the scan has counted of stored objects, and what is known without parsing the body. */
interface ScannedNames {
  /** How many keys the scan has counted. */
  readonly keys: number;
  readonly references: number;
  readonly deployments: readonly Deployment[];
  readonly addsUnknownInput: boolean;
}

/** The number of items of `input` to which the request only refers. */
export function referencesIn({ storedObjects }: Naming, { references }: ScannedRequest): number {
  return storedObjects?.addInput === true ? references : 0;
}

/** The deployments of providers whose stored objects every organization may use. */
function sharedDeployments(
  deployments: readonly Deployment[],
  field: string,
  reason = 'it names an object stored at the provider, which this service cannot know to be yours',
): readonly Deployment[] | Refusal {
  const shared = deployments.filter(isShared);
  return shared.length > 0 ? shared : { kind: 'invalid_field', field, reason };
}

/** The deployments for a request whose items are not all known to be the principal's. */
export function deploymentsForUnknownItems(deployments: readonly Deployment[]): readonly Deployment[] | Refusal {
  const shared = deployments.filter(isShared);
  return shared.length > 0 ? shared : { kind: 'invalid_field', field: 'input', reason: UNKNOWN_ITEM };
}

/**
 * Whether every caller may use the objects in the deployment's account: it is shared, or belongs to the caller's own
 * key, whose account contains no other organization's objects.
 */
export function isShared({ provider }: Deployment): boolean {
  return provider.storedObjects === 'shared' || provider.own !== undefined;
}

function namingField({ fields }: StoredObjectFields, scanned: ScannedRequest): string | null {
  for (const field of fields) {
    const value = scanned.valueOf(field);
    if (value !== null && value.kind !== 'null') return field;
  }
  return null;
}

async function findInWorker(
  body: Buffer,
  scan: ScannedNames,
  workers: StoredObjectWorkers,
): Promise<StoredObjects | Refusal> {
  const copy = new Uint8Array(body);
  const options = { bytes: copy.byteLength, deadlineMs: DEADLINE_MS, transfer: [copy.buffer] };
  const found = await workers.run<StoredObjectsFound>('find-stored-objects', copy, options);
  // A request that could not be parsed is not sent.
  return found.ok ? judge(found.value, scan) : { kind: 'traffic_capacity_unavailable' };
}

function judge({ path, keys, itemIds }: StoredObjectsFound, scan: ScannedNames): StoredObjects | Refusal {
  // If the parsed body has fewer keys than the scan has counted, a key came twice, and parsers differ in which value
  // they take.
  const deployments =
    path !== null
      ? sharedDeployments(scan.deployments, path)
      : keys !== scan.keys
        ? sharedDeployments(scan.deployments, 'body', 'a field that may name a stored object comes twice in one object')
        : scan.deployments;
  if ('kind' in deployments) return deployments;
  if (scan.references === 0) return { deployments, itemIds: NO_ITEMS, addsUnknownInput: scan.addsUnknownInput };
  if (itemIds?.length === scan.references) return { deployments, itemIds, addsUnknownInput: scan.addsUnknownInput };
  return withUnknownItems(deployments);
}

function withUnknownItems(deployments: readonly Deployment[]): StoredObjects | Refusal {
  const shared = deploymentsForUnknownItems(deployments);
  return 'kind' in shared ? shared : { deployments: shared, itemIds: NO_ITEMS, addsUnknownInput: true };
}
