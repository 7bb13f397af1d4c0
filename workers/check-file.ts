// Worker task: reads a configuration file that somebody wants compared, which takes a fifth of a second where it is
// large.

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
