// `tollgate provider`: lists the providers of the catalog, or removes one.

import { catalogCommand } from './catalog-object.ts';

export const providerCommand = catalogCommand('provider', ({ fields }) => [
  String(fields['base_url']),
  fields['auth'] === 'none' ? 'no key' : String(fields['auth']),
]);
