// A guardrail policy as people write it, in the configuration file and over the API: its schema, and how it becomes the
// policy that is compiled.

import { z } from 'zod';
import { entriesAtMost } from '../configuration/schema/entries-at-most.ts';
import { slugSchema } from '../configuration/schema/name-schemas.ts';
import { API_NAMES } from '../models/apis.ts';
import { checkPattern, countWideClasses, TOO_LARGE, writtenSizeOf } from './detectors/patterns.ts';
import { WORD_BYTES_MIN } from './detectors/word-table.ts';
import { ENTITY_NAMES } from './entities.ts';
import { externalDefinition } from './external-definition.ts';
import { ACTIONS, type Policy, type Rule } from './policy.ts';

const RULES_MAX = 64;
const PATTERNS_MAX = 64;
const PATTERN_CHARACTERS_MAX = 1_024;
const PATTERN_LENGTH_MAX = 256;
/** The most instructions of all patterns of a policy together; a number of ten digits with a prefix has about 15. */
const PATTERN_INSTRUCTIONS_MAX = 1_000;
/**
 * The size of one pattern, and of all patterns of a policy, with repetitions written out. It is limited since an event
 * loop compiles them.
 */
const PATTERN_WRITTEN_MAX = 2_048;
const PATTERNS_WRITTEN_MAX = 8_192;
const WIDE_CLASSES_MAX = 16;
const WORDS_MAX = 1_000;
/**
 * The most words of all rules of a policy. The table of this many words takes tens of milliseconds, once per version.
 */
const POLICY_WORDS_MAX = 10_000;
const WORD_CHARACTERS_MAX = 128;
const ALLOWED_MAX = 1_000;
const EXTERNALS_MAX = 8;
/** The most entries in each list of a rule: built-in entities, entities of an external detector, APIs. */
const NAMED_MAX = 64;
const MIN_SCORE_DEFAULT = 0.5;
const NAMED_TOO_MANY = `must be at most ${NAMED_MAX}`;
const PATTERNS_TOO_MANY = `must have at most ${PATTERNS_MAX} patterns`;

const pattern = z.strictObject({
  regex: z
    .string()
    .max(PATTERN_CHARACTERS_MAX, `must be at most ${PATTERN_CHARACTERS_MAX} characters`)
    .refine((regex) => writtenSizeOf(regex) <= PATTERN_WRITTEN_MAX, TOO_LARGE),
  max_length: z
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(PATTERN_LENGTH_MAX, `must be at most ${PATTERN_LENGTH_MAX} bytes`),
});

const word = z
  .string()
  .max(WORD_CHARACTERS_MAX, { error: `must be at most ${WORD_CHARACTERS_MAX} characters`, abort: true })
  .refine((text) => Buffer.byteLength(text.trim()) >= WORD_BYTES_MIN, {
    error: `must have at least ${WORD_BYTES_MIN} bytes`,
    abort: true,
  });

const rule = z
  .strictObject({
    id: slugSchema,
    detect: z.array(z.enum(ENTITY_NAMES)).min(1, 'must name an entity').max(NAMED_MAX, NAMED_TOO_MANY).optional(),
    words: z.array(word).min(1, 'must have a word').max(WORDS_MAX, `must be at most ${WORDS_MAX} words`).optional(),
    patterns: z.array(pattern).min(1, 'must have a pattern').max(PATTERNS_MAX, PATTERNS_TOO_MANY).optional(),
    external: slugSchema.optional(),
    entities: z
      .array(z.string().min(1).max(64))
      .min(1, 'must name an entity')
      .max(NAMED_MAX, NAMED_TOO_MANY)
      .optional(),
    min_score: z.number().min(0, 'must be from 0 to 1').max(1, 'must be from 0 to 1').optional(),
    stage: z.enum(['input', 'output', 'both']),
    action: z.enum(ACTIONS),
    apis: z.array(z.enum(API_NAMES)).min(1, 'must name an API').max(NAMED_MAX, NAMED_TOO_MANY).optional(),
    label: z
      .string()
      .regex(/^[^\p{C}"\\]{1,64}$/u, 'must be 1 to 64 characters without quotes and backslashes')
      .optional(),
    form: z.enum(['token', 'address']).optional(),
    scope: z.enum(['organization', 'key', 'conversation']).optional(),
    restore: z.boolean().optional(),
  })
  .check(({ value, issues }) => {
    const add = (path: string, message: string) => issues.push({ code: 'custom', path: [path], message, input: value });
    const { detect, words, patterns, external, action, stage } = value;
    if (detect === undefined && words === undefined && patterns === undefined && external === undefined)
      add('detect', 'is needed, or words, patterns or external: the rule finds nothing');
    if (external === undefined && (value.entities !== undefined || value.min_score !== undefined))
      add('external', 'is needed: entities and min_score are of external detectors');
    if (action !== 'mask' && value.label !== undefined) add('label', 'is for action: mask');
    if (action !== 'cloak' && (value.form ?? value.scope ?? value.restore) !== undefined)
      add('action', 'must be cloak: form, scope and restore are of placeholders');
    if (action === 'cloak' && stage !== 'input')
      add('stage', 'must be input: what a reply says is restored, not cloaked');
  });

export const guardrailDefinition = z
  .strictObject({
    mode: z.enum(['enforce', 'observe']).optional(),
    on_failure: z.enum(['refuse', 'pass']).optional(),
    /** For policies of the platform: every organization is screened by it. */
    floor: z.boolean().optional(),
    rules: z.array(rule).min(1, 'must have a rule').max(RULES_MAX, `must have at most ${RULES_MAX} rules`),
    allow: z
      .strictObject({
        values: z.array(z.string().min(1).max(256)).max(ALLOWED_MAX).optional(),
        email_domains: z.array(z.string().min(1).max(253)).max(ALLOWED_MAX).optional(),
      })
      .optional(),
    external: entriesAtMost(EXTERNALS_MAX, z.record(slugSchema, externalDefinition), 'detectors').optional(),
  })
  .check(({ value, issues }) => {
    const add = (path: (string | number)[], message: string) =>
      issues.push({ code: 'custom', path, message, input: value });
    const ids = value.rules.map(({ id }) => id);
    const twice = ids.findIndex((id, index) => ids.indexOf(id) !== index);
    if (twice !== -1) add(['rules', twice, 'id'], `another rule has the id "${ids[twice] ?? ''}"`);
    for (const [index, { external, action, stage }] of value.rules.entries()) {
      if (external === undefined) continue;
      const { shape, output } = value.external?.[external] ?? {};
      if (shape === undefined)
        add(['rules', index, 'external'], `must be one of this policy: there is no "${external}"`);
      if (shape === 'moderation' && action !== 'block' && action !== 'flag')
        add(['rules', index, 'action'], 'must be block or flag: a moderation says nothing of where');
      if (output === 'after' && stage !== 'input' && action !== 'flag')
        add(['rules', index, 'action'], 'must be flag: the detector is asked behind the reply (output: after)');
    }
    const words = value.rules.reduce((sum, { words: found = [] }) => sum + found.length, 0);
    if (words > POLICY_WORDS_MAX) add(['rules'], `must have at most ${POLICY_WORDS_MAX} words`);
    for (const { path, message } of problemsOfPatterns(value.rules)) add(['rules', ...path], message);
  });

interface PatternProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** Checks that need no compiling come first, so that only small patterns are compiled. */
function problemsOfPatterns(rules: readonly z.output<typeof rule>[]): PatternProblem[] {
  const all = rules.flatMap(({ patterns = [] }, index) =>
    patterns.map(({ regex }, at) => ({ regex, path: [index, 'patterns', at, 'regex'] })),
  );
  const sumOf = (weigh: (regex: string) => number): number => all.reduce((sum, { regex }) => sum + weigh(regex), 0);
  if (all.length > PATTERNS_MAX) return [{ path: [], message: PATTERNS_TOO_MANY }];
  if (sumOf(writtenSizeOf) > PATTERNS_WRITTEN_MAX) return [ALL_TOO_LARGE];
  if (sumOf(countWideClasses) > WIDE_CLASSES_MAX)
    return [{ path: [], message: `must have at most ${WIDE_CLASSES_MAX} classes beyond ASCII in patterns` }];
  const checked = all.map(({ regex, path }) => ({ path, ...checkPattern(regex) }));
  const wrong = checked.flatMap(({ path, problem }) => (problem === null ? [] : [{ path, message: problem }]));
  const size = checked.reduce((sum, found) => sum + found.size, 0);
  return size > PATTERN_INSTRUCTIONS_MAX ? [...wrong, ALL_TOO_LARGE] : wrong;
}

const ALL_TOO_LARGE: PatternProblem = {
  path: [],
  message: 'has patterns that are too large together: they repeat too much',
};

/** A definition is stored as it was written, without defaults and without the secrets of external detectors. */
export type GuardrailDefinition = z.output<typeof guardrailDefinition>;

export interface PolicyName {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly organizationId: string | null;
}

/** `definition` must have passed the schema. `secrets`: those of its external detectors, by detector name. */
export function guardrailPolicyOf(
  policy: PolicyName,
  definition: GuardrailDefinition,
  secrets: ReadonlyMap<string, string>,
): Policy {
  const { mode = 'enforce', on_failure: onFailure = 'refuse', allow = {}, external = {} } = definition;
  return {
    ...policy,
    onFailure,
    rules: definition.rules.map((found) => ruleOf(policy, found, mode === 'observe')),
    allowedValues: (allow.values ?? []).map((value) => value.toLowerCase()),
    allowedEmailDomains: (allow.email_domains ?? []).map((domain) => domain.toLowerCase()),
    externals: Object.entries(external).map(([name, found]) => ({
      name,
      shape: found.shape,
      url: found.url,
      secret: secrets.get(name) ?? null,
      deadlineMs: found.deadline_ms ?? EXTERNAL_DEADLINE_MS_DEFAULT,
      onFailure: found.on_failure ?? onFailure,
      output: found.output ?? 'whole',
      model: found.model ?? null,
      language: found.language ?? 'en',
    })),
  };
}

const EXTERNAL_DEADLINE_MS_DEFAULT = 800;

function ruleOf({ name, version }: PolicyName, found: GuardrailDefinition['rules'][number], observes: boolean): Rule {
  const { id, stage, external } = found;
  return {
    policy: name,
    version,
    id,
    action: observes ? 'flag' : found.action,
    stages: stage === 'both' ? ['input', 'output'] : [stage],
    apis: found.apis === undefined ? null : new Set(found.apis),
    label: found.label ?? null,
    cloak: { form: found.form ?? 'token', scope: found.scope ?? 'organization', restore: found.restore ?? true },
    detect: found.detect ?? [],
    words: (found.words ?? []).map((text) => text.trim()),
    patterns: (found.patterns ?? []).map(({ regex, max_length: maxLength }) => ({ regex, maxLength })),
    external:
      external === undefined
        ? null
        : {
            name: external,
            entities: found.entities === undefined ? null : new Set(found.entities),
            minScore: found.min_score ?? MIN_SCORE_DEFAULT,
          },
  };
}
