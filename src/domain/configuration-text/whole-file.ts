// Writes a whole configuration file: providers, models and an organization with a key, with explaining comments.

import { type ModelText, modelLines, type ProviderText, providerLines } from './entry-text.ts';
import { commentText } from './flow-text.ts';

export interface WholeFile {
  /** Comments at the beginning, a line each. */
  readonly intro: readonly string[];
  readonly providers: readonly ProviderText[];
  readonly models: readonly ModelText[];
  readonly organization: string;
}

const ORGANIZATION = (slug: string): string => `
organizations:
  - slug: ${slug}
    # none: requests are recorded and rated, and nobody pays. With "prepaid" they need credit, and
    # opening_credit: "25.00" gives some.
    billing: none
    # Made at the first start and printed once. "tollgate key create" makes more.
    keys: [{ name: first }]
`;

export function wholeFileText({ intro, providers, models, organization }: WholeFile): string {
  const section = (name: string, comment: string, lines: readonly string[]): string =>
    lines.length === 0 ? '' : `\n# ${comment}\n${name}:\n${lines.join('\n')}\n`;
  return [
    `${intro.map((line) => (line === '' ? '#' : `# ${commentText(line)}`)).join('\n')}\n`,
    section(
      'providers',
      'The providers that are called. ${NAME} is that environment variable: no secret has to be in this file.',
      providers.flatMap((provider) => providerLines(provider, '  ')),
    ),
    section(
      'models',
      'The models that clients can ask for, and who serves them. Prices are USD for a million tokens.',
      models.flatMap((model) => modelLines(model, '  ')),
    ),
    ORGANIZATION(organization),
  ].join('');
}
