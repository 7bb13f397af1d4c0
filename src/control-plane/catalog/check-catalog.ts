// Compares a configuration file with the catalog that is in force. The file stays the source: nothing is changed here.

import { z } from 'zod';
import type { FileCheck } from '../../domain/configuration/check-file-task.ts';
import { entriesAtMost } from '../../domain/configuration/schema/entries-at-most.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { answerOf } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';

interface CatalogDifference {
  readonly kind: string;
  readonly id: string;
  readonly change: 'added' | 'changed' | 'removed';
  /** One for each field that differs. */
  readonly lines: readonly string[];
}

export interface CheckedCatalog {
  readonly mistakes: readonly string[];
  readonly differences: readonly CatalogDifference[];
  readonly warnings: readonly string[];
  /** Variables that the file names and the request does not. */
  readonly variables: readonly string[];
}

export type CatalogCheck = (check: FileCheck & { readonly prune: boolean }) => Promise<CheckedCatalog | Refusal>;

const VARIABLES_MAX = 1_000;

const checkBody = z.strictObject({
  configuration: z.string().meta({ description: 'The text of the file, YAML.' }),
  variables: entriesAtMost(VARIABLES_MAX, z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string()))
    .optional()
    .meta({ description: 'Values of variables that the file names. No environment is read; keys may be left out.' }),
  prune: z
    .boolean()
    .optional()
    .meta({ description: 'Whether to show what `tollgate apply --prune` would remove, too.' }),
});

const shownCheck = z.object({
  mistakes: z
    .array(z.string())
    .meta({ description: 'Mistakes in the file, each with its line. If there are any, nothing is compared.' }),
  differences: z.array(
    z.object({
      kind: z.string(),
      id: z.string(),
      change: z.enum(['added', 'changed', 'removed']),
      lines: z.array(z.string()).meta({ description: 'One for each field that differs. Keys are not compared.' }),
    }),
  ),
  warnings: z.array(z.string()),
  variables: z.array(z.string()).meta({ description: 'Variables that the file names and the request does not.' }),
});

export function checkCatalog(check: CatalogCheck): Operation {
  return operation({
    id: 'checkCatalog',
    summary: 'Compares the providers, models and routing policies of a configuration file with those in force.',
    body: checkBody,
    answer: answerOf(shownCheck),
    run: async ({ body: { configuration, variables = {}, prune = false } }) => {
      const found = await check({ text: configuration, variables, prune });
      if ('kind' in found) return found;
      return {
        data: {
          mistakes: [...found.mistakes],
          differences: found.differences.map((one) => ({ ...one, lines: [...one.lines] })),
          warnings: [...found.warnings],
          variables: [...found.variables],
        },
      };
    },
  });
}
