// Makes the edit that replaces the client's `model` in the body: by the provider's name of the model, or, where the
// provider's address names the model, by the members that the provider wants instead.

import type { Buffer } from 'node:buffer';
import { skipSpace, skipSpaceBack } from '../../platform/bytes/json-bytes.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { BodyEdit } from './edits.ts';

type ModelNames = Pick<Deployment, 'modelJson' | 'insteadOfModel'>;

const QUOTE = 0x22;
const COMMA = 0x2c;

/** `start` and `end` delimit the model's value in `body`, which is a JSON object. */
export function modelEdit(
  body: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
  { modelJson, insteadOfModel }: ModelNames,
): BodyEdit {
  if (insteadOfModel === null) return { start, end, replacement: modelJson };
  // No spelling of the key `model` contains a quote, so its quotes are the two before the value.
  const nameEnd = body.lastIndexOf(QUOTE, start - 1);
  const nameStart = body.lastIndexOf(QUOTE, nameEnd - 1);
  if (insteadOfModel.length > 0) return { start: nameStart, end, replacement: insteadOfModel };
  const next = skipSpace(body, end);
  if (body[next] === COMMA) return { start: nameStart, end: next + 1, replacement: insteadOfModel };
  const previous = skipSpaceBack(body, nameStart - 1);
  return { start: body[previous] === COMMA ? previous : nameStart, end, replacement: insteadOfModel };
}
