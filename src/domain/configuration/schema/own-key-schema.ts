// The shape of an organization's own provider keys in a configuration file: the platform's grant, the organization's
// choices, the keys, and the prices of models at its providers.

import { z } from 'zod';
import { parseUsd } from '../../money/parse-usd.ts';
import type { PicoUsd } from '../../money/pico-usd.ts';
import type { ByokFee, ByokSettings } from '../../own-keys/byok-settings.ts';
import { KEY_FALLBACKS, KEY_PLACES } from '../../own-keys/own-key.ts';
import type { ConfiguredOwnKey } from '../configuration.ts';
import { labelSchema as label, modelNameSchema as modelName, slugSchema as slug } from './name-schemas.ts';
import { priceSchema } from './price-schema.ts';

const PERCENT = /^(?:100(?:\.0{1,2})?|[0-9]{1,2}(?:\.[0-9]{1,2})?)$/;

/** The platform's fee for a request on an own key. */
export const feeSchema = z
  .union(
    [
      z.strictObject({ percent: z.string().regex(PERCENT, 'must be from 0 to 100, with at most two decimals') }),
      z.strictObject({
        per_request: z
          .string()
          .refine((text) => parseUsd(text) !== null, 'must be dollars as a decimal, such as 0.001'),
      }),
    ],
    'must be { percent: "2.5" }, with at most two decimals, or { per_request: "0.001" } in USD, or null',
  )
  .transform((fee): ByokFee => {
    if ('per_request' in fee) return { kind: 'per_request', amount: parseUsd(fee.per_request) as PicoUsd };
    const [whole = '0', cents = ''] = fee.percent.split('.');
    return { kind: 'percent', basisPoints: Number(whole) * 100 + Number(cents.padEnd(2, '0')) };
  });

export const byokSchema = z
  .strictObject({
    enabled: z.boolean().optional(),
    kinds: z.array(slug).nullable().optional(),
    custom_base_url: z.boolean().optional(),
    fee: feeSchema.nullable().optional(),
    credentials_max: z.int().min(0).max(1_000).optional(),
    fallback: z.boolean().optional(),
    classifier: z.enum(['service', 'own']).optional(),
    budgets: z.enum(['fee', 'all']).optional(),
  })
  .transform(({ custom_base_url: customBaseUrl, credentials_max: credentialsMax, ...same }): Partial<ByokSettings> => {
    const all = { ...same, customBaseUrl, credentialsMax };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  });

export const ownKeySchema = z
  .strictObject({
    kind: slug,
    name: label,
    secret: z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'must be visible ASCII characters without spaces'),
    place: z.enum(KEY_PLACES).default('before'),
    fallback: z.enum(KEY_FALLBACKS).default('inherit'),
    models: z.array(modelName).nullable().default(null),
    settings: z.record(z.string().regex(/^[a-z_]{1,40}$/), z.string().max(200)).default({}),
    base_url: z.string().nullable().default(null),
    model_map: z.record(modelName, modelName).default({}),
  })
  .transform(
    ({ base_url: baseUrl, model_map: modelMap, ...same }): ConfiguredOwnKey => ({ ...same, baseUrl, modelMap }),
  );

/** A price stays as the file writes it: it is read again for the kind of its model. */
const priceWords = z.record(z.string(), z.unknown()).check(({ value, issues }) => {
  const { error } = priceSchema.safeParse(value);
  for (const issue of error?.issues ?? []) issues.push({ ...issue, input: value } as z.core.$ZodRawIssue);
  if (error === undefined && (value['from'] !== undefined || value['between'] !== undefined))
    issues.push({ code: 'custom', message: 'must not be dated', input: value });
});

export const ownPricesSchema = z.record(modelName, priceWords);
