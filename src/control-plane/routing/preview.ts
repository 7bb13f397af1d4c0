// A dry run of auto routing for platform administrators: the record that a request would get, and what the decision was
// based on (spec 4.11).

import { z } from 'zod';
import { entriesAtMost } from '../../domain/configuration/schema/entries-at-most.ts';
import { slugSchema } from '../../domain/configuration/schema/name-schemas.ts';
import { ROUTED_APIS, type RoutedApi } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Refused } from '../../domain/refusals/refused.ts';
import { type PolicyDefinition, policyDefinition } from '../../domain/routing/policy-definition.ts';
import type { RoutePreview } from '../../domain/routing/route-preview.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { idField } from '../identity/fields.ts';
import { type Operation, operation } from '../operation.ts';

export interface PreviewParams {
  readonly organizationId: string;
  readonly api: RoutedApi;
  /** The body of the request. */
  readonly body: Buffer;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** The policy's name, or an unpublished definition; null: the organization's own policy. */
  readonly policy: string | PolicyDefinition | null;
}

/** Calls the classifier. Nothing else is called, charged or remembered. */
export type PreviewRoute = (params: PreviewParams) => Promise<RoutePreview | Refused | Refusal>;

const HEADERS_MAX = 1_000;

const previewBody = z.strictObject({
  organization_id: idField.meta({ description: 'The organization whose models, prices and conversations count.' }),
  api: z.enum(ROUTED_APIS),
  body: z.union([z.string(), z.looseObject({})], 'must be the request as an object, or as a string').meta({
    description: 'The request; as a string it is read byte for byte. The model that it names is ignored.',
  }),
  headers: entriesAtMost(HEADERS_MAX, z.record(z.string(), z.string()))
    .optional()
    .meta({ description: 'The headers of the request. Only those that name a session matter.' }),
  policy: z
    .union([slugSchema, policyDefinition], 'must be the name of a policy, or a definition')
    .optional()
    .meta({ description: 'The name of a policy, or a draft of one. Default: the policy of the organization.' }),
});

const shownPreview = z.object({
  outcome: z.enum(['routed', 'denied', 'unavailable']),
  model: z.string().nullable(),
  model_route: z
    .looseObject({})
    .nullable()
    .meta({ description: 'The routing decision record that the request would get.' }),
  classifier_result: z
    .string()
    .nullable()
    .meta({ description: '`answered`, or why there is no answer; null: the classifier was not asked.' }),
  human_texts: z
    .array(z.string())
    .meta({ description: 'All texts that the classifier gets of the conversation; the latest last.' }),
  conversation_tokens: z.int().meta({ description: 'The length by which candidates are chosen; mostly an estimate.' }),
  candidates: z.array(z.object({ tier: z.string(), model: z.string(), rejection: z.string().nullable() })),
});

function showPreview(preview: RoutePreview): z.output<typeof shownPreview> {
  return {
    outcome: preview.outcome,
    model: preview.model,
    model_route: preview.route === null ? null : { ...preview.route },
    classifier_result: preview.classifierResult,
    human_texts: [...preview.humanTexts],
    conversation_tokens: preview.conversationTokens,
    candidates: preview.candidates.map((candidate) => ({ ...candidate })),
  };
}

export function previewRouting(preview: PreviewRoute): Operation {
  return operation({
    id: 'previewRouting',
    summary: 'Tells how a request would be routed, without sending or charging it: only the classifier is asked.',
    body: previewBody,
    answer: answerOf(shownPreview),
    run: async ({ body: { organization_id: organizationId, api, body, headers = {}, policy = null } }) => {
      const found = await preview({
        organizationId,
        api,
        body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
        headers: new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
        policy,
      });
      return 'kind' in found ? found : shownOrRefused(found, showPreview);
    },
  });
}
