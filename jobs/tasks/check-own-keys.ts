// Job: providers are asked about own keys that they refused. What they refuse again is invalid everywhere; what they
// accept again is used again.

import type { Catalog } from '../../src/domain/models/catalog.ts';
import type { OwnKeyReference } from '../../src/domain/own-keys/key-changes.ts';
import { isKeyProblem, ownProvider } from '../../src/domain/own-keys/key-kinds.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { loadCatalog } from '../../src/storage/postgres/catalog/catalog-store.ts';
import { listKeysToCheck, recordNoVerdict } from '../../src/storage/postgres/own-keys/keys-to-check.ts';
import { recordLastUses } from '../../src/storage/postgres/own-keys/own-key-usage.ts';
import { openOwnKey, recordVerdict } from '../../src/storage/postgres/own-keys/own-keys.ts';
import { verifyOwnKey } from '../../src/upstream/verify-own-key.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEYS_MAX = 200;
/** Longer than posting is behind nearly always; what is posted later shows with the next use. */
const LAST_MINUTES = 15;
/** Providers are asked one after the other in each of these, so that one that does not answer holds up few. */
const AT_ONCE = 8;

export async function checkOwnKeys(context: JobContext): Promise<JobResult> {
  await recordLastUses(context.postgres, LAST_MINUTES);
  const waiting = [...(await listKeysToCheck(context.postgres, KEYS_MAX))];
  if (waiting.length === 0) return { checked: 0 };
  const catalog = await loadCatalog(context.postgres, context.box);
  const counts = { checked: waiting.length, invalid: 0, recovered: 0 };
  const work = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const found = await checkOne(context, catalog, next);
      if (found !== null) counts[found] += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return counts;
}

async function checkOne(
  { postgres, box, providers, log }: JobContext,
  catalog: Catalog,
  reference: OwnKeyReference,
): Promise<'invalid' | 'recovered' | null> {
  const opened = await openOwnKey(postgres, { box }, reference);
  const own = isRefused(opened) ? null : ownProvider(catalog, opened.key.kind, opened.key);
  if (isRefused(opened) || own === null || isKeyProblem(own)) {
    await recordNoVerdict(postgres, reference);
    return null;
  }
  const verdict = await verifyOwnKey(own, opened.secret, providers);
  // A provider that cannot answer now says nothing about the key.
  if (verdict === null || verdict.state === 'unverified') {
    await recordNoVerdict(postgres, reference);
    return null;
  }
  const { state: before } = opened.key;
  const actor = { kind: 'cli', userId: null, label: 'job check-own-keys' } as const;
  await recordVerdict(postgres, actor, reference, { verdict, generation: opened.generation });
  if (verdict.state === before) return null;
  log.info({ credential_id: reference.keyId, before, after: verdict.state }, 'an own provider key has another state');
  return verdict.state === 'invalid' ? 'invalid' : 'recovered';
}
