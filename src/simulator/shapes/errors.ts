// The error bodies of providers, in their own forms: from their documentation, recordings and published reports.

import type { ProviderError } from '../apis/api.ts';
import type { KeyRefusal } from './shape.ts';

function masked(key: string): string {
  return `${key.slice(0, 3)}${'*'.repeat(8)}${key.slice(-4)}`;
}

export const openaiRefusal: KeyRefusal = {
  status: 401,
  body: (key) => ({
    error: {
      message: `Incorrect API key provided: ${masked(key)}. You can find your API key at the console.`,
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_api_key',
    },
  }),
};

export const anthropicRefusals: readonly KeyRefusal[] = [
  {
    status: 401,
    body: () => ({ type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key' } }),
  },
  {
    status: 403,
    body: (key) => ({
      type: 'error',
      error: { type: 'permission_error', message: `Your API key ${key} does not have permission.` },
    }),
  },
  {
    status: 400,
    body: () => ({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'Your credit balance is too low to access the Anthropic API.' },
    }),
  },
];

export const azureRefusals: readonly KeyRefusal[] = [
  refusal(401, {
    error: {
      code: '401',
      message: 'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key.',
    },
  }),
  refusal(403, {
    error: { code: '403', message: 'Public access is disabled. Please configure private endpoint.' },
  }),
];

function googleError(code: number, status: string, message: string, reason?: string): unknown {
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason,
    domain: 'googleapis.com',
    metadata: { service: 'generativelanguage.googleapis.com' },
  };
  return { error: { code, message, status, ...(reason === undefined ? {} : { details: [info] }) } };
}

/** Google's endpoints in OpenAI's form answer with a list of one error. */
export const geminiRefusals: readonly KeyRefusal[] = [
  refusal(400, [
    googleError(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', 'API_KEY_INVALID'),
  ]),
  {
    status: 403,
    body: (key) => [
      googleError(
        403,
        'PERMISSION_DENIED',
        `Permission denied: Consumer 'api_key:${key}' has been suspended.`,
        'CONSUMER_SUSPENDED',
      ),
    ],
  },
  refusal(403, [
    googleError(403, 'PERMISSION_DENIED', 'Your API key was reported as leaked. Please use another API key.'),
  ]),
];

export const vertexRefusals: readonly KeyRefusal[] = [
  refusal(401, [
    googleError(
      401,
      'UNAUTHENTICATED',
      'Request had invalid authentication credentials. Expected OAuth 2 access token.',
      'ACCESS_TOKEN_TYPE_UNSUPPORTED',
    ),
  ]),
  refusal(403, [
    googleError(
      403,
      'PERMISSION_DENIED',
      "Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/projects/acme'.",
      'IAM_PERMISSION_DENIED',
    ),
  ]),
];

export const awsRefusals: readonly KeyRefusal[] = [
  refusal(403, { Message: 'Authentication failed: Please make sure your API Key is valid.' }),
  refusal(403, { message: 'The security token included in the request is invalid.' }),
  refusal(403, { Message: 'User: arn:aws:iam::123456789012:user/acme is not authorized to perform: bedrock:Call' }),
];

export const xaiRefusals: readonly KeyRefusal[] = [
  {
    status: 400,
    body: (key) => ({
      code: 'Client specified an invalid argument',
      error: `Incorrect API key provided: ${masked(key)}. You can obtain an API key from the console.`,
    }),
  },
  refusal(403, {
    code: 'The caller does not have permission to execute the specified operation',
    error: 'Your team acme-1 has used all available credits.',
  }),
];

export const openrouterRefusals: readonly KeyRefusal[] = [
  refusal(401, { error: { message: 'User not found.', code: 401 } }),
  refusal(403, { error: { message: 'Key limit exceeded (total limit). Manage it in the console', code: 403 } }),
  refusal(402, { error: { message: 'Insufficient credits. Add more in the console', code: 402 } }),
];

export const deepseekRefusals: readonly KeyRefusal[] = [
  {
    status: 401,
    body: (key) => ({
      error: {
        message: `Authentication Fails, Your api key: ${masked(key)} is invalid`,
        type: 'authentication_error',
        param: null,
        code: 'invalid_request_error',
      },
    }),
  },
  refusal(402, { error: { message: 'Insufficient Balance', type: 'unknown_error', param: null, code: null } }),
];

export const fireworksRefusal = refusal(403, {
  error: { object: 'error', type: 'invalid_request_error', message: 'The API key you provided is invalid.' },
});

/** A refusal that shows nothing of the key. */
export function refusal(status: number, body: unknown): KeyRefusal {
  return { status, body: () => body };
}

type ErrorForm = (error: ProviderError) => unknown;

export const azureError: ErrorForm = ({ status, message, code }) => ({
  error: { code: code === 'model_not_found' ? 'DeploymentNotFound' : String(status), message },
});
const STATUSES: Readonly<Record<number, string>> = { 400: 'INVALID_ARGUMENT', 404: 'NOT_FOUND' };
export const googleErrors: ErrorForm = ({ status, message }) => [
  googleError(status, STATUSES[status] ?? 'INTERNAL', message),
];
export const xaiError: ErrorForm = ({ message }) => ({ code: 'Some requested entity was not found', error: message });
export const awsError: ErrorForm = ({ message }) => ({ message });
export const numberedError: ErrorForm = ({ status, message }) => ({ error: { message, code: status } });
export const flatError: ErrorForm = ({ message, type, param, code }) => ({ message, type, param, code });
export const mistralError: ErrorForm = ({ message, type, code }) => ({
  object: 'error',
  message,
  type,
  param: null,
  code,
});
