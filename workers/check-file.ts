// Worker task: reads a configuration file that is to be compared with the stored configuration. A large file takes a
// fifth of a second.

import type { CheckFileInput } from '../src/domain/configuration/check-file-task.ts';
import {
  parseWithoutEnvironment,
  type WithoutEnvironment,
} from '../src/domain/configuration/parse-without-environment.ts';
import { tellBegun } from '../src/platform/begun-flag.ts';

export default function checkFile({ text, variables, stored, begun }: CheckFileInput): WithoutEnvironment {
  tellBegun(begun);
  return parseWithoutEnvironment(text, variables, stored);
}
