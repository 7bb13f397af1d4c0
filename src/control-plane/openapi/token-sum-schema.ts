// A sum of token counts in an answer, for the OpenAPI document.

import { z } from 'zod';
import type { TokenSum } from '../../domain/usage/token-sum.ts';

export const tokenSumSchema = z
  .custom<TokenSum>()
  .meta({ type: 'integer', minimum: 0, description: 'Exact, even beyond 2^53, where a double would be rounded.' });
