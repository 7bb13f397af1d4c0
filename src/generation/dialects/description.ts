// Defines how a dialect describes itself in the OpenAPI document, and what several descriptions share. Fields of a
// request that are not described are the provider's, and so are the bytes of an answer: only members that every answer
// of a format has are required, and there may be further ones (spec 4.1 to 4.3, 4.9).

import { z } from 'zod';
import { HUMAN_TEXTS_MAX, OPENER_CHARACTERS_MIN } from '../../domain/routing/conversation/conversation-reader.ts';

export interface DialectDescription {
  /** The operationId, unique in the route table. */
  readonly id: string;
  readonly summary: string;
  /** Details that the summary leaves out. */
  readonly details?: string;
  /** The headers that this dialect alone reads or forwards, by name. */
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  readonly body: z.ZodType;
  /** The body as multipart/form-data, if that is accepted too. */
  readonly form?: z.ZodType;
  readonly answer: z.ZodType;
  /** The data of an event, if the answer may be a stream. */
  readonly events?: z.ZodType;
  /** The request may name the virtual model. */
  readonly isRouted?: true;
}

export const model = z.string().meta({ description: 'A public model id.' });
export const stream = z.boolean().optional().meta({ description: 'The answer is to be a stream of events.' });
export const outputLimit = z.int().optional().meta({
  description: 'The limit of the output. A billed request needs it where the model has no `max_completion_tokens` cap.',
});

export const ROUTED =
  `The virtual model (\`service/auto\`, by the installation’s brand) is served by a model chosen for each human ` +
  `turn, from the latest message and up to ${HUMAN_TEXTS_MAX - 1} before it, trimmed. A conversation is known by the ` +
  `session that a header or the body names, else by its first message of at least ${OPENER_CHARACTERS_MIN} characters.`;

export const count = z.int();
export const text = z.string();

const RELAYED = 'The provider’s own, relayed byte for byte; it may have further members.';

/** The schema of an answer or event, under the name that the document has for it. */
export function answer(id: string, members: z.ZodRawShape, description = RELAYED): z.ZodType {
  return z.looseObject(members).meta({ id, description });
}
