// The error envelopes of spec 7 as schemas, for the OpenAPI document.

import { z } from 'zod';
import type { EnvelopeName } from '../../domain/refusals/render.ts';

const gatewayError = z
  .object({ error: z.string() })
  .meta({ id: 'GatewayError', description: 'Raised before a request reaches its route.' });

const platformError = z
  .object({ code: z.string(), error: z.string(), message: z.string().optional(), request_id: z.string().optional() })
  .meta({ id: 'PlatformError', description: '`code` is an opaque correlation identifier, except `owner_floor`.' });

/** Beside the error of a generation that a guardrail blocked. */
const guardrail = z
  .object({ policy: z.string(), rule: z.string(), entity: z.string().nullable(), stage: z.string() })
  .optional();

const openaiError = z
  .object({
    error: z.looseObject({
      message: z.string(),
      type: z.string(),
      code: z.string().nullable(),
      param: z.string().nullable(),
    }),
    guardrail,
  })
  .meta({ id: 'OpenaiError' });

const messagesError = z
  .object({ type: z.literal('error'), error: z.looseObject({ type: z.string(), message: z.string() }), guardrail })
  .meta({ id: 'MessagesError' });

const systemoneError = z
  .object({ detail: z.object({ error_type: z.string(), message: z.string(), code: z.string().optional() }), guardrail })
  .meta({ id: 'SystemoneError' });

const admissionError = z
  .looseObject({ error: z.union([z.string(), z.looseObject({})]), message: z.string().optional() })
  .meta({
    id: 'AdmissionError',
    description: 'Refused for credit, usage budget or traffic capacity before a provider was asked.',
  });

const OWN: Readonly<Record<EnvelopeName, z.ZodType>> = {
  gateway: gatewayError,
  platform: platformError,
  chat: openaiError,
  openai: openaiError,
  messages: messagesError,
  systemone: systemoneError,
};

/** Every error body that a route with this envelope can answer with. */
export function errorSchemaOf(envelope: EnvelopeName, isGeneration: boolean): z.ZodType {
  const own = envelope === 'gateway' ? [] : [OWN[envelope]];
  return z.union([...own, gatewayError, ...(isGeneration ? [admissionError] : [])]);
}
