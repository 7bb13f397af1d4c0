// Reads the pages of an export: the part that all vendors have in common. Shapes are checked. A problem names its page
// and path, or its line and column if the text is not JSON.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { readDecimal } from '../money/read-decimal.ts';
import { JSON_TYPES, wordsOf } from '../refusals/issue-words.ts';
import { readJsonValues } from './exact-json.ts';
import { type Bucket, describeFault } from './invoice.ts';

/** A count of tokens, calls or images. null and absent count as 0. */
export const count = z
  .number('must be a whole number')
  .int('must be a whole number')
  .nonnegative('must not be negative')
  .nullish()
  .transform((value) => value ?? 0);

export const word = z
  .string('must be a text')
  .nullish()
  .transform((value) => value ?? null);

/** An amount, as text or as a number, in a unit that is 10^`unitDecimals` pico-dollars. */
export function amount(unitDecimals: number) {
  return z.union([z.string(), z.number()], 'must be an amount').transform((value, context) => {
    const read = readDecimal(String(value), unitDecimals);
    if (read !== null) return read;
    context.addIssue({ code: 'custom', message: `is no amount: ${JSON.stringify(value)}` });
    return z.NEVER;
  });
}

const page = z.looseObject({ data: z.array(z.unknown()), has_more: z.boolean().nullish() });

export interface Pages<BucketShape> {
  readonly buckets: readonly BucketShape[];
  /** The last page of the file says that more pages follow. */
  readonly isCut: boolean;
}

export type PagesRead<BucketShape> =
  | { readonly ok: true; readonly pages: Pages<BucketShape> }
  | { readonly ok: false; readonly problem: string };

/** A file is one page, or several one behind the other or in an array; or the buckets alone. */
export function readPages<BucketShape>(text: string, bucket: z.ZodType<BucketShape>): PagesRead<BucketShape> {
  const read = readJsonValues(text);
  if (!read.ok) return { ok: false, problem: describeFault(read.fault) };
  if (read.values.length === 0) return { ok: false, problem: 'the file is empty' };
  const buckets: BucketShape[] = [];
  let isCut = false;
  const found = read.values.flatMap((value) => (Array.isArray(value) ? (value as unknown[]) : [value]));
  for (const [index, value] of found.entries()) {
    const isBucket = typeof value === 'object' && value !== null && 'results' in value;
    const opened = page.safeParse(isBucket ? { data: [value] } : value);
    if (!opened.success) return problemOf(index, [], opened.error);
    for (const [place, written] of opened.data.data.entries()) {
      const shaped = bucket.safeParse(written);
      if (!shaped.success) return problemOf(index, ['data', place], shaped.error);
      buckets.push(shaped.data);
    }
    isCut = opened.data.has_more === true;
  }
  return { ok: true, pages: { buckets, isCut } };
}

function problemOf(
  pageIndex: number,
  path: readonly PropertyKey[],
  error: z.ZodError,
): { readonly ok: false; readonly problem: string } {
  const { place, words } = firstMistake(error, path);
  return { ok: false, problem: `page ${pageIndex + 1}${place === '' ? '' : `, ${place}`}: ${words}` };
}

/** What is wrong in a result of a bucket; the text continues "results[0]". */
export function resultProblem(error: z.ZodError): { readonly problem: string } {
  const { place, words } = firstMistake(error, []);
  return { problem: `${place === '' ? '' : `.${place}`}: ${words}` };
}

function firstMistake({ issues }: z.ZodError, path: readonly PropertyKey[]): { place: string; words: string } {
  const [issue] = issues as [z.core.$ZodIssue];
  return { place: z.core.toDotPath([...path, ...issue.path]), words: wordsOf(issue, JSON_TYPES) };
}

/**
 * Finds rows that occur twice, by their bucket and all their fields. A vendor never exports a row twice, since it sums
 * up what it groups; but a page that was fetched twice, or a file that was named twice, repeats its rows. Repeated rows
 * are counted all the same, since a row that is left out could be the disputed one; a note tells the reader.
 */
export class RowsSeen {
  private readonly digests = new Set<string>();
  private repeated = 0;

  add({ fromMs, untilMs }: Bucket, row: object): void {
    const digest = createHash('sha256')
      .update(JSON.stringify([fromMs, untilMs, row]))
      .digest('base64');
    if (this.digests.has(digest)) this.repeated += 1;
    else this.digests.add(digest);
  }

  notes(): string[] {
    if (this.repeated === 0) return [];
    const rows = this.repeated === 1 ? '1 row is' : `${this.repeated} rows are`;
    return [`${rows} in the export more than once, word for word, and counted each time: was a page fetched twice?`];
  }
}

export const CUT_NOTE =
  'The last page of the export says has_more: there are further pages, and the file does not have them.';
