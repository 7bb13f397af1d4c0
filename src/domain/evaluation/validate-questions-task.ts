// The input of the worker task validate-questions (workers/validate-questions.ts), whose output is a refusal or null.

import type { BegunFlag } from '../../platform/begun-flag.ts';

/** The context of a model. */
export interface QuestionContext {
  /** In tokens. */
  readonly length: number;
  /** Name of the encoding by which its tokens are counted. */
  readonly encoding: string;
}

export interface ValidateQuestionsInput {
  readonly body: Uint8Array;
  /** null: the body fits the context, however many tokens it has. */
  readonly context: QuestionContext | null;
  /** Set once the tokenizer is loaded: the deadline of the check runs from then on. */
  readonly begun: BegunFlag;
}
