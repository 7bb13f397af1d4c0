// What the OpenAPI document says of every generation in addition to its dialect's own description: the headers that the
// gateway reads and writes.

import { z } from 'zod';
import type { HeaderSchemas, OperationDescription } from '../control-plane/operation.ts';
import { DONE } from '../domain/guardrails/screening-report.ts';
import { SESSION_HEADERS } from '../domain/routing/conversation/session.ts';
import type { DialectDescription } from '../generation/dialects/description.ts';
import { TAG, TAGS_MAX } from '../generation/execution/client-labels.ts';
import type { DataPlane } from '../generation/plane.ts';
import { CLIENT_REQUEST_ID_LENGTH_MAX } from '../records/field-types.ts';

/** The headers whose names have the installation's brand in them. */
type BrandHeaders = Pick<DataPlane, 'executionIdHeader' | 'routedModelHeader' | 'tagHeader' | 'guardrailHeaders'>;

export function describeGeneration(brand: BrandHeaders, described: DialectDescription): OperationDescription {
  const isRouted = described.isRouted === true;
  const headers = { ...labelHeaders(brand), ...(isRouted ? SESSIONS : {}), ...described.headers };
  return { query: null, status: 200, ...described, headers, answerHeaders: answerHeaders(brand, isRouted) };
}

const sessionId = z.string().optional().meta({
  description: 'The session of the conversation, for the virtual model; the first such header of a request counts.',
});
const SESSIONS: HeaderSchemas = Object.fromEntries(SESSION_HEADERS.map((name) => [name, sessionId]));

/** The headers that all generations read, in addition to those of their dialects. */
function labelHeaders({ tagHeader }: BrandHeaders): HeaderSchemas {
  return {
    'X-Client-Request-Id': z
      .string()
      .max(CLIENT_REQUEST_ID_LENGTH_MAX)
      .optional()
      .meta({ description: 'A label by which the execution can be found; it is not forwarded.' }),
    [tagHeader]: z
      .array(z.string().regex(TAG))
      .max(TAGS_MAX)
      .optional()
      .meta({
        description: `Tags, separated by commas or in several headers; ${TAGS_MAX} are kept, malformed ones dropped.`,
      }),
    'Idempotency-Key': z
      .string()
      .optional()
      .meta({
        description:
          'Sent on to the provider: unchanged with an organization’s own key; with the service’s key as a hash of ' +
          'organization, wallet and value, so that two payers never share one.',
      }),
  };
}

function answerHeaders(
  { executionIdHeader, routedModelHeader, guardrailHeaders }: BrandHeaders,
  isRouted: boolean,
): HeaderSchemas {
  const executionId = z.uuid().optional().meta({
    description: 'The id under which the request is recorded, if its sender is known; a refused one has an id, too.',
  });
  const all = {
    [executionIdHeader]: executionId,
    [guardrailHeaders.action]: z
      .enum(['none', ...Object.values(DONE)])
      .optional()
      .meta({ description: 'The strongest action of guardrails. Absent: no rule applies to the request.' }),
    [guardrailHeaders.count]: z.int().optional().meta({ description: 'How many findings there were.' }),
  };
  if (!isRouted) return all;
  const routedModel = z.string().optional().meta({ description: 'The model that the virtual model chose.' });
  return { ...all, [routedModelHeader]: routedModel };
}
