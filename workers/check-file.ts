// Worker task: reads a configuration file that somebody wants compared, which takes a fifth of a second where it is
// large.

import type { CheckFileInput } from '../src/domain/configuration/check-file-task.ts';
import {
  parseWithoutEnvironment,
  type WithoutEnvironment,
} from '../src/domain/configuration/parse-without-environment.ts';

export default function checkFile({ text, variables, stored, begun }: CheckFileInput): WithoutEnvironment {
  Atomics.store(begun, 0, 1);
  Atomics.notify(begun, 0);
  return parseWithoutEnvironment(text, variables, stored);
}
