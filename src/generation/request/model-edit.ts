// What stands in the body in the place of the client's `model`: the provider's name of it, or the members that the
// provider wants instead where its address names the model.

import type { Buffer } from 'node:buffer';
import { skipSpace, skipSpaceBack } from '../../platform/bytes/json-bytes.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { BodyEdit } from './edits.ts';

type ModelNames = Pick<Deployment, 'modelJson' | 'insteadOfModel'>;

const QUOTE = 0x22;
const COMMA = 0x2c;

/** `start` and `end`: of the model's value in `body`, a JSON object. */
export function modelEdit(
  body: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
  { modelJson, insteadOfModel }: ModelNames,
): BodyEdit {
  if (insteadOfModel === null) return { start, end, replacement: modelJson };
  // A name that means `model` has no quote in it, however it is spelt.
  const nameEnd = body.lastIndexOf(QUOTE, start - 1);
  const nameStart = body.lastIndexOf(QUOTE, nameEnd - 1);
  if (insteadOfModel.length > 0) return { start: nameStart, end, replacement: insteadOfModel };
  const next = skipSpace(body, end);
  if (body[next] === COMMA) return { start: nameStart, end: next + 1, replacement: insteadOfModel };
  const previous = skipSpaceBack(body, nameStart - 1);
  return { start: body[previous] === COMMA ? previous : nameStart, end, replacement: insteadOfModel };
}
