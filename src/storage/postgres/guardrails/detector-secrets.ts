// Stores the secrets of external detectors of guardrail policies. Each secret is sealed and may be sent to one address.

import type { GuardrailDefinition } from '../../../domain/guardrails/policy-definition.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { invalid } from '../identity/change.ts';
import type { PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';

/** A stored policy. `newest`: its newest version, to whose detectors the stored secrets belong. */
export interface SecretsOwner {
  readonly id: string;
  readonly newest: GuardrailDefinition | null;
}

type Detectors = NonNullable<GuardrailDefinition['external']>;

/**
 * Refuses a definition that would send a stored secret to another address than it was given for. Otherwise, whoever may
 * change a policy could read the secret. An address is scheme, host and port, as for providers.
 */
export async function refuseMovedSecrets(
  client: PostgresClient,
  { id, newest }: SecretsOwner,
  definition: GuardrailDefinition,
): Promise<Refused | null> {
  const known = detectorsOf(newest);
  const { rows } = await client.query<{ detector: string }>(
    'SELECT detector FROM guardrail_secrets WHERE policy_id = $1',
    [id],
  );
  const stored = new Set(rows.map(({ detector }) => detector));
  for (const [name, { url, secret }] of detectorsOf(definition)) {
    const before = known.get(name);
    if (secret !== undefined || before === undefined || !stored.has(name)) continue;
    if (new URL(url).origin !== new URL(before.url).origin)
      return invalid(`external.${name}.secret`, 'is needed: the stored one is for another address');
  }
  return null;
}

/**
 * Erases the secrets of detectors that the definition lacks, or that are new in it, and stores those that it has.
 * Returns whether something changed.
 */
export async function storeSecrets(
  client: PostgresClient,
  box: SecretBox,
  { id, newest }: SecretsOwner,
  definition: GuardrailDefinition,
): Promise<boolean> {
  const known = detectorsOf(newest);
  const kept = [...detectorsOf(definition).keys()].filter((name) => known.has(name));
  const erased = await client.query('DELETE FROM guardrail_secrets WHERE policy_id = $1 AND detector <> ALL ($2)', [
    id,
    kept,
  ]);
  const stored = await readSecrets(client, box, id);
  let changed = erased.rowCount > 0;
  for (const [detector, { secret }] of detectorsOf(definition)) {
    if (secret === undefined || stored.get(detector) === secret) continue;
    changed = true;
    await client.query(
      `INSERT INTO guardrail_secrets (policy_id, detector, secret_sealed) VALUES ($1, $2, $3)
       ON CONFLICT (policy_id, detector) DO UPDATE SET secret_sealed = excluded.secret_sealed`,
      [id, detector, box.seal(secret, sealedFor(id, detector))],
    );
  }
  return changed;
}

function detectorsOf(definition: GuardrailDefinition | null): ReadonlyMap<string, Detectors[string]> {
  return new Map(Object.entries(definition?.external ?? {}));
}

/** The secrets of one policy's detectors, by the detector's name. */
async function readSecrets(client: PostgresClient, box: SecretBox, policyId: string): Promise<Map<string, string>> {
  const { rows } = await client.query<{ detector: string; secret_sealed: Buffer }>(
    'SELECT detector, secret_sealed FROM guardrail_secrets WHERE policy_id = $1',
    [policyId],
  );
  return new Map(rows.map((row) => [row.detector, box.open(row.secret_sealed, sealedFor(policyId, row.detector))]));
}

export function sealedFor(policyId: string, detector: string): string {
  return `guardrail ${policyId} ${detector}`;
}

export function withoutSecrets(definition: GuardrailDefinition): GuardrailDefinition {
  if (definition.external === undefined) return definition;
  const external = Object.fromEntries(
    Object.entries(definition.external).map(([name, detector]) => {
      const shown = { ...detector };
      delete shown.secret;
      return [name, shown];
    }),
  );
  return { ...definition, external };
}
