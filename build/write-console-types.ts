// Writes the types of the HTTP API that the console is checked against, from the product's own OpenAPI document. No
// server has to run: the document comes from the route table.

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTypes, { astToString } from 'openapi-typescript';
import { openapiDocument } from '../test/support/route-table.ts';

const PATH = fileURLToPath(new URL('../src/console/api-types.d.ts', import.meta.url));

const types = await openapiTypes(openapiDocument() as Parameters<typeof openapiTypes>[0], { silent: true });
writeFileSync(PATH, `// Written by build/write-console-types.ts from the OpenAPI document.\n\n${astToString(types)}`);
