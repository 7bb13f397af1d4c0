// The members of a price as it is shown, in the words of the configuration file, for the OpenAPI document.

import { z } from 'zod';

const usd = z.string();

export const shownAmounts = {
  input: usd.optional(),
  cached_input: usd.optional(),
  cache_write: usd.optional(),
  cache_write_1h: usd.optional(),
  output: usd.optional(),
  image: usd.optional(),
};

const audioAmounts = {
  input_audio: usd.optional(),
  cached_audio: usd.optional(),
  output_audio: usd.optional(),
};

const factor = z.string().meta({ description: 'A factor for all prices of tokens and images.' });
const tiers = z.array(z.object({ ...shownAmounts, ...audioAmounts, from_input: z.int() })).meta({
  description: 'Prices of the whole request from `from_input` input tokens on; prices not named here stay.',
});
const variations = z.record(
  z.string(),
  z.union([factor, z.object({ ...shownAmounts, ...audioAmounts, factor: factor.optional(), tiers: tiers.optional() })]),
);

export const shownTerms = {
  tiers: tiers.optional(),
  service_tiers: variations.optional().meta({ description: 'By service tier: a factor, or the prices that differ.' }),
  service_tier_default: z
    .string()
    .optional()
    .meta({ description: 'The service tier of a request that names none, or `auto`.' }),
  speeds: variations.optional(),
  geos: variations.optional(),
  factor: factor.optional(),
  ...audioAmounts,
  calls: z
    .record(z.string(), z.union([usd, z.object({ usd, max: z.int(), unasked: z.literal(true).optional() })]))
    .optional()
    .meta({
      description:
        'Dollars for a call of a tool that the provider runs, and how many are held for; `unasked`: in every request.',
    }),
  request: usd.optional().meta({ description: 'Dollars for each request.' }),
  from: z
    .string()
    .optional()
    .meta({ description: 'Since when the price is valid. Of several valid prices the last counts.' }),
  between: z.string().optional().meta({ description: 'The hours of the day, in UTC, at which the price is valid.' }),
  cost: z.literal('reported').optional().meta({
    description: 'The cost that the provider reports is charged, at most what the prices make of the usage.',
  }),
};
