// The shape of the configuration file: every key it may have, and how each becomes the plain data of configuration.ts.

import { z } from 'zod';
import { guardrailDefinition } from '../../guardrails/policy-definition.ts';
import { BUDGET_WINDOWS, COUNTED_KINDS } from '../../quotas/limit-kinds.ts';
import { policyDefinition } from '../../routing/policy-definition.ts';
import { DEFAULT_POLICY } from '../../routing/routing-policy.ts';
import { webhookSecretProblem } from '../../webhooks/webhook-signature.ts';
import { webhookUrlProblem } from '../../webhooks/webhook-url.ts';
import {
  type Configuration,
  type ConfiguredAssignments,
  type ConfiguredGuardrail,
  type ConfiguredOrganization,
  type ConfiguredRoutingPolicy,
  SECTION_NAMES,
  type SectionName,
} from '../configuration.ts';
import { configuredModel } from './catalog-schema.ts';
import { labelSchema as label, modelNameSchema as modelName, slugSchema as slug } from './name-schemas.ts';
import { byokSchema, ownKeySchema, ownPricesSchema } from './own-key-schema.ts';
import { usdSchema as usd } from './price-schema.ts';
import { configuredProvider } from './provider-schema.ts';

const name = (pattern: RegExp, mustBe: string) => z.string().regex(pattern, mustBe);

const email = name(/^[^\s@]+@[^\s@]+$/, 'must be an e-mail address');
const keySecret = name(/^[\x21-\x7e]{1,256}$/, 'must be 1 to 256 visible ASCII characters without spaces');
const routingPolicy = policyDefinition
  .extend({ name: slug })
  .transform(({ name: policyName, ...definition }): ConfiguredRoutingPolicy => ({ name: policyName, definition }));

const guardrail = guardrailDefinition
  .safeExtend({ name: slug })
  .transform(({ name: policyName, ...definition }): ConfiguredGuardrail => ({ name: policyName, definition }));
const added = z.strictObject({ add: z.array(slug).max(16, 'must be at most 16 policies') });

const limit = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.enum(COUNTED_KINDS),
    limit: z.int('must be a whole number').min(0, 'must not be negative').transform(BigInt),
    model: z.exactOptional(modelName),
  }),
  z.strictObject({
    kind: z.literal('budget'),
    window: z.enum(BUDGET_WINDOWS),
    limit: usd,
    model: z.exactOptional(modelName),
  }),
]);

/**
 * The schema accepts plain http. Whether it may be called is a setting of the installation, checked at each delivery.
 */
const webhook = z.strictObject({
  url: z.string().superRefine((text, context) => {
    const problem = webhookUrlProblem(text, { allowHttp: true });
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  }),
  secret: z.string().superRefine((text, context) => {
    const problem = webhookSecretProblem(text);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  }),
  active: z.boolean().nullable().default(null),
});

const organization = z
  .strictObject({
    slug,
    display_name: label.optional(),
    billing: z.enum(['prepaid', 'none']).optional(),
    opening_credit: usd.optional(),
    // An organization that names no policy routes by the platform's default (spec 4.11).
    auto_routing: z.strictObject({ policy: slug.nullable().default(DEFAULT_POLICY) }).optional(),
    limits: z.array(limit).optional(),
    teams: z.array(z.strictObject({ slug, guardrails: added.optional() })).default([]),
    users: z
      .array(
        z.strictObject({
          email,
          role: z.enum(['owner', 'admin', 'member']).nullable().default(null),
          teams: z.array(z.string()).default([]),
        }),
      )
      .default([]),
    keys: z
      .array(
        z.strictObject({
          name: label,
          team: z.string().optional(),
          user: z.string().optional(),
          secret: keySecret.optional(),
          guardrails: added.optional(),
        }),
      )
      .optional(),
    guardrails: z
      .strictObject({
        policy: slug.optional(),
        add: z.array(slug).max(15, 'must be at most 15 policies').optional(),
        on_unavailable: z.enum(['refuse', 'pass']).optional(),
      })
      .optional(),
    webhook: webhook.optional(),
    byok: byokSchema.optional(),
    provider_credentials: z.array(ownKeySchema).optional(),
    model_prices: ownPricesSchema.optional(),
  })
  .check((context) => {
    if (context.value.billing === 'none' && context.value.opening_credit !== undefined) {
      context.issues.push({
        code: 'custom',
        path: ['opening_credit'],
        message: 'needs billing: prepaid',
        input: context.value,
      });
    }
  })
  .transform(
    (found): ConfiguredOrganization => ({
      slug: found.slug,
      displayName: found.display_name ?? null,
      billing: found.billing ?? null,
      openingCredit: found.opening_credit ?? null,
      autoRouting: found.auto_routing ?? null,
      limits: found.limits ?? null,
      teams: found.teams.map((team) => team.slug),
      users: found.users,
      keys:
        found.keys?.map((key) => ({
          name: key.name,
          team: key.team ?? null,
          userEmail: key.user ?? null,
          secret: key.secret ?? null,
        })) ?? null,
      webhook: found.webhook ?? null,
      guardrails: assignmentsOf(found.guardrails, found.teams, found.keys ?? []),
      byok: found.byok ?? null,
      ownKeys: found.provider_credentials ?? null,
      ownPrices: found.model_prices ?? null,
    }),
  );

interface Added {
  readonly guardrails?: { readonly add: readonly string[] } | undefined;
}

/** null: neither the organization nor its teams and keys have guardrails in the file. */
function assignmentsOf(
  own:
    | { policy?: string | undefined; add?: string[] | undefined; on_unavailable?: 'refuse' | 'pass' | undefined }
    | undefined,
  teams: readonly (Added & { readonly slug: string })[],
  keys: readonly (Added & { readonly name: string })[],
): ConfiguredAssignments | null {
  const ofTeams = teams.flatMap((team) =>
    team.guardrails === undefined ? [] : [[team.slug, team.guardrails.add] as const],
  );
  const ofKeys = keys.flatMap((key) => (key.guardrails === undefined ? [] : [[key.name, key.guardrails.add] as const]));
  if (own === undefined && ofTeams.length === 0 && ofKeys.length === 0) return null;
  const policies = own === undefined ? null : [...(own.policy === undefined ? [] : [own.policy]), ...(own.add ?? [])];
  return {
    onUnavailable: own?.on_unavailable ?? null,
    policies,
    teams: Object.fromEntries(ofTeams),
    keys: Object.fromEntries(ofKeys),
  };
}

export const configurationSchema = z
  .strictObject({
    providers: z.array(configuredProvider).optional(),
    models: z.array(configuredModel).optional(),
    routing_policies: z.array(routingPolicy).optional(),
    guardrails: z.array(guardrail).optional(),
    organizations: z.array(organization).optional(),
  })
  .refine((found) => sectionsOf(found).length > 0, `the file is empty: it has none of ${SECTION_NAMES.join(', ')}`)
  .transform(
    (found): Configuration => ({
      sections: sectionsOf(found),
      providers: found.providers ?? [],
      models: found.models ?? [],
      routingPolicies: found.routing_policies ?? [],
      guardrails: found.guardrails ?? [],
      organizations: found.organizations ?? [],
    }),
  );

function sectionsOf(found: Readonly<Partial<Record<SectionName, unknown>>>): SectionName[] {
  return SECTION_NAMES.filter((name) => found[name] !== undefined);
}
