// Lists all dialects: each gets its route from this list, and the preview of auto routing finds the dialects of text
// models in it.

import { chatCompletions } from './chat-completions.ts';
import { countTokens } from './count-tokens.ts';
import type { Dialect } from './dialect.ts';
import { embeddings } from './embeddings.ts';
import { imageEdits, imageGenerations } from './images.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';
import { systemone } from './systemone.ts';

export const ALL_DIALECTS: readonly Dialect[] = [
  chatCompletions,
  responses,
  messages,
  countTokens,
  imageGenerations,
  imageEdits,
  embeddings,
  systemone,
];
