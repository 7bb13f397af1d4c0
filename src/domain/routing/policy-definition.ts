// A routing policy as people write it, in the configuration file and over the API: its schema, and how it becomes the
// policy that the router uses.

import { z } from 'zod';
import { entriesAtMost } from '../configuration/schema/entries-at-most.ts';
import { modelNameSchema, slugSchema } from '../configuration/schema/name-schemas.ts';
import type { RoutingPolicy } from './routing-policy.ts';

const TIMEOUT_MS_DEFAULT = 800;
const TIMEOUT_MS_MAX = 30_000;
const CONFIDENCE_FLOOR_DEFAULT = 0.6;
const CORRECTION_THRESHOLD_DEFAULT = 0.7;
/** A typed choice has at most this many options (spec 2.6). */
const OPTIONS_MAX = 255;
const TIER_MODELS_MAX = 1_000;

const share = z.number('must be a number').min(0, 'must be from 0 to 1').max(1, 'must be from 0 to 1');
const wholeNumber = z.int('must be a whole number').min(1, 'must be at least 1');
const timeout = wholeNumber.max(TIMEOUT_MS_MAX, `must be at most ${TIMEOUT_MS_MAX}`);
/** The classifier reads the descriptions. */
const description = z.string().max(2_000, 'must be at most 2000 characters');

/**
 * Tiers and kinds become keys of a JSON object, and JavaScript orders integer keys first, which would lose the order
 * "cheapest first".
 */
const optionName = slugSchema.regex(/[^\d]/, 'must not be a whole number');

/** Kinds of work. */
const strengths = z.array(slugSchema).max(OPTIONS_MAX, `must be at most ${OPTIONS_MAX} kinds`);

const tier = z.strictObject({
  name: optionName,
  description,
  models: z
    .array(z.strictObject({ id: modelNameSchema, strengths: strengths.optional() }))
    .min(1, 'must name at least one model')
    .max(TIER_MODELS_MAX, `must name at most ${TIER_MODELS_MAX} models`),
});

export const policyDefinition = z.strictObject({
  classifier: z.strictObject({
    model: modelNameSchema,
    timeout_ms: timeout.optional(),
    confidence_floor: share.optional(),
  }),
  tiers: z.array(tier).min(1, 'must have at least one tier').max(OPTIONS_MAX, `must have at most ${OPTIONS_MAX} tiers`),
  fallback_tier: z.string().optional(),
  kinds: entriesAtMost(OPTIONS_MAX, z.record(z.string(), description), 'kinds')
    .check(({ value, issues }) => {
      // Zod's own check of a record's keys would say only that some key is wrong.
      for (const kind of Object.keys(value)) {
        const message = optionName.safeParse(kind).error?.issues[0]?.message;
        if (message !== undefined) issues.push({ code: 'custom', path: [kind], message, input: kind });
      }
    })
    .optional(),
  follow_up: z.strictObject({ corrections: z.boolean(), threshold: share.optional() }).optional(),
  sticky: z.strictObject({ min_tokens: wholeNumber }).optional(),
  prefer_native_api: z.boolean().optional(),
});

/** A definition is stored as it was written, without defaults. */
export type PolicyDefinition = z.output<typeof policyDefinition>;

/** `definition` must have passed the schema. Defaults are filled in here. */
export function policyOf(name: string, version: number, definition: PolicyDefinition): RoutingPolicy {
  const { classifier, tiers, fallback_tier: fallbackTier, kinds = {}, follow_up: followUp, sticky } = definition;
  return {
    name,
    version,
    classifier: {
      model: classifier.model,
      timeoutMs: classifier.timeout_ms ?? TIMEOUT_MS_DEFAULT,
      confidenceFloor: classifier.confidence_floor ?? CONFIDENCE_FLOOR_DEFAULT,
    },
    tiers: tiers.map((found) => ({
      ...found,
      models: found.models.map(({ id, strengths = [] }) => ({ id, strengths })),
    })),
    // Spec 3.2: the strongest tier, unless the administrator chose another.
    fallbackTier: fallbackTier ?? tiers.at(-1)?.name ?? '',
    kinds: Object.entries(kinds).map(([kind, words]) => ({ name: kind, description: words })),
    followUp:
      followUp === undefined
        ? null
        : { corrections: followUp.corrections, threshold: followUp.threshold ?? CORRECTION_THRESHOLD_DEFAULT },
    sticky: sticky === undefined ? null : { minTokens: sticky.min_tokens },
    preferNativeApi: definition.prefer_native_api ?? false,
  };
}
