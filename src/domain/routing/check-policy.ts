// Checks what a schema cannot check of a routing policy: names used twice or never defined, and models that cannot do
// what the policy uses them for.

import {
  type Entry,
  entries,
  entry,
  findDuplicates,
  findUnknown,
  items,
  type Named,
  texts,
} from '../configuration/file-entries.ts';
import type { Problem } from '../configuration/problem.ts';
import type { ModelKind } from '../models/apis.ts';
import { LOGPROB_OPTIONS_MAX } from './logprob-questions.ts';

/** What a policy needs to know of a model. */
export interface PolicyModel {
  /** Any text, since the file may be wrong. */
  readonly kind: ModelKind | (string & {});
  /** Every deployment of the model has a price. */
  readonly isPriced: boolean;
  /** Some deployment of the model is asked through log-probabilities when it classifies. */
  readonly isAskedByLogprobs: boolean;
}

export interface PolicyUse {
  readonly models: ReadonlyMap<string, PolicyModel>;
  /** What the models were read from, for messages: "this file". */
  readonly where: string;
  /** Slugs of the billed organizations that route by the policy: a model without a price cannot serve them. */
  readonly billedOrganizations: readonly string[];
}

export function checkPolicy(policy: Entry, use: PolicyUse): Problem[] {
  const { models, where } = use;
  const tiers = entries(policy, 'tiers');
  const candidates = tiers.flatMap((tier) => entries(tier, 'models'));
  const kinds = Object.keys(entry(policy, 'kinds')[0]?.fields ?? {}).map((kind) => ({
    name: kind,
    place: policy.place,
  }));
  const modelNames = [...models.keys()].map((name) => ({ name, place: policy.place }));
  const classifier = texts(entry(policy, 'classifier'), 'model');
  const served = texts(candidates, 'id');
  return [
    ...findDuplicates(texts(tiers, 'name'), 'tier'),
    ...tiers.flatMap((tier) => findDuplicates(texts(entries(tier, 'models'), 'id'), 'model')),
    ...candidates.flatMap((candidate) => findDuplicates(items(candidate, 'strengths'), 'strength')),
    ...findUnknown(texts([policy], 'fallback_tier'), texts(tiers, 'name'), 'tier', 'the policy'),
    ...findUnknown([...classifier, ...served], modelNames, 'model', where),
    ...findOtherKinds(classifier, models, 'evaluation'),
    ...findOtherKinds(served, models, 'text'),
    ...findUnpriced(served, use),
    ...findTooManyOptions(classifier, models, Math.max(tiers.length, kinds.length)),
    ...findUnknown(
      candidates.flatMap((candidate) => items(candidate, 'strengths')),
      kinds,
      'kind',
      'the policy',
    ),
  ];
}

function findOtherKinds(
  names: readonly Named[],
  models: ReadonlyMap<string, PolicyModel>,
  wanted: ModelKind,
): Problem[] {
  return names.flatMap(({ name, place }) => {
    const kind = models.get(name)?.kind ?? wanted;
    return kind === wanted
      ? []
      : [{ place, message: `must be a model of kind ${wanted}: "${name}" is of kind ${kind}` }];
  });
}

function findTooManyOptions(
  names: readonly Named[],
  models: ReadonlyMap<string, PolicyModel>,
  options: number,
): Problem[] {
  return names.flatMap(({ name, place }) =>
    models.get(name)?.isAskedByLogprobs === true && options > LOGPROB_OPTIONS_MAX
      ? [
          {
            place,
            message:
              `"${name}" is asked by log-probabilities, which tell at most ` +
              `${LOGPROB_OPTIONS_MAX} tiers or kinds apart`,
          },
        ]
      : [],
  );
}

function findUnpriced(names: readonly Named[], { models, billedOrganizations }: PolicyUse): Problem[] {
  const [organization] = billedOrganizations;
  if (organization === undefined) return [];
  return names.flatMap(({ name, place }) => {
    const { kind, isPriced } = models.get(name) ?? { kind: 'text', isPriced: true };
    return isPriced || kind !== 'text'
      ? []
      : [
          {
            place,
            message: `needs a model with a price: "${name}" has none, and the organization "${organization}" is billed`,
          },
        ];
  });
}
