// The members of the generation record and of a listed request for the OpenAPI document, from the table of fields.

import { z } from 'zod';
import { ACTIONS } from '../../domain/guardrails/policy.ts';
import { DONE, FINDINGS_LISTED_MAX, NOT_SCANNED } from '../../domain/guardrails/screening-report.ts';
import { ownerOf } from '../../domain/reports/owners.ts';
import { type Kind, OWN_FAILURES_MAX, type ValueType } from '../../records/field-types.ts';
import { FIELD_ROWS, type Places, USAGE_ROWS } from '../../records/fields.ts';
import { SHOWN } from '../../records/generation.ts';

/** The schema of each kind of field. */
export const RECORD_SCHEMAS = {
  uuid: z.uuid(),
  uuids: z.array(z.uuid()),
  text: z.string(),
  texts: z.array(z.string()),
  flag: z.boolean(),
  status: z.int(),
  bytes: z.int(),
  instant: z.iso.datetime({ offset: true }),
  duration: z.int(),
  amount: z.string(),
  usage: z.unknown(),
  details: z
    .object({
      cache_write_1h_tokens: z.int().optional(),
      service_tier: z.string().optional(),
      speed: z.string().optional(),
      inference_geo: z.string().optional(),
      input_audio_tokens: z.int().optional(),
      cached_audio_tokens: z.int().optional(),
      output_audio_tokens: z.int().optional(),
      reported_cost_usd: z.string().optional(),
      calls: z.record(z.string(), z.int().nullable()).optional(),
    })
    .meta({ description: 'What the cost depends on in addition to the counts. Absent: nothing.' }),
  screening: z.object({ input: screenedStage(), output: screenedStage() }).meta({
    description: 'What guardrails did at each stage. A stage without a rule, or that was not reached, is absent.',
  }),
  failures: z.array(z.object({ credential_id: z.uuid(), reason: z.string(), status: z.int().nullable() })).meta({
    description: `The first ${OWN_FAILURES_MAX} own keys of the organization that could not serve the request.`,
  }),
  attempts: z.array(
    z.object({
      provider: z.string(),
      credential_id: z.uuid().optional(),
      started_ms: z.int(),
      ended_ms: z.int().nullable(),
      cause: z.string().nullable(),
      status: z.int().nullable(),
    }),
  ),
  route: z.unknown(),
} as const satisfies Readonly<Record<Kind, z.ZodType>>;

function screenedStage(): z.ZodType {
  const finding = {
    policy: z.string(),
    version: z.int(),
    rule: z.string(),
    entity: z.string(),
    action: z.enum(ACTIONS),
    count: z.int(),
  };
  return z
    .object({
      action: z.enum(['none', ...Object.values(DONE)]),
      findings: z
        .array(z.object(finding))
        .optional()
        .meta({
          description:
            `At most ${FINDINGS_LISTED_MAX}, the strongest; what else was found is summed by action, as entity ` +
            '`others` with an empty policy and rule.',
        }),
      unrewritten: z.int().optional(),
      unrestored: z.int().optional(),
      not_scanned: z.array(z.enum(NOT_SCANNED)).optional(),
    })
    .optional();
}

function schemaOf({ kind, words }: ValueType<unknown>): z.ZodType {
  return words === null ? RECORD_SCHEMAS[kind] : z.enum(words as [string, ...string[]]);
}

const ROUTED_MODEL = z.string().optional().meta({
  description: 'The model that served, where `model` is the virtual one.',
});

const CREDENTIAL_SOURCE = z.enum(['service', 'own']).meta({
  description: 'Whose key the provider was called with: the service’s, or the organization’s own.',
});

/** The generation record: money is exact JSON numbers, and what is not known is left out. */
export function generationMembers(): Record<string, z.ZodType> {
  const types = new Map<string, ValueType<unknown>>(FIELD_ROWS.map(([name, { type }]) => [name, type]));
  const members = SHOWN.flatMap(({ field, shownAs, kind }): [string, z.ZodType][] => {
    const type = types.get(field);
    const schema = kind === 'amount' ? z.number() : type === undefined ? RECORD_SCHEMAS[kind] : schemaOf(type);
    // A request that was refused before its model was read has no model.
    const isAlwaysKnown = type?.isNullable === false && field !== 'model';
    const member: [string, z.ZodType] = [shownAs, isAlwaysKnown ? schema : schema.optional()];
    if (field === 'model') return [member, ['routed_model', ROUTED_MODEL]];
    if (field === 'credentialId') return [['credential_source', CREDENTIAL_SOURCE.optional()], member];
    return field === 'charge' ? [member, ['currency', z.string().optional()]] : [member];
  });
  return Object.fromEntries(members);
}

/** Fields that may be null in a listing though they are never null in a record. */
const NULL_IN_LISTINGS: ReadonlySet<string> = new Set(['model', 'requestedModel', 'provider', 'latencyMs']);

/**
 * The members of an entry of a listing. `route` and `computed` are not in the table; `computed` comes after the counts.
 */
export function listedMembers(route: z.ZodType, computed: Record<string, z.ZodType>): Record<string, z.ZodType> {
  const members = FIELD_ROWS.flatMap(([field, { type, places }]): [string, z.ZodType][] => {
    if (type.kind === 'usage') return [...countMembers(), ...Object.entries(computed)];
    if (places.listed === undefined) return [];
    const schema = type.kind === 'route' ? route : schemaOf(type);
    const source: [string, z.ZodType][] =
      field === 'credentialId' ? [['credential_source', CREDENTIAL_SOURCE.nullable()]] : [];
    const owner = ownerOf(places.listed);
    const member = type.isNullable || NULL_IN_LISTINGS.has(field) ? schema.nullable() : schema;
    return [
      ...source,
      [places.listed, member],
      ...(owner === null ? [] : [[owner, z.string().nullable()] as [string, z.ZodType]]),
    ];
  });
  return Object.fromEntries(members);
}

function countMembers(): [string, z.ZodType][] {
  return USAGE_ROWS.flatMap(([, { listed }]: readonly [string, Places]): [string, z.ZodType][] =>
    listed === undefined ? [] : [[listed, z.int().nullable()]],
  );
}
