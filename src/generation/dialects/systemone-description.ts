// Describes the typed-question dialect for the OpenAPI document.

import { z } from 'zod';
import { LEVELS_MAX, LEVELS_MIN, OPTIONS_MAX } from '../../domain/evaluation/check-questions.ts';
import { answer, count, type DialectDescription, model, text } from './description.ts';

const described = z.union([z.string(), z.looseObject({}), z.array(z.unknown())]);
const instructions = described.nullable().optional().meta({ description: 'Text, or a structured object.' });
const typedQuestion = z
  .union([
    z.looseObject({
      type: z.literal('noul'),
      instructions,
      criteria: z
        .object({ true: described.nullable().optional(), false: described.nullable().optional() })
        .nullable()
        .optional(),
    }),
    z.looseObject({
      type: z.literal('choice'),
      instructions,
      criteria: z
        .record(z.string(), described.nullable())
        .meta({ description: 'Descriptions by option.', minProperties: 1, maxProperties: OPTIONS_MAX }),
    }),
    z.looseObject({
      type: z.literal('score'),
      instructions,
      criteria: z
        .array(described.nullable())
        .min(LEVELS_MIN)
        .max(LEVELS_MAX)
        .meta({ description: 'Descriptions of the levels, lowest first.' }),
    }),
  ])
  .meta({ id: 'TypedQuestion' });

const probability = z.number().min(0).max(1);
const typedAnswer = z
  .union([
    z.looseObject({ type: z.literal('noul'), noul: probability }),
    z.looseObject({
      type: z.literal('choice'),
      choice: text,
      confidence: probability.optional(),
      probabilities: z.record(text, probability).optional(),
    }),
    z.looseObject({
      type: z.literal('score'),
      score: z.number(),
      confidence: probability.optional(),
      legend: z.record(text, z.unknown()).optional(),
      probabilities: z.record(text, probability).optional(),
    }),
  ])
  .meta({ id: 'TypedAnswer' });

export const systemoneDescription: DialectDescription = {
  id: 'evaluateQuestions',
  summary: 'Answers typed questions about a state.',
  details:
    'The state and the longest question must fit the model’s `context_length` together: 413 otherwise. Input tokens ' +
    'are priced, output is free.',
  body: z.looseObject({
    model,
    state: z
      .union([z.string(), z.looseObject({}), z.array(z.union([z.string(), z.looseObject({}), z.array(z.unknown())]))])
      .meta({ description: 'What is evaluated; text only.' }),
    questions: z.record(z.string(), typedQuestion).meta({ description: 'By ids of the caller’s choice.' }),
  }),
  answer: answer('Evaluation', {
    model: text.meta({ description: 'The versioned id of the model that answered.' }),
    answers: z.record(text, typedAnswer).meta({ description: 'By the ids of the questions.' }),
    usage: z.looseObject({ input_tokens: count.optional(), output_tokens: count.optional() }).optional(),
  }),
};
