// The error envelopes of spec 7 as schemas, for the OpenAPI document. Their codes and types are those that the table of
// refusals gives them.

import { z } from 'zod';
import { chooseEnvelope } from '../../domain/refusals/choose-envelope.ts';
import { messagesErrorType } from '../../domain/refusals/envelopes/messages.ts';
import { openaiErrorType } from '../../domain/refusals/envelopes/openai.ts';
import { providerKeysCode } from '../../domain/refusals/envelopes/provider-keys.ts';
import type { RefusalKind } from '../../domain/refusals/refusal.ts';
import type { ErrorTypes, RefusalFamily, RefusalRule } from '../../domain/refusals/refusal-rule.ts';
import { REFUSAL_RULES } from '../../domain/refusals/refusal-rules.ts';
import { limitFields } from '../billing/current-limits.ts';
import type { DescribedRoute } from './described-route.ts';

const RULES = Object.entries(REFUSAL_RULES).map(([kind, rule]) => ({ code: kind, ...(rule as RefusalRule) }));
/** Refusals that are written in the route's own envelope. */
const OWN = rulesOf('request', 'service');
/** With DIALECT_REFUSALS, an API's own envelope has the refusals of credentials, too. */
const IN_DIALECT = [...OWN, ...rulesOf('gateway')];
const CREDIT = rulesOf('credit');
const TRAFFIC = rulesOf('traffic');
const PUBLISHED_CODES = codesOf(OWN.filter(({ isCodePublished }) => isCodePublished === true));
/** Spec 7.4. */
const CREDIT_TYPE = 'billing_error';

function rulesOf(...families: readonly RefusalFamily[]) {
  return RULES.filter(({ family }) => families.includes(family));
}

/** Several refusals may have one code. */
function codesOf(rules: typeof RULES): string[] {
  return [...new Set(rules.map(({ code }) => code))];
}

function typesOf(
  rules: typeof RULES,
  typeOfStatus: (status: number) => string,
  ...envelopes: (keyof ErrorTypes)[]
): string[] {
  const types = rules.flatMap(({ status, errorTypes }) =>
    envelopes.map((envelope) => errorTypes?.[envelope] ?? typeOfStatus(status)),
  );
  return [...new Set(types)];
}

/** What every envelope has in addition to its error. */
const ids = {
  request_id: z.uuid().meta({ description: 'The id of the request; for a generation, the id of its execution.' }),
};

/** An additional field where a guardrail blocked a generation. */
const guardrail = z
  .object({ policy: z.string(), rule: z.string(), entity: z.string().nullable(), stage: z.string() })
  .optional()
  .meta({ description: 'Which rule of the organization’s guardrail blocked the request.' });

const gatewayError = z
  .object({ error: z.enum(rulesOf('gateway').map(({ summary }) => String(summary))), ...ids })
  .meta({ id: 'GatewayError', description: 'Raised before a request reaches its route.' });

const platformError = z
  .object({
    code: z
      .string()
      .regex(new RegExp(`^([0-9a-f]{8}|${PUBLISHED_CODES.join('|')})$`))
      .meta({ description: `An opaque correlation identifier, except ${PUBLISHED_CODES.join(', ')}.` }),
    error: z.string().meta({ description: 'What was wrong.' }),
    message: z.string().optional().meta({ description: 'What to do about it.' }),
    guardrail,
    ...ids,
  })
  .meta({ id: 'PlatformError' });

const providerKeysError = z
  .object({
    code: z.enum([...new Set(OWN.map(({ code, status }) => providerKeysCode(code, status)))]),
    error: z.string(),
    ...ids,
  })
  .meta({ id: 'ProviderKeysError', description: 'Its code is stable.' });

/** The `code` of envelopes that show only the codes which the spec publishes. */
const publishedCode = z.enum(PUBLISHED_CODES).optional();
const param = z.string().nullable().meta({ description: 'The field of the request that is at fault.' });

const openaiError = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum(typesOf(IN_DIALECT, openaiErrorType, 'openai', 'chat')),
      code: z.enum(codesOf(IN_DIALECT)),
      param,
    }),
    guardrail,
    ...ids,
  })
  .meta({ id: 'OpenaiError' });

const messagesError = z
  .object({
    type: z.literal('error'),
    error: z.object({
      type: z.enum(typesOf(IN_DIALECT, messagesErrorType, 'messages')),
      message: z.string(),
      code: publishedCode,
    }),
    guardrail,
    ...ids,
  })
  .meta({ id: 'MessagesError' });

const systemoneError = z
  .object({
    detail: z.object({
      error_type: z.enum(typesOf(OWN, messagesErrorType, 'systemone')),
      message: z.string(),
      code: publishedCode,
    }),
    guardrail,
    ...ids,
  })
  .meta({ id: 'SystemoneError' });

const creditFields = {
  ...ids,
  billing: z.object({
    code: z.enum(codesOf(CREDIT)),
    retryable: z.boolean(),
    balance_url: z.string().meta({ description: 'Where the payer sees the balance.' }),
    top_up_url: z.string().meta({ description: 'Where credit is added.' }),
  }),
};
const trafficFields = {
  ...ids,
  retryable: z.boolean(),
  retry_after_seconds: z.int().min(1).optional(),
  result: z
    .object({
      ...limitFields,
      resets_at: z.iso
        .datetime({ offset: true })
        .nullable()
        .optional()
        .meta({ description: 'For a budget: when it begins anew.' }),
      tokens_max: z
        .int()
        .optional()
        .meta({ description: 'What the request could use, where that is above the limit.' }),
    })
    .optional()
    .meta({ description: 'The limit that refused.' }),
};

const flatAdmissionError = z
  .union([
    z.object({ error: z.enum(codesOf(CREDIT)), message: z.string(), ...creditFields }),
    z.object({ error: z.enum(codesOf(TRAFFIC)), message: z.string(), ...trafficFields }),
  ])
  .meta({
    id: 'AdmissionError',
    description: 'Refused for credit, usage budget or traffic capacity before a provider was asked.',
  });

const openaiAdmissionError = z
  .union([
    z.object({
      error: z.object({ message: z.string(), type: z.literal(CREDIT_TYPE), code: z.enum(codesOf(CREDIT)), param }),
      ...creditFields,
    }),
    z.object({
      error: z.object({
        message: z.string(),
        type: z.enum(typesOf(TRAFFIC, openaiErrorType, 'openai')),
        code: z.enum(codesOf(TRAFFIC)),
        param,
      }),
      ...trafficFields,
    }),
  ])
  .meta({ id: 'OpenaiAdmissionError', description: 'An AdmissionError in the form of the OpenAI API.' });

const messagesAdmissionError = z
  .union([
    z.object({
      type: z.literal('error'),
      error: z.object({ type: z.literal(CREDIT_TYPE), message: z.string(), code: z.enum(codesOf(CREDIT)) }),
      ...creditFields,
    }),
    z.object({
      type: z.literal('error'),
      error: z.object({
        type: z.enum(typesOf(TRAFFIC, messagesErrorType, 'messages')),
        message: z.string(),
        code: z.enum(codesOf(TRAFFIC)),
      }),
      ...trafficFields,
    }),
  ])
  .meta({ id: 'MessagesAdmissionError', description: 'An AdmissionError in the form of the Messages API.' });

const SCHEMAS: Readonly<Record<ReturnType<typeof chooseEnvelope>, z.ZodType>> = {
  gateway: gatewayError,
  platform: platformError,
  provider_keys: providerKeysError,
  chat: openaiError,
  openai: openaiError,
  messages: messagesError,
  systemone: systemoneError,
  admission_flat: flatAdmissionError,
  admission_openai: openaiAdmissionError,
  admission_messages: messagesAdmissionError,
};

/** A provider's error. It is relayed unchanged, so nothing is promised about it. */
export const providerError = z
  .looseObject({})
  .meta({ id: 'ProviderError', description: 'The provider’s own error, relayed as it came.' });

/** Every body with which a route answers for these refusals. */
export function errorSchemasOf(
  { envelope, admissionForm = 'flat' }: DescribedRoute,
  kinds: readonly RefusalKind[],
): readonly z.ZodType[] {
  const chosen = kinds.map((kind) => SCHEMAS[chooseEnvelope(REFUSAL_RULES[kind].family, envelope, admissionForm)]);
  return [...new Set(chosen)];
}

/** The code of a refusal in the envelopes that have one. */
export function codeOf(kind: RefusalKind): string {
  return (REFUSAL_RULES[kind] as RefusalRule).code ?? kind;
}
