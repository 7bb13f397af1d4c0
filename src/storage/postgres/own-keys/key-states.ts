// Records what providers say about own keys: that they accept or refuse the key, or that its account has no credit.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { KeyVerdict, OwnKeyReference } from '../../../domain/own-keys/key-changes.ts';
import type { OwnKey } from '../../../domain/own-keys/own-key.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import type { Postgres } from '../pool.ts';
import { changeKeys, getOwnKey, readChanged } from './own-keys.ts';

/** Records the result of verifying a secret. `generation`: the secret's; a verdict on an older secret is ignored. */
export async function recordVerdict(
  postgres: Postgres,
  actor: Actor,
  { organizationId, keyId }: OwnKeyReference,
  { verdict, generation }: { readonly verdict: KeyVerdict; readonly generation: number },
): Promise<OwnKey | Refused> {
  return changeKeys(postgres, organizationId, async (client) => {
    const before = await getOwnKey(client, { organizationId, keyId });
    if (isRefused(before)) return before;
    await client.query(
      `UPDATE own_keys SET checked_at = now(), suspected_at = NULL,
         verified_at = CASE WHEN $4 = 'active' THEN now() ELSE verified_at END,
         state = CASE WHEN state = 'disabled' THEN state ELSE $4 END, state_reason = $5, state_until = NULL
       WHERE organization_id = $1 AND id = $2 AND generation = $3`,
      [organizationId, keyId, generation, verdict.state, verdict.reason],
    );
    return readChanged(client, actor, 'own_key.state', before);
  });
}

const COOLED_DOWN = `UPDATE own_keys SET state = 'cooling_down', state_reason = $4,
     state_until = now() + make_interval(secs => $5::double precision / 1000)
   WHERE organization_id = $1 AND id = $2 AND fingerprint = $3 AND removed_at IS NULL
     AND (state IN ('active', 'unverified') OR state = 'cooling_down' AND state_until <= now())`;

/**
 * Records that the account behind a secret has no credit. Gateways are not notified to read the organization's keys
 * again, because no request waits for this.
 */
export async function coolOwnKeyDown(
  postgres: Postgres,
  actor: Actor,
  { fingerprint, ...reference }: OwnKeyReference & { readonly fingerprint: string },
  forMs: number,
): Promise<void> {
  await postgres.transaction(async (client) => {
    const before = await getOwnKey(client, reference);
    if (isRefused(before)) return;
    const params = [reference.organizationId, reference.keyId, fingerprint, NO_CREDIT, forMs];
    const { rowCount } = await client.query(COOLED_DOWN, params);
    if (rowCount > 0) await readChanged(client, actor, 'own_key.state', before);
  });
}

const NO_CREDIT = 'the provider says that its account has no credit or quota left';

/** Records that a provider refused a key in a request, so that the key is verified. False: this was known already. */
export async function suspectOwnKey(postgres: Postgres, keyId: string): Promise<boolean> {
  const { rowCount } = await postgres.query(
    `UPDATE own_keys SET suspected_at = now()
      WHERE id = $1 AND removed_at IS NULL AND suspected_at IS NULL
        AND state IN ('active', 'unverified', 'cooling_down')`,
    [keyId],
  );
  return rowCount > 0;
}
