// Worker task: checks a typed-question request whose body is too big to be parsed on the event loop, or may be too long
// for its model. Its output is the refusal or null.

import { checkQuestionsBody } from '../src/domain/evaluation/check-questions.ts';
import { refuseTooLong } from '../src/domain/evaluation/refuse-too-long.ts';
import type { ValidateQuestionsInput } from '../src/domain/evaluation/validate-questions-task.ts';
import type { Refusal } from '../src/domain/refusals/refusal.ts';
import { tellBegun } from '../src/platform/begun-flag.ts';
import { loadEncoding } from './count-tokens.ts';

export default async function validateQuestions(input: ValidateQuestionsInput): Promise<Refusal | null> {
  const { body, context, begun } = input;
  const count = context === null ? null : await loadEncoding(context.encoding);
  tellBegun(begun);
  if (context === null || count === null) return checkQuestionsBody(body);
  return checkQuestionsBody(body, (request) => refuseTooLong(request, context.length, count));
}
