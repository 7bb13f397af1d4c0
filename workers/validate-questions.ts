// Worker task: checks a typed-question request whose body is too big to be parsed on the event loop. Its input is the
// body, its output the refusal or null.

import { checkQuestionsBody } from '../src/domain/evaluation/check-questions.ts';
import type { Refusal } from '../src/domain/refusals/refusal.ts';

export default function validateQuestions(body: Uint8Array): Refusal | null {
  return checkQuestionsBody(body);
}
